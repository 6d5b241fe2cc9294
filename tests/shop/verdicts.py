# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""What the laws of script/shop --test say, and what they ask the shop."""

import json

import scene
import web


class Verdicts:
    def __init__(self):
        self.passed, self.failed = 0, 0

    def check(self, is_good, text):
        self.passed += bool(is_good)
        self.failed += not is_good
        if not is_good:
            print("FAIL:", text, flush=True)
        return is_good

    def same(self, found, wanted, text):
        return self.check(found == wanted, f"{text}: {found!r}, not {wanted!r}")


def state(shop):
    """The shop's report; {} while there is none."""
    status, text = web.ask(shop.address, "GET", "/state")
    return json.loads(text) if status == 200 else {}


def identity(shop):
    """The first half of its fields in Redis."""
    return scene.wait_until("a report", lambda: state(shop).get("me"))


def metric(shop, name):
    for line in web.ask(shop.address, "GET", "/metrics")[1].splitlines():
        if line.startswith(name + " "):
            return int(line.split()[1])
    raise scene.Trouble(f"no metric {name}")
