# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""check.py SITE: every link inside the site leads to a file that is there, and to an anchor that is
in it; and no page loads anything from another host."""

import html.parser
import pathlib
import re
import sys
import urllib.parse

LOADS = {"img": "src", "script": "src", "iframe": "src", "source": "src", "link": "href"}
LOADING_LINKS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch",
                 "modulepreload", "manifest"}


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids.update(found[key] for key in ("id", "name") if found.get(key))
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        elif tag == "link" and not LOADING_LINKS & set((found.get("rel") or "").split()):
            return
        elif tag in LOADS and found.get(LOADS[tag]):
            self.loads.append(found[LOADS[tag]])


def is_elsewhere(link):
    return bool(re.match(r"[a-z][a-z0-9+.-]*:|//", link)) and not link.startswith("data:")


def main():
    site = pathlib.Path(sys.argv[1]).resolve()
    # Doxygen's pages are its own matter: its warnings end the build.
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))
             if "reference" not in path.relative_to(site).parts}
    checked, wrong = 0, []
    for path, page in pages.items():
        name = path.relative_to(site)
        wrong += [f"{name}: loads {load}" for load in page.loads if is_elsewhere(load)]
        if path.name == "404.html": # its links are from the root of a server
            continue
        for link in page.links + [load for load in page.loads if not is_elsewhere(load)]:
            if is_elsewhere(link) or link.startswith("data:"):
                continue
            checked += 1
            place, _, anchor = link.partition("#")
            place = urllib.parse.unquote(place.partition("?")[0])
            to = (path.parent / place).resolve() if place else path
            to = to / "index.html" if to.is_dir() else to
            if not to.is_file():
                wrong.append(f"{name}: no {link}")
            elif anchor and to in pages and urllib.parse.unquote(anchor) not in pages[to].ids:
                wrong.append(f"{name}: {link} has no such heading")
    for style in site.rglob("*.css"):
        if "reference" not in style.relative_to(site).parts:
            wrong += [f"{style.relative_to(site)}: loads {url}" for url in
                      re.findall(r"url\(['\"]?((?:https?:)?//[^)'\"]*)", style.read_text())]
    for line in wrong:
        print("FAIL:", line)
    print(f"{checked} passed, {len(wrong)} failed")
    return bool(wrong) or not checked


sys.exit(main())
