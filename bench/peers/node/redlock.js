// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
//
// redlock by its README, all settings as they are: it tries again every 200 ms (and jitter), ten
// times; it is called again then. The lock is not extended: the lease is long enough.
"use strict";

const Redis = require("ioredis");
const { default: Redlock, ExecutionError } = require("redlock");

async function acquire(redlock, name) {
    for (;;) {
        try {
            return await redlock.acquire([name], 60000);
        } catch (error) {
            if (!(error instanceof ExecutionError)) throw error;
        }
    }
}

require("./worker")((_, ports) => {
    const redlock = new Redlock(ports.map((port) => new Redis({ host: "127.0.0.1", port })));
    return (name) => {
        let held = null;
        return {
            acquire: async () => { held = await acquire(redlock, name); },
            release: () => held.release(),
        };
    };
});
