# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""svg.py TITLE: a picture of a terminal's screen, from the text that `tmux capture-pane -p -e` prints.

It has a background of its own, so it can be read on a dark page and on a light one, and it loads
nothing: letters are those of the reader's monospace font.
"""

import re
import sys
import unicodedata
from xml.sax.saxutils import escape, quoteattr

WIDTH, HEIGHT, EDGE = 8.4, 18, 14  # of a letter's place, and around all, in pixels
INK, PAPER = "#d8dee9", "#1f2430"
COLORS = ["#3b4252", "#ff6b6b", "#a3d977", "#f2c94c", "#82aaff", "#c792ea", "#5fd7d7", "#e5e9f0"]


class Style:
    def __init__(self):
        self.clear()

    def clear(self):
        self.ink, self.paper = INK, None
        self.bold = self.faint = self.reverse = False

    def take(self, code):
        if code == 0:
            self.clear()
        elif code in (1, 2, 7):
            self.bold, self.faint, self.reverse = (self.bold or code == 1, self.faint or code == 2,
                                                   self.reverse or code == 7)
        elif code == 22:
            self.bold = self.faint = False
        elif code == 27:
            self.reverse = False
        elif 30 <= code <= 37:
            self.ink = COLORS[code - 30]
        elif code == 39:
            self.ink = INK
        elif 40 <= code <= 47:
            self.paper = COLORS[code - 40]
        elif code == 49:
            self.paper = None

    def colors(self):
        return (self.paper or PAPER, self.ink) if self.reverse else (self.ink, self.paper)


def columns(text):
    return sum(0 if unicodedata.combining(letter) else
               2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def run(text, style, row, at):
    """A rectangle behind the text, if it has a colour there, and the text."""
    ink, paper = style.colors()
    left, top, width = EDGE + at * WIDTH, EDGE + row * HEIGHT, columns(text) * WIDTH
    parts = []
    if paper:
        parts.append(f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{HEIGHT}" '
                     f'fill="{paper}"/>')
    if text.strip():
        weight = ' font-weight="bold"' if style.bold else ""
        faint = ' opacity="0.65"' if style.faint else ""
        parts.append(f'<text x="{left:.1f}" y="{top + 13}" fill="{ink}"{weight}{faint} '
                     f'textLength="{width:.1f}">{escape(text)}</text>')
    return parts


def main():
    lines = sys.stdin.read().rstrip("\n").split("\n")
    style, parts, widest = Style(), [], 80
    for row, line in enumerate(lines):
        at = 0
        for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
            if piece.startswith("\x1b["):
                for code in piece[2:-1].split(";"):
                    style.take(int(code or 0))
            elif piece:
                parts += run(piece, style, row, at)
                at += columns(piece)
        widest = max(widest, at)
    width, height = round(2 * EDGE + widest * WIDTH), 2 * EDGE + len(lines) * HEIGHT
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
          f'viewBox="0 0 {width} {height}" role="img" aria-label={quoteattr(sys.argv[1])}>\n'
          f'<title>{escape(sys.argv[1])}</title>\n'
          f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>\n'
          '<g font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" '
          'font-size="14" xml:space="preserve">')
    print("\n".join(parts))
    print("</g>\n</svg>")


main()
