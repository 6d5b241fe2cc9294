# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""What the logs and the server's counters say: figures of one run, and of several together."""

import statistics
from collections import Counter
from itertools import product


def percentile(samples, share):
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _owner(hold):
    return hold.process, hold.thread


def _times(samples_ns, name):
    """p50, p99 and max in us; nothing when there was no sample."""
    if not samples_ns:
        return {f"{name}_samples": 0}
    return {
        f"{name}_samples": len(samples_ns),
        f"{name}_p50_us": percentile(samples_ns, 0.5) / 1e3,
        f"{name}_p99_us": percentile(samples_ns, 0.99) / 1e3,
        f"{name}_max_us": max(samples_ns) / 1e3,
    }


def _handovers(holds):
    """From the call of a release to the return of the next acquire, where the next owner is another
    and was waiting already."""
    return [
        next_one.held - last.let_go
        for last, next_one in zip(holds, holds[1:])
        if _owner(last) != _owner(next_one) and next_one.asked < last.let_go
    ]


def _overlaps(holds):
    """Holds that began before the one before them was let go of: not one is allowed."""
    return sum(after.held < before.let_go for before, after in zip(holds, holds[1:]))


def _share(holds, scenario):
    """The least served over the most served of all that were to be served."""
    served = Counter(_owner(hold) for hold in holds)
    if not scenario.is_contended:
        return {}
    everyone = product(range(scenario.processes), range(scenario.threads))
    return {"share_min_over_max": min(served[who] for who in everyone) / max(served.values())}


def judge(scenario, all_holds, before, after, senders, client_cpu_us):
    """Figures of what lies between two looks at the server's counters."""
    holds = [hold for hold in all_holds if before.when_ns <= hold.held < after.when_ns]
    if not holds:
        return {"failed": "not one acquisition in the time"}
    count, seconds = len(holds), (after.when_ns - before.when_ns) / 1e9
    calls = after.calls - before.calls
    sent = senders.sent(calls)
    switches = sum(_owner(a) != _owner(b) for a, b in zip(holds, holds[1:]))
    return {
        "acquisitions": count,
        "per_second": count / seconds,
        "pair_p50_us": percentile([hold.freed - hold.asked for hold in holds], 0.5) / 1e3,
        "switches_per_second": switches / seconds,
        "overlaps": _overlaps(all_holds),
        **({"client_commands": sent / count} if sent is not None else {}),
        "server_commands": sum(calls.values()) / count,
        "server_cpu_us": (after.cpu_us - before.cpu_us) / count,
        "client_cpu_us": client_cpu_us / count,
        **_share(holds, scenario),
        **_times(_handovers(holds), "handover"),
    }


def judge_rounds(all_holds, first_ns):
    holds = [hold for hold in all_holds if hold.asked >= first_ns]
    samples = _handovers(holds)
    if not samples:
        return {"failed": "not one hand-over in the time"}
    return {
        "acquisitions": len(holds),
        "overlaps": _overlaps(all_holds),
        **_times(samples, "handover"),
    }


def together(runs):
    """The median of the runs for each figure; the worst of what is a maximum or a fault."""
    failed = [run["failed"] for run in runs if "failed" in run]
    runs = [run for run in runs if "failed" not in run]
    if not runs:
        return {"failed": failed[0]} if failed else {}
    names = dict.fromkeys(name for run in runs for name in run)
    result = {}
    for name in names:
        values = [run[name] for run in runs if name in run]
        if name == "repeated":
            result[name] = values[0]
            continue
        worst = name.endswith("_max_us") or name == "overlaps"
        result[name] = max(values) if worst else statistics.median(values)
    return result


def passes_on(found):
    """Does a release mostly serve another owner, rather than the one who let go?"""
    return found.get("switches_per_second", 0) >= 0.5 * found.get("per_second", 1)


def _best(results, scenario, name, choose):
    """The best of the peers, hirelock left out: (value, key).

    Where owners seldom change, only lucky tries are hand-overs, so that these are not compared.
    """
    values = [
        (found[scenario][name], key)
        for key, found in results.items()
        if key not in ("hirelock", "raw")
        and name in found.get(scenario, {})
        and (scenario == "rounds" or "handover" not in name or passes_on(found[scenario]))
    ]
    return choose(values) if values else None


def summary(results):
    """[{name, value, unit}]: hirelock against the best peer, more than 1 being better."""
    ours = results.get("hirelock", {})
    figures = []

    def add(figure, scenario, name, choose, ratio):
        best = _best(results, scenario, name, choose)
        if best and name in ours.get(scenario, {}):
            value = ratio(ours[scenario][name], best[0])
            figures.append({"name": figure, "value": value, "unit": "x", "peer": best[1]})

    def more(mine, theirs):
        return mine / theirs

    def less(mine, theirs):
        return theirs / mine

    add("pass_vs_best_peer", "threads8", "per_second", max, more)
    add("pass_switches_vs_best_peer", "threads8", "switches_per_second", max, more)
    add("handover_vs_best_peer", "rounds", "handover_p50_us", min, less)
    add("handover_hold0_vs_best_peer", "procs4", "handover_p50_us", min, less)
    add("uncontended_vs_best_peer", "alone", "pair_p50_us", min, less)
    add("redlock_vs_best_peer", "masters5", "pair_p50_us", min, less)
    return figures
