# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""redis-py's Lock as redis.Redis.lock() makes it: tries every 0.1 s, renews nothing."""

import redis

import worker


def peer(port):
    client = redis.Redis(port=port)
    return lambda name: client.lock(name, timeout=60)


worker.main(peer)
