# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""stage.py SOURCE MANUAL REFERENCE OUTPUT: puts together what mkdocs makes the site of.

OUTPUT/tree has the pages of the repository, where they are in it, and what they link to: a file of
code becomes the page FILE.md, a folder a page that lists its files. Beside them are the manual
pages, by mandoc, and Doxygen's reference. OUTPUT/mkdocs.yml is the configuration with the manual
pages and all other pages in its navigation.
"""

import html
import os
import pathlib
import re
import shutil
import subprocess
import sys

LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")
LANGUAGES = {".c": "c", ".h": "c", ".lua": "lua", ".cmake": "cmake", ".py": "python", ".go": "go",
             ".java": "java", ".js": "javascript", ".sh": "sh", ".awk": "awk", ".yml": "yaml"}
COPIED = {".png", ".svg"}
ROOTS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]


def fence_for(text):
    """A fence that is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    return "`" * (longest + 1)


def outside_code(text, change):
    """Applies `change` to the lines of a page that are in no fenced block."""
    lines, fence = [], None
    for line in text.split("\n"):
        mark = re.match(r"\s*(`{3,})", line)
        if fence is None and mark:
            fence = mark.group(1)
            lines.append(line)
        elif fence is not None:
            if line.strip() == fence:
                fence = None
            lines.append(line)
        else:
            lines.append(change(line))
    return "\n".join(lines)


def table_row(line):
    """GFM takes the backslash from `\\|` in a table's code; Python-Markdown shows it."""
    if not line.startswith("|"):
        return line
    line = re.sub(r"`[^`]*`", lambda code: code.group().replace("\\|", "|"), line)
    # A column is as wide as its longest word: names of tests may be broken behind each "_".
    return re.sub(r"\[(\w{24,})\]", lambda name: name.group().replace("_", "_<wbr>"), line)


class Stage:
    def __init__(self, source, output):
        self.source = source
        self.tree = output / "tree"
        self.done = set()
        self.waiting = []

    def want(self, path):
        """Puts a file or folder of the repository into the tree; returns the page for it."""
        whole = self.source / path
        if whole.is_dir():
            readme = path / "README.md"
            page = readme if (self.source / readme).exists() else path / "index.md"
        elif path.suffix == ".md" or path.suffix in COPIED:
            page = path
        else:
            page = path.with_name(path.name + ".md")
        if page not in self.done:
            self.done.add(page)
            self.waiting.append((path, page))
        return page

    def target(self, page, link):
        """A link of a page, as it has to be in the tree."""
        if re.match(r"[a-z]+:|#", link):
            return link
        name, _, anchor = link.partition("#")
        path = pathlib.Path(os.path.normpath(page.parent / name))
        to = os.path.relpath(self.want(path), page.parent)
        return to + ("#" + anchor if anchor else "")

    def page(self, path):
        """A page of Markdown, with its links."""
        def change(line):
            line = LINK.sub(lambda m: m[1] + self.target(path, m[2]) + m[3], line)
            return table_row(line)
        return outside_code((self.source / path).read_text(), change)

    def code(self, path):
        text = (self.source / path).read_text()
        fence = fence_for(text)
        first = text.split("\n", 1)[0]
        language = LANGUAGES.get(path.suffix, "sh" if first.startswith("#!") else "text")
        return f"# {path}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n"

    def folder(self, path, page):
        names = subprocess.run(["git", "-C", self.source, "ls-files", "--", str(path)], check=True,
                               capture_output=True, text=True).stdout.split()
        lines = [f"# {path}\n"]
        for name in names:
            if os.path.basename(name).startswith("."): # mkdocs leaves such pages out
                continue
            to = os.path.relpath(self.want(pathlib.Path(name)), page.parent)
            lines.append(f"- [{os.path.relpath(name, path)}]({to})")
        return "\n".join(lines) + "\n"

    def run(self):
        for root in ROOTS:
            self.want(pathlib.Path(root))
        for page in sorted((self.source / "docs").rglob("*.md")):
            self.want(page.relative_to(self.source))
        while self.waiting:
            path, page = self.waiting.pop()
            to = self.tree / page
            to.parent.mkdir(parents=True, exist_ok=True)
            if (self.source / path).is_dir() and page.name == "index.md":
                to.write_text(self.folder(path, page))
            elif page.suffix in COPIED:
                shutil.copy(self.source / path, to)
            elif page.name == path.name or page.name == "README.md":
                to.write_text(self.page(page))
            else:
                to.write_text(self.code(path))


class Manual:
    """The manual pages as pages of the site."""

    def __init__(self, manual, tree):
        self.to = tree / "manual"
        self.to.mkdir(parents=True)
        self.pages, self.home = [], {}
        for path in sorted(manual.glob("man*/*")):
            text = path.read_text()
            if text.startswith(".so "):
                self.home[path.stem] = pathlib.Path(text.split()[1]).name
            else:
                self.pages.append(path)
                self.home.setdefault(path.stem, path.name)

    def href(self, name, page, anchors):
        """Where a name of the API is explained: its heading, or the page that has it."""
        home = self.home.get(name)
        if home is None:
            return None
        anchor = "#" + name if (home, name) in anchors else ""
        if home == page and not anchor:
            return None
        return ("" if home == page else home + ".html") + anchor

    def linked(self, text, page, anchors):
        def link(m):
            href = self.href(m[2], page, anchors)
            return f'<a href="{href}">{m[0]}</a>' if href else m[0]
        return re.sub(r"<(b|code class=\"Fn\")>(hl_[a-z0-9_]+)(?:\(\))?</(?:b|code)>", link, text)

    def html_of(self, path):
        text = subprocess.run(["mandoc", "-T", "html", "-O", "fragment,man=%N.%S.html", path],
                              check=True, capture_output=True, text=True).stdout
        text = re.sub(r"<table class=\"(head|foot)\">.*?</table>", "", text, flags=re.S)
        text = re.sub(r"</?section[^>]*>|<div class=\"manual-text\">|</div>\s*$", "", text)
        # A page that is not ours has a name, but no address.
        return re.sub(r"<a class=\"Xr\" href=\"([^\"]*)\.html\">([^<]*)</a>",
                      lambda m: m[0] if m[1] in self.home.values() else m[2], text)

    def headings(self, text):
        """mandoc's headings become Markdown's, so that they are in the table of contents; what is
        between them stays as it is."""
        parts = re.split(r"<h([12]) class=\"S[hs]\" id=\"([^\"]*)\">(.*?)</h[12]>", text,
                         flags=re.S)
        lines = []
        for level, anchor, title, body in zip(parts[1::4], parts[2::4], parts[3::4], parts[4::4]):
            title = html.unescape(re.sub(r"<[^>]*>|\s+", " ", title)).strip()
            title = title.capitalize() if level == "1" else title
            title = re.sub(r"([*_\[\]<>])", r"\\\1", title)
            lines.append(f"{'#' * (int(level) + 1)} {title} {{#{anchor}}}\n")
            body = re.sub(r"\n\s*\n", "\n", body.strip())
            lines.append(f'<div class="manual">\n{body}\n</div>\n')
        return "\n".join(lines)

    def run(self):
        texts = {path.name: self.html_of(path) for path in self.pages}
        anchors = {(name, anchor) for name, text in texts.items()
                   for anchor in re.findall(r"<h[12] class=\"S[hs]\" id=\"(hl_[a-z0-9_]+)\"", text)}
        for name, text in texts.items():
            title, section = name.rsplit(".", 1)
            body = self.headings(self.linked(text, name, anchors))
            (self.to / f"{name}.md").write_text(f"# {title}({section})\n\n{body}")
        return [f"manual/{name}.md" for name in
                sorted(texts, key=lambda name: ("713".index(name[-1]), name))]


def navigation(source, manual, tree):
    """The configuration with the manual pages, and at the end the pages that have no place in it.
    Code is in no navigation: other pages lead to it."""
    def name_of(page):
        return str(pathlib.Path(page).parent) if page.endswith("/README.md") else page

    def title(page):
        name, section = pathlib.Path(page).stem.rsplit(".", 1)
        return f"{name}({section})"

    text = (source / "docs/site/mkdocs.yml").read_text()
    lines = "".join(f"\n          - {title(page)}: {page}" for page in manual)
    text = text.replace(" !MANUAL", lines)
    named = set(re.findall(r"[\w./-]+\.md", text))
    rest = sorted(str(page.relative_to(tree)) for page in tree.rglob("*.md")
                  if str(page.relative_to(tree)) not in named)
    pages = [page for page in rest if (source / page).exists()]
    more = "".join(f"\n      - {name_of(page)}: {page}" for page in pages)
    left_out = "".join(f"\n  /{page}" for page in rest if page not in pages)
    return text.replace('\n      - "*"', more) + f"\nnot_in_nav: |{left_out}\n"


def main():
    source, manual, reference, output = (pathlib.Path(path).resolve() for path in sys.argv[1:5])
    shutil.rmtree(output / "tree", ignore_errors=True)
    stage = Stage(source, output)
    stage.run()
    pages = Manual(manual, stage.tree).run()
    shutil.copytree(reference, stage.tree / "reference")
    shutil.copy(source / "docs/site/site.css", stage.tree)
    (output / "mkdocs.yml").write_text(navigation(source, pages, stage.tree))


main()
