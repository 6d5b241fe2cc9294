# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""redis-py's Lock, and python-redis-lock, which do what lines tell them (../README.md).

Both are used as their documentation has it, but that they try again every 50 ms.
"""

import queue
import sys
import threading
import time

import redis
import redis_lock

PAUSE_S = 0.05
SERVE_LEASE_MS = 30000
said = threading.Lock()


class RedisPy:
    """redis.Redis.lock(). Its token is in storage of the thread's."""

    def __init__(self, client, name, lease_ms):
        self.lock = client.lock(name, timeout=lease_ms / 1000)

    def acquire(self, tries):
        wait_s = (tries - 1) * PAUSE_S
        return self.lock.acquire(sleep=PAUSE_S, blocking=tries > 1, blocking_timeout=wait_s)

    def extend(self, lease_ms):
        return self.lock.extend(lease_ms / 1000, replace_ttl=True)

    def holds(self):
        return self.lock.owned()

    def release(self):
        self.lock.release()


class PythonRedisLock:
    """Waits at a list for as long as its expiry, and so often again."""

    def __init__(self, client, name, lease_ms):
        self.lock = redis_lock.Lock(client, name, expire=max(1, lease_ms // 1000))

    def acquire(self, tries):
        return self.lock.acquire(blocking=tries > 1)

    def release(self):
        self.lock.release()


LIBRARIES = {"redis-py": RedisPy, "python-redis-lock": PythonRedisLock}


def text_of(value):
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)


def give(number, action):
    """Whatever the action raises is its answer."""
    try:
        result = "= " + text_of(action())
    except Exception as error:  # pylint: disable=broad-except
        result = f"! {type(error).__name__}: {error}"
    line = f"{number} {time.monotonic_ns()} {result}".replace("\n", " ")
    with said:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


class Stock:
    """A number that is counted up by reading it and writing one more."""

    def __init__(self, client, number, writer):
        self.client, self.keys = client, (number, writer)
        self.turns = self.handovers = self.longest_ns = 0

    def count(self):
        number, writer = self.client.mget(self.keys)
        self.client.mset({self.keys[0]: int(number) + 1, self.keys[1]: "python"})
        self.turns += 1
        self.handovers += writer == b"c"

    def serve(self, lock, milliseconds):
        end = time.monotonic_ns() + milliseconds * 1_000_000
        while (asked := time.monotonic_ns()) < end:
            while not lock.acquire(1000):
                pass
            self.longest_ns = max(self.longest_ns, time.monotonic_ns() - asked)
            self.count()
            lock.release()
            time.sleep(0.001)
        return f"{self.turns} {self.handovers} {self.longest_ns // 1_000_000}"


class Owner(threading.Thread):
    """Who has a client of its own, and does one thing after the other."""

    def __init__(self, library, url):
        super().__init__(daemon=True)
        self.make, self.client = LIBRARIES[library], redis.Redis.from_url(url)
        self.locks, self.orders = {}, queue.Queue()

    def acquire(self, name, lease_ms, tries):
        self.locks[name] = self.make(self.client, name, int(lease_ms))
        return self.locks[name].acquire(int(tries))

    def extend(self, name, lease_ms):
        return self.locks[name].extend(int(lease_ms))

    def holds(self, name):
        return self.locks[name].holds()

    def release(self, name):
        return self.locks[name].release()

    def serve(self, name, number, writer, milliseconds):
        lock = self.make(self.client, name, SERVE_LEASE_MS)
        return Stock(self.client, number, writer).serve(lock, int(milliseconds))

    def run(self):
        methods = (self.acquire, self.extend, self.holds, self.release, self.serve)
        known = {method.__name__: method for method in methods}
        while True:
            number, method, words = self.orders.get()
            give(number, lambda: known[method](*words))


class Worker:
    """Reads orders on its input until that ends."""

    def __init__(self):
        self.owners = {}

    def manage(self, order, *words):
        if order == "open":
            who, library, url = words
            self.owners[who] = Owner(library, url)
            self.owners[who].start()
        elif order == "closeAll":
            for owner in self.owners.values():
                owner.client.close()
            self.owners.clear()
        else:
            raise ValueError(f"there is no {order}")

    def obey(self, number, who, order, *words):
        if who == "-":
            give(number, lambda: self.manage(order, *words))
        elif who in self.owners:
            self.owners[who].orders.put((number, order, words))
        else:
            give(number, lambda: self.owners[who])

    def run(self):
        for line in sys.stdin:
            self.obey(*line.split())


Worker().run()
