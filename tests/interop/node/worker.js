// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
//
// redlock, which does what lines tell it (../README.md). Its settings are its own, but that it tries
// again every 50 ms, and as often as it is told; ioredis does not keep requests for a master that is
// out of reach, and gives up an answer after two seconds.
"use strict";

const fs = require("fs");
const readline = require("readline");
const { setTimeout: sleep } = require("timers/promises");
const Redis = require("ioredis");
const { default: Redlock, ExecutionError } = require("redlock");

const SETTINGS = { retryCount: 0, retryDelay: 50, retryJitter: 10 };
const CLIENT = { maxRetriesPerRequest: 0, commandTimeout: 2000, retryStrategy: () => 100 };
const SERVE_LEASE_MS = 30000;
const now = process.hrtime.bigint; // CLOCK_MONOTONIC, in ns

// Whatever the action throws is its answer.
async function give(number, action) {
    let result;
    try {
        const value = await action();
        result = `= ${value === undefined ? "-" : value}`;
    } catch (error) {
        result = `! ${error.name}: ${error.message}`;
    }
    fs.writeSync(1, `${number} ${now()} ${result.replace(/\n/g, " ")}\n`);
}

// A number that is counted up by reading it and writing one more.
class Stock {
    constructor(client, number, writer) {
        this.client = client;
        this.keys = [number, writer];
        this.turns = this.handovers = 0;
        this.longest = 0n;
    }

    async count() {
        const [number, writer] = await this.client.mget(this.keys);
        await this.client.mset(this.keys[0], Number(number) + 1, this.keys[1], "node");
        this.turns++;
        if (writer === "c") this.handovers++;
    }

    async serve(acquire, milliseconds) {
        const end = now() + BigInt(milliseconds) * 1000000n;
        for (let asked = now(); asked < end; asked = now()) {
            const lock = await acquire();
            if (now() - asked > this.longest) this.longest = now() - asked;
            await this.count();
            await lock.release();
            await sleep(1);
        }
        return `${this.turns} ${this.handovers} ${this.longest / 1000000n}`;
    }
}

// Who has clients of its own, and does one thing after the other.
class Owner {
    constructor(library, urls) {
        if (library !== "redlock") throw new Error(`there is no ${library}`);
        this.clients = urls.split(",").map((url) => new Redis(url, CLIENT));
        for (const client of this.clients) client.on("error", () => {}); // answers tell it
        this.redlock = new Redlock(this.clients, SETTINGS);
        this.locks = new Map();
        this.last = Promise.resolve();
    }

    add(number, method, words) {
        this.last = this.last.then(() => give(number, () => this[method](...words)));
    }

    async acquire(name, leaseMs, tries) {
        const settings = { retryCount: Number(tries) - 1 };
        this.locks.set(name, await this.redlock.acquire([name], Number(leaseMs), settings));
        return true;
    }

    async extend(name, leaseMs) {
        this.locks.set(name, await this.locks.get(name).extend(Number(leaseMs)));
        return true;
    }

    holds(name) {
        return this.locks.get(name).expiration > Date.now();
    }

    async release(name) {
        await this.locks.get(name).release();
    }

    // Each try is an acquire of its own: between the tries of one, it keeps what a minority gave it.
    serve(name, number, writer, milliseconds) {
        const acquire = async () => {
            for (;;) {
                try {
                    return await this.redlock.acquire([name], SERVE_LEASE_MS);
                } catch (error) {
                    if (!(error instanceof ExecutionError)) throw error;
                }
                await sleep(40 + Math.random() * 20);
            }
        };
        return new Stock(this.clients[0], number, writer).serve(acquire, milliseconds);
    }
}

const owners = new Map();

function manage(order, who, library, urls) {
    if (order === "open") {
        owners.set(who, new Owner(library, urls));
    } else if (order === "closeAll") {
        for (const owner of owners.values()) owner.clients.forEach((client) => client.disconnect());
        owners.clear();
    } else {
        throw new Error(`there is no ${order}`);
    }
}

function obey(line) {
    const [number, who, order, ...words] = line.split(" ");
    if (owners.has(who)) owners.get(who).add(number, order, words);
    else give(number, () => manage(order, ...words));
}

readline.createInterface({ input: process.stdin }).on("line", obey).on("close", () => process.exit(0));
