# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""script/shop --test: all that is judged, and the count of it."""

import signal
import time

import attacks
import browser  # of tests/support
import sales
import scene
import verdicts


def close(stage, judge):
    """The end of a law: its shops close, as they should."""
    for shop in stage.shops:
        if not shop.has_ended():
            judge.same(shop.end(signal.SIGTERM), 0, f"{shop.name}: exit code: {shop.said()}")


def run(stage):
    program = browser.find()
    if not program:
        raise scene.Lack("chromium is not here: script/bootstrap docs")
    judge = verdicts.Verdicts()
    stage.start()
    chromium = browser.Browser(program, stage.dir / "chromium")
    try:
        chromium.attach()
        for law in sales.LAWS + attacks.LAWS:
            before, began = judge.failed, time.monotonic()
            law(stage, chromium, judge)
            close(stage, judge)
            word = "ok  " if judge.failed == before else "FAIL"
            print(f"{word} {law.__doc__.splitlines()[0]} ({time.monotonic() - began:.1f} s)",
                  flush=True)
    finally:
        chromium.close()
    for shop in stage.shops:
        judge.check("Sanitizer" not in shop.said(), f"{shop.name}: {shop.said()}")
    print(f"{judge.passed} passed, {judge.failed} failed")
    return judge.failed > 0
