# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""The scenarios, and one run of each of them: a crew is set to work, and looked at from outside."""

import shutil
import tempfile
import time
from dataclasses import dataclass

from driver.crew import Broken, Crew
from driver.figures import judge, judge_rounds

LISTEN_S = 0.25  # MONITOR, behind what is counted
MARGIN_S = 0.3  # the workers go on for so long behind that


@dataclass(frozen=True)
class Scenario:
    key: str
    title: str
    processes: int = 1
    threads: int = 1
    hold_us: int = 0
    phase_us: int = 0  # set: rounds, with a release after a random time up to this
    masters: int = 1  # more than one: each peer's Redlock

    @property
    def is_contended(self):
        return self.processes * self.threads > 1

    def is_for(self, peer):
        """Can the peer wait, and lock several masters, if it has to?"""
        return not (peer.alone and self.is_contended) and (self.masters == 1 or peer.locks_masters)

    @property
    def is_loop_of_many(self):
        return self.is_contended and not self.phase_us


SCENARIOS = (
    Scenario("alone", "one thread, alone"),
    Scenario("threads8", "8 threads of one process on one name", threads=8),
    Scenario("procs4", "4 processes on one name, hold 0", processes=4),
    Scenario("procs4_1ms", "4 processes on one name, hold 1 ms", processes=4, hold_us=1000),
    Scenario(
        "rounds",
        "4 processes, 3 of them waiting, release at a random time",
        processes=4,
        phase_us=100_000,
    ),
    Scenario("masters5", "one thread, alone, a Redlock on 5 masters", masters=5),
)


@dataclass(frozen=True)
class Extent:
    """How long the runs are, and how often they are repeated."""

    seconds: float
    rounds: int
    repeats: int
    patience: int  # times a peer's own time to warm up and to settle


QUICK = Extent(seconds=0.7, rounds=20, repeats=1, patience=1)
FULL = Extent(seconds=1.5, rounds=60, repeats=3, patience=2)


def _sleep_until(when_ns):
    time.sleep(max(0, when_ns - time.monotonic_ns()) / 1e9)


def _run_loop(crew, server, scenario, extent):
    settle_s = extent.patience * crew.peer.settle_ms / 1000
    start_ns = crew.begin()
    _sleep_until(start_ns + int(1e9 * settle_s))
    before, before_cpu = server.counts(), crew.cpu_us()
    _sleep_until(start_ns + int(1e9 * (settle_s + extent.seconds)))
    after, after_cpu = server.counts(), crew.cpu_us()
    senders = server.senders(LISTEN_S)
    return judge(scenario, crew.finish(), before, after, senders, after_cpu - before_cpu)


def _run_rounds(crew, extent):
    """Whoever got the lock lets go by itself; only then is the one before told to ask again."""
    crew.begin()
    crew.wait_all("rounds", 60)
    first_ns = time.monotonic_ns()
    for number in range(len(crew.workers)):
        crew.tell(number, "go")
    holder, served = None, 0
    deadline = time.monotonic() + 2 * extent.rounds
    while served < extent.rounds and time.monotonic() < deadline:
        for number, said in crew.hear(deadline):
            if said != "held":
                continue
            if holder is not None:
                crew.tell(holder, "go")
            holder = number
            served += 1
    return judge_rounds(crew.finish(), first_ns)


def _length_ms(peer, scenario, extent):
    settle_ms = extent.patience * peer.settle_ms
    if scenario.phase_us:
        return settle_ms  # contended, so that everything is as warm as it gets
    return int(settle_ms + 1000 * (extent.seconds + LISTEN_S + MARGIN_S))


def _run_once(peer, scenario, server, core, extent):
    folder = tempfile.mkdtemp(prefix="hirelock-peers-")
    crew = None
    server.flush()
    try:
        crew = Crew(
            peer,
            server,
            core,
            folder,
            scenario.processes,
            threads=scenario.threads,
            scenario="rounds" if scenario.phase_us else "loop",
            hold_us=scenario.hold_us,
            phase_us=scenario.phase_us,
            warm_ms=extent.patience * peer.warm_ms,
            length_ms=_length_ms(peer, scenario, extent),
            **({"masters": server.ports} if scenario.masters > 1 else {}),
        )
        if scenario.phase_us:
            return _run_rounds(crew, extent)
        return _run_loop(crew, server, scenario, extent)
    except Broken as broken:
        return {"failed": str(broken)}
    finally:
        if crew:
            crew.close()
        shutil.rmtree(folder, ignore_errors=True)


def run(peer, scenario, server, core, extent):
    """Figures of one run, or {"failed": why}; a run that failed is tried once more."""
    found = _run_once(peer, scenario, server, core, extent)
    if "failed" not in found:
        return found
    return {**_run_once(peer, scenario, server, core, extent), "repeated": found["failed"]}
