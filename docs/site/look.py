# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""look.py SITE PICTURES: looks at the pages of the site in headless Chromium, wide and narrow,
light and dark, and writes pictures of some of them.

For each page and width: nothing is wider than the window. In the dark scheme the page's background
is dark and its text is light, and the other way round. The search finds a word. Nothing is loaded
from another host than our own server's, and nothing is missing there. CHROMIUM names the program.
"""

import contextlib
import functools
import http.server
import pathlib
import sys
import tempfile
import threading

import browser  # of tests/support

WIDTHS = {"wide": 1280, "narrow": 360}
SCHEMES = ["light", "dark"]
PICTURES = ["index.html", "docs/tutorial.html", "docs/choosing.html", "docs/operations.html",
            "docs/performance/peers.html", "docs/faq.html", "manual/hl_lock.3.html",
            "manual/hirelock.1.html", "docs/coming-from-redsync.html", "examples/quickstart.c.html"]

WIDEST = """(() => {
  let worst = ['', 0];
  for (const e of document.querySelectorAll('body *')) {
    const right = e.getBoundingClientRect().right;
    if (right > worst[1]) worst = [e.tagName + '.' + e.className, right];
  }
  return worst.join(' ') })()"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(site):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                             functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


class Look:
    def __init__(self, browser, base, pictures):
        self.browser, self.base, self.pictures = browser, base, pictures
        self.passed, self.failed = 0, 0

    def check(self, is_good, text):
        if is_good:
            self.passed += 1
        else:
            self.failed += 1
            print("FAIL:", text)

    def widths(self, page, scheme):
        for name, width in WIDTHS.items():
            self.browser.size(width)
            over = self.browser.overflow()
            self.check(over is not None and over <= 0,
                       f"{page}: {over} pixels wider than {width}: {self.browser.ask(WIDEST)}"
                       if over else f"{page}: cannot be measured")
            if page in PICTURES:
                self.browser.picture(self.pictures /
                                     f"{page.replace('/', '_')[:-5]}.{name}.{scheme}.png")

    def colours(self, page, scheme):
        ground, text = self.browser.brightness(".md-content")
        is_good = ground is not None and (ground < 0.3 and text > 0.5 if scheme == "dark"
                                          else ground > 0.8 and text < 0.5)
        self.check(is_good, f"{page}, {scheme}: brightness of the page {ground}, of text {text}")

    def search(self):
        self.browser.size(WIDTHS["wide"])
        self.browser.show(self.base + "index.html?q=watchdog")
        found = "document.querySelectorAll('.md-search-result__item').length"
        self.check(self.browser.wait_for(f"{found} > 3"), "the search does not find 'watchdog'")

    def requests(self):
        """All that was loaded, and whether it was there."""
        for event in self.browser.events:
            if event["method"] == "Network.requestWillBeSent":
                url = event["params"]["request"]["url"]
                self.check(url.startswith((self.base, "data:", "blob:", "about:")), f"loads {url}")
            elif event["method"] == "Network.responseReceived":
                response = event["params"]["response"]
                self.check(response["status"] < 400, f"{response['url']}: {response['status']}")

    def run(self, site):
        pages = sorted(str(path.relative_to(site)) for path in site.rglob("*.html")
                       if "reference" not in path.relative_to(site).parts)
        # Pages of code are all alike, and one of them is among the pictures.
        looked_at = [page for page in pages if page in PICTURES or "/" not in page
                     or page.startswith(("docs/", "manual/")) or page.endswith("index.html")]
        for scheme in SCHEMES:
            self.browser.scheme(scheme)
            for page in looked_at if scheme == "light" else PICTURES:
                self.browser.show(self.base + page)
                self.colours(page, scheme)
                self.widths(page, scheme)
        for page in PICTURES:
            self.check(page in pages, f"there is no {page}")
        self.search()
        self.requests()


def main():
    site, pictures = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    program = browser.find()
    if not program:
        sys.exit("look.py: chromium is not here: script/bootstrap docs")
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, served(site) as base:
        chromium = browser.Browser(program, profile)
        try:
            chromium.attach()
            look = Look(chromium, base, pictures)
            look.run(site)
        finally:
            chromium.close()
    print(f"{look.passed} passed, {look.failed} failed")
    return look.failed or not look.passed


sys.exit(bool(main()))
