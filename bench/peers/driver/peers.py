# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""The peers: which worker runs each of them, and where its version is pinned."""

import re
from dataclasses import dataclass

from driver.places import SOURCE


@dataclass(frozen=True)
class Peer:
    key: str
    title: str
    kind: str  # the toolchain that builds and runs it
    program: tuple  # of that toolchain
    wakes: str  # how a waiter learns of a release
    manifest: str = ""
    pinned: str = ""  # a pattern whose groups are the version
    warm_ms: int = 200
    settle_ms: int = 300  # the first part of a run, which does not count
    alone: bool = False  # it cannot wait
    locks_masters: bool = False  # several at a time, by the algorithm of redis.io's page

    @property
    def version(self):
        if not self.manifest:
            return ""
        with open(SOURCE / self.manifest, encoding="utf-8") as file:
            return ".".join(re.search(self.pinned, file.read()).groups())


def _go(module):
    return rf"{re.escape(module)} v(\S+)"


def _npm(package):
    return rf'"{package}": "(\S+)"'


def _jvm(key, title, word, wakes):
    pinned = r"<artifactId>redisson</artifactId>\s*<version>([^<]+)"
    return Peer(
        key,
        title,
        "java",
        ("hirelock.peers.RedissonLocks", word),
        wakes,
        "java/pom.xml",
        pinned,
        warm_ms=2000,
        settle_ms=1500,
    )


OURS = "../../include/hirelock/version.h"
PYPI = "python/requirements.txt"
NPM = "node/package.json"
GO = "go/go.mod"

PEERS = (
    Peer(
        "hirelock",
        "hirelock",
        "c",
        ("hirelock",),
        "grant by the release",
        OURS,
        r"MAJOR (\d+)\s#define HL_VERSION_MINOR (\d+)\s#define HL_VERSION_PATCH (\d+)",
        locks_masters=True,
    ),
    Peer("raw", "raw hiredis, SET NX PX and a script", "c", ("raw",), "never", alone=True),
    _jvm("redisson", "Redisson RLock", "lock", "message, then a new try"),
    _jvm("redisson_fair", "Redisson RFairLock", "fair", "message to the next, then a new try"),
    Peer(
        "redsync",
        "redsync",
        "go",
        ("redsync",),
        "tries every 50 to 250 ms",
        GO,
        _go("github.com/go-redsync/redsync/v4"),
        locks_masters=True,
    ),
    Peer(
        "redislock",
        "bsm/redislock",
        "go",
        ("redislock",),
        "tries every 100 ms",
        GO,
        _go("github.com/bsm/redislock"),
    ),
    Peer(
        "rueidislock",
        "rueidislock",
        "go",
        ("rueidislock",),
        "invalidation, then a new try",
        GO,
        _go("github.com/redis/rueidis"),
    ),
    Peer(
        "redis_py",
        "redis-py Lock",
        "python",
        ("redis_py.py",),
        "tries every 100 ms",
        PYPI,
        r"redis\[hiredis\]==(\S+)",
    ),
    Peer(
        "python_redis_lock",
        "python-redis-lock",
        "python",
        ("python_redis_lock.py",),
        "BLPOP, then a new try",
        PYPI,
        r"python-redis-lock==(\S+)",
    ),
    Peer(
        "python_redis_lock_renew",
        "python-redis-lock, auto_renewal",
        "python",
        ("python_redis_lock.py", "--renew"),
        "BLPOP, then a new try",
        PYPI,
        r"python-redis-lock==(\S+)",
    ),
    Peer(
        "redlock",
        "redlock",
        "node",
        ("redlock.js",),
        "tries every 100 to 300 ms",
        NPM,
        _npm("redlock"),
        locks_masters=True,
    ),
    Peer(
        "redis_semaphore",
        "redis-semaphore Mutex",
        "node",
        ("redis-semaphore.js",),
        "tries every 10 ms",
        NPM,
        _npm("redis-semaphore"),
    ),
    Peer(
        "node_redisson",
        "node-redisson",
        "node",
        ("node-redisson.js",),
        "message, then a new try",
        NPM,
        _npm("node-redisson"),
    ),
)
