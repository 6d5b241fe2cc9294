# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""The words of the page that do not depend on what was found."""

HEAD = """# Peers

hirelock beside the lock libraries that people use today, each from its package and as its own documentation has it. This page
is written by `script/bench --peers`; `bench/peers` has the programs."""

METHOD = """## Method

- **Processes of their own.** Each peer is a small program in its own language (`bench/peers`). It logs when it called and when it returned
  from each acquire and release, by `CLOCK_MONOTONIC`, which is one clock for all processes of a machine. Everything here is computed
  from these logs and from the server's counters, by the same code for all. The logs are also checked: no lock had two holders at a time.
- **One server**, private and empty, on TCP loopback, on a core of its own; all client processes share the other core. So a
  runtime that wants many cores has one here, and four processes compete for it. That favours programs that need little CPU time; it
  is the placement that gives the same figures twice on two cores.
- **Defaults.** Options are those of each README. Leases are longer than the run. A library that gives up after a number of tries is called again.
  Watchdogs are on where the library has them: redsync, bsm/redislock, redis-py and redlock renew nothing by themselves, so they do
  less than hirelock, Redisson, rueidislock, redis-semaphore and node-redisson. python-redis-lock is shown both ways. hirelock has
  none of its options on: no posted release, no linger, no busy poll.
- **Threads** are goroutines in Go and asynchronous tasks in Node.js, all on one client. Python's threads share one interpreter lock.
- **Warm-up.** Each process first works alone, then all of them together, before anything counts; a JVM gets ten times as long as
  the others, and its compiler may still be at work then. `client CPU` shows it.
- **Commands.** *Server commands* are all calls in `INFO commandstats`, those that scripts make included. *Client commands* are what clients sent:
  the same counters, divided by a stretch of `MONITOR` right behind the counted time, which tells for each command whether clients or scripts
  call it. The driver's own `INFO` is left out.
- **CPU** of the server is that of `INFO`, of the clients that of their processes' clocks; both for each acquisition in the counted time.
- **Barging.** A library that lets the releaser take the lock again at once makes many acquisitions a second and serves nobody else. So
  *owner switches* and the *share* of the least over the most served stand beside acquisitions. Where switches are few, a hand-over
  is a lucky try in the gap between two holds, and its latency says nothing.
- **Hand-over** is the time from the call of a release to the return of the next owner's acquire, counted when that owner is another one and was
  waiting already. In the last scenario one of four processes holds for a random time up to 100 ms, the longest fixed polling
  interval among the peers, while the other three wait; who let go asks again only when another has the lock. That is what a user waits for.
- The raw side is what one writes without a library on a blocking hiredis connection. It renews nothing and cannot wait."""

BARGING = """Peers that barge, for which fewer than half of the acquisitions change the owner, are left out of that list where several owners
want one name. They need fewer commands and less CPU time for an acquisition, because nearly each is an uncontended one, and so
some make more of them in a second than a lock that serves whoever waits:"""

# What the list of better peers looks at.
COMPARED = {
    "per_second",
    "pair_p50_us",
    "share_min_over_max",
    "handover_p50_us",
    "client_commands",
    "server_commands",
    "server_cpu_us",
    "client_cpu_us",
}

_SPEED = ("per_second", "acquisitions/s")
_COST = [
    ("client_commands", "client commands"),
    ("server_commands", "server commands"),
    ("server_cpu_us", "server CPU, us"),
    ("client_cpu_us", "client CPU, us"),
]
_LATENCY = [
    ("handover_p50_us", "hand-over p50, us"),
    ("handover_p99_us", "p99, us"),
    ("handover_max_us", "max, us"),
]
_SHARED = [
    _SPEED,
    ("switches_per_second", "owner switches/s"),
    ("share_min_over_max", "share"),
    *_LATENCY,
    *_COST,
]

# For each scenario its columns, as (figure, heading), and what to know of them.
TABLES = {
    "alone": (
        [("per_second", "pairs/s"), ("pair_p50_us", "pair p50, us"), *_COST],
        "Acquire and release, nobody else. Commands and CPU are for one pair.",
    ),
    "threads8": (
        _SHARED,
        "The share is that of the least over the most served thread. Commands and CPU are for one acquisition.",
    ),
    "procs4": (_SHARED, "The share is that of the least over the most served process."),
    "procs4_1ms": (_SHARED, "As above; who has the lock sleeps for 1 ms."),
    "rounds": (
        [*_LATENCY, ("handover_samples", "hand-overs")],
        "What a waiter waits for after a release, which comes at a random time.",
    ),
}
