# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""look.py SITE PICTURES: looks at the pages of the site in headless Chromium, wide and narrow,
light and dark, and writes pictures of some of them.

For each page and width: nothing is wider than the window. In the dark scheme the page's background
is dark and its text is light, and the other way round. The search finds a word. Nothing is loaded
from another host than our own server's, and nothing is missing there. CHROMIUM names the program.
"""

import base64
import contextlib
import functools
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

WIDTHS = {"wide": 1280, "narrow": 360}
SCHEMES = ["light", "dark"]
PICTURES = ["index.html", "docs/tutorial.html", "docs/choosing.html", "docs/operations.html",
            "docs/performance/peers.html", "docs/faq.html", "manual/hl_lock.3.html",
            "manual/hirelock.1.html", "docs/coming-from-redsync.html", "examples/quickstart.c.html"]
DEADLINE_S = 60

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
WIDEST = """(() => {
  let worst = ['', 0];
  for (const e of document.querySelectorAll('body *')) {
    const right = e.getBoundingClientRect().right;
    if (right > worst[1]) worst = [e.tagName + '.' + e.className, right];
  }
  return worst.join(' ') })()"""
BRIGHTNESS = """(() => {
  const of = (e, what) => {
    const c = getComputedStyle(e)[what].match(/[\d.]+/g).map(Number);
    return (0.299 * c[0] + 0.587 * c[1] + 0.114 * c[2]) / 255; };
  const text = document.querySelector('.md-content');
  return [of(document.body, 'backgroundColor'), of(text, 'color')]; })()"""


# What moves for a moment after a change of size is not measured on its way.
STILL = """addEventListener('DOMContentLoaded', () => {
  const style = document.createElement('style');
  style.textContent = '* { transition: none !important; animation: none !important }';
  document.head.append(style) })"""


class Browser:
    """Chromium's DevTools protocol over a pair of pipes: messages of JSON, each ended by a NUL."""

    def __init__(self, program, profile):
        ours, to = os.pipe()
        back, theirs = os.pipe()

        def give():  # --remote-debugging-pipe reads from 3 and writes to 4
            high = [os.dup2(ours, 103), os.dup2(theirs, 104)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--disable-background-networking", "--hide-scrollbars",
             "--no-first-run", f"--user-data-dir={profile}", "about:blank"],
            close_fds=False, preexec_fn=give, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(ours)
        os.close(theirs)
        self.to, self.back = os.fdopen(to, "wb", 0), os.fdopen(back, "rb")
        self.number, self.session, self.events, self.rest = 0, None, [], b""

    def read(self):
        """The next message. A browser that says nothing for DEADLINE_S is killed."""
        watch = threading.Timer(DEADLINE_S, self.process.kill)
        watch.start()
        try:
            while b"\0" not in self.rest:
                piece = self.back.read1(65536)
                if not piece:
                    raise RuntimeError("the browser has gone, or was silent for too long")
                self.rest += piece
        finally:
            watch.cancel()
        text, _, self.rest = self.rest.partition(b"\0")
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.to.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def attach(self):
        page = next(target for target in self.call("Target.getTargets")["targetInfos"]
                    if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"],
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self.call(f"{domain}.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=STILL)

    def show(self, url):
        self.call("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete' && location.href.startsWith("
                      f"{json.dumps(url)})")

    def ask(self, expression):
        return self.call("Runtime.evaluate", expression=expression, awaitPromise=True,
                         returnByValue=True)["result"].get("value")

    def wait_for(self, condition):
        """Until the condition is true, seen from the page itself: one call, which it answers."""
        return self.ask(f"""new Promise(done => {{
          const end = Date.now() + {DEADLINE_S * 500};
          const look = () => {{
            let now;
            try {{ now = {condition} }} catch (e) {{ now = false }}
            if (now || Date.now() > end) done(Boolean(now)); else setTimeout(look, 20) }};
          look() }})""")

    def size(self, width, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def scheme(self, scheme):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self):
        self.process.kill()
        self.process.wait()


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
            over = self.browser.ask(OVERFLOW)
            self.check(over is not None and over <= 0,
                       f"{page}: {over} pixels wider than {width}: {self.browser.ask(WIDEST)}"
                       if over else f"{page}: cannot be measured")
            if page in PICTURES:
                self.browser.picture(self.pictures /
                                     f"{page.replace('/', '_')[:-5]}.{name}.{scheme}.png")

    def colours(self, page, scheme):
        ground, text = self.browser.ask(BRIGHTNESS) or (None, None)
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
    program = (os.environ.get("CHROMIUM") or shutil.which("chromium")
               or shutil.which("chromium-browser"))
    if not program:
        sys.exit("look.py: chromium is not here: script/bootstrap docs")
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile, served(site) as base:
        browser = Browser(program, profile)
        try:
            browser.attach()
            look = Look(browser, base, pictures)
            look.run(site)
        finally:
            browser.close()
    print(f"{look.passed} passed, {look.failed} failed")
    return look.failed or not look.passed


sys.exit(bool(main()))
