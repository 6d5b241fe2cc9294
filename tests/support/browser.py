# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""A headless Chromium, driven by the DevTools protocol: for script/docs --look and script/shop --test.

CHROMIUM names the program.
"""

import base64
import json
import os
import shutil
import subprocess
import threading

DEADLINE_S = 60

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

    def overflow(self):
        """By how many pixels the page is wider than the window; None: it cannot be measured."""
        return self.ask("document.documentElement.scrollWidth"
                        " - document.documentElement.clientWidth")

    def brightness(self, selector):
        """From 0 to 1, of the page's background and of the text that the selector finds."""
        return self.ask("""(() => {
          const of = (e, what) => {
            const c = getComputedStyle(e)[what].match(/[\\d.]+/g).map(Number);
            return (0.299 * c[0] + 0.587 * c[1] + 0.114 * c[2]) / 255; };
          const text = document.querySelector(%s);
          return [of(document.body, 'backgroundColor'), of(text, 'color')]; })()"""
                        % json.dumps(selector)) or (None, None)

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self):
        self.process.kill()
        self.process.wait()


def find():
    """Chromium's program, or None."""
    return (os.environ.get("CHROMIUM") or shutil.which("chromium")
            or shutil.which("chromium-browser"))
