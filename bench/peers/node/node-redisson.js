// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
//
// node-redisson by its README: one Redisson for each process, a lock for each flow, with watchdog.
"use strict";

const { Redisson } = require("node-redisson");

require("./worker")((port) => {
    const redisson = new Redisson({ redis: { options: { host: "127.0.0.1", port } } });
    return (name) => {
        const lock = redisson.getLock(name);
        return { acquire: () => lock.lock(), release: () => lock.unlock() };
    };
});
