// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
//
// The Mutex of redis-semaphore by its README, all options as they are: it tries again every 10 ms
// and refreshes by itself. Waiting ends after ten seconds; it is called again then.
"use strict";

const Redis = require("ioredis");
const { Mutex, TimeoutError } = require("redis-semaphore");

async function acquire(mutex) {
    for (;;) {
        try {
            return await mutex.acquire();
        } catch (error) {
            if (!(error instanceof TimeoutError)) throw error;
        }
    }
}

require("./worker")((port) => {
    const redis = new Redis({ host: "127.0.0.1", port });
    return (name) => {
        let mutex = null;
        return {
            acquire: () => {
                mutex = new Mutex(redis, name);
                return acquire(mutex);
            },
            release: () => mutex.release(),
        };
    };
});
