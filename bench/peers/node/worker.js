// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
//
// One client process of the peers' benchmark. It speaks the driver's protocol (README.md) and knows
// nothing of the lock that it acquires and releases. Node has no threads that share a client, so
// the flows of one process are asynchronous tasks.
"use strict";

const fs = require("fs");
const readline = require("readline");
const { setTimeout: sleep } = require("timers/promises");

const GRACE_MS = 2000;
const now = process.hrtime.bigint; // CLOCK_MONOTONIC, in ns

const option = {
    port: 0, masters: "", name: "", log: "", scenario: "loop", threads: 1,
    "warm-ms": 0, "length-ms": 0, "hold-us": 0, "phase-us": 0,
};

function readOptions() {
    const words = process.argv.slice(2);
    for (let i = 0; i + 1 < words.length; i += 2) {
        const key = words[i].slice(2);
        if (!(key in option)) throw new Error(`unknown option ${words[i]}`);
        option[key] = typeof option[key] === "number" ? Number(words[i + 1]) : words[i + 1];
    }
}

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

function say(word) {
    fs.writeSync(1, `${word}\n`);
}

async function sleepUntil(due) {
    await sleep(Math.max(0, Number(due - now()) / 1e6));
}

async function hold(flow, milliseconds, tell) {
    const asked = now();
    await flow.lock.acquire();
    const held = now();
    if (tell) say("held");
    if (milliseconds > 0) await sleep(milliseconds);
    const letGo = now();
    await flow.lock.release();
    flow.log.push(flow.number, asked, held, letGo, now());
}

async function run(flow, startNs) {
    await sleepUntil(startNs);
    const end = startNs + BigInt(option["length-ms"]) * 1000000n;
    while (now() < end) await hold(flow, option["hold-us"] / 1000, false);
    if (option.scenario !== "rounds") return;
    say("rounds");
    while (!(await lines.next()).done) {
        await hold(flow, (Math.random() * option["phase-us"]) / 1000, true); // "go"
    }
}

async function warm(lock) {
    const end = now() + BigInt(option["warm-ms"]) * 1000000n;
    while (now() < end) {
        await lock.acquire();
        await lock.release();
    }
}

function write(flows) {
    const times = flows.flatMap((flow) => flow.log);
    fs.writeFileSync(option.log, new Uint8Array(BigInt64Array.from(times, BigInt).buffer));
}

// Who is still waiting a while after the end is left behind; that hold is not in the log.
async function wait(running, startNs) {
    const all = Promise.all(running);
    if (option.scenario === "rounds") return all;
    await sleepUntil(startNs + BigInt(option["length-ms"]) * 1000000n);
    return Promise.race([all, sleep(GRACE_MS)]);
}

// peer(port, ports) gives a function that makes a lock, one for each flow, from a name; the ports are
// those of all masters, or the one server's.
async function main(peer) {
    readOptions();
    const ports = option.masters ? option.masters.split(",").map(Number) : [option.port];
    const make = peer(option.port, ports);
    await warm(make(`${option.name}:warm:${process.pid}`));
    const flows = [];
    for (let i = 0; i < option.threads; i++) {
        flows.push({ number: i, lock: make(option.name), log: [] });
    }
    say("ready");
    const startNs = BigInt((await lines.next()).value);
    await wait(flows.map((flow) => run(flow, startNs)), startNs);
    write(flows);
    process.exit(0);
}

module.exports = (peer) => main(peer).catch((error) => {
    console.error(error);
    process.exit(1);
});
