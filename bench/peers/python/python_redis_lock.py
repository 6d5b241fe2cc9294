# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""python-redis-lock with an expiry, as its README has it.

--renew adds its automatic renewal, which starts and ends a thread for each hold.
"""

import sys

import redis
import redis_lock

import worker

renew = "--renew" in sys.argv
if renew:
    sys.argv.remove("--renew")


def peer(port):
    client = redis.Redis(port=port)
    return lambda name: redis_lock.Lock(client, name, expire=60, auto_renewal=renew)


worker.main(peer)
