# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""The tables of the page: which figures, under which headings. The prose is in page.md."""

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
        "The share is that of the least over the most served thread. Commands and CPU are for one "
        "acquisition.",
    ),
    "procs4": (_SHARED, "The share is that of the least over the most served process."),
    "procs4_1ms": (_SHARED, "As above; who has the lock sleeps for 1 ms."),
    "rounds": (
        [*_LATENCY, ("handover_samples", "hand-overs")],
        "What a waiter waits for after a release, which comes at a random time.",
    ),
    "masters5": (
        [("per_second", "pairs/s"), ("pair_p50_us", "pair p50, us"), *_COST],
        "Acquire and release, nobody else, by the libraries that lock several masters. Commands and "
        "CPU are for one pair, of all five masters together, which share one core here.",
    ),
}
