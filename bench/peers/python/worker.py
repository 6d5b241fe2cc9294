# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""One client process of the peers' benchmark.

It speaks the driver's protocol (README.md) and knows nothing of the lock that it acquires and
releases.
"""

import argparse
import array
import os
import random
import sys
import threading
import time

GRACE_NS = 2_000_000_000
now = time.monotonic_ns  # CLOCK_MONOTONIC


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--scenario", choices=("loop", "rounds"), default="loop")
    parser.add_argument("--threads", type=int, default=1)
    for name in ("--warm-ms", "--length-ms", "--hold-us", "--phase-us"):
        parser.add_argument(name, type=int, default=0)
    return parser.parse_args()


def say(word):
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


def sleep_until(due):
    time.sleep(max(0, due - now()) / 1e9)


class Flow(threading.Thread):
    """What one thread does; `log` holds five times for each hold, in ns."""

    def __init__(self, number, lock, option, start_ns):
        super().__init__(daemon=True)
        self.number, self.lock, self.option, self.start_ns = number, lock, option, start_ns
        self.log = array.array("q")

    def hold(self, seconds, tell):
        asked = now()
        self.lock.acquire()
        held = now()
        if tell:
            say("held")
        if seconds > 0:
            time.sleep(seconds)
        let_go = now()
        self.lock.release()
        self.log.extend((self.number, asked, held, let_go, now()))

    def run(self):
        sleep_until(self.start_ns)
        end = self.start_ns + self.option.length_ms * 1_000_000
        while now() < end:
            self.hold(self.option.hold_us / 1e6, False)
        if self.option.scenario == "rounds":
            say("rounds")
            for _ in sys.stdin:  # "go"
                self.hold(random.random() * self.option.phase_us / 1e6, True)


def warm(lock, milliseconds):
    end = now() + milliseconds * 1_000_000
    while now() < end:
        lock.acquire()
        lock.release()


def wait(flows, option, start_ns):
    """Who is still waiting a while after the end is left behind; that hold is not in the log."""
    end = start_ns + option.length_ms * 1_000_000
    for flow in flows:
        if option.scenario == "rounds":
            flow.join()
        else:
            flow.join(max(0.0, (end + GRACE_NS - now()) / 1e9))


def main(peer):
    """`peer(port)` gives a function that makes a lock, one for each thread, from a name."""
    option = options()
    make = peer(option.port)
    warm(make(f"{option.name}:warm:{os.getpid()}"), option.warm_ms)
    locks = [make(option.name) for _ in range(option.threads)]
    say("ready")
    start_ns = int(sys.stdin.readline())
    flows = [Flow(number, lock, option, start_ns) for number, lock in enumerate(locks)]
    for flow in flows:
        flow.start()
    wait(flows, option, start_ns)
    with open(option.log, "wb") as file:
        for flow in flows:
            array.array("q", flow.log).tofile(file)
    os._exit(0)
