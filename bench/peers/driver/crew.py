# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""A crew: the workers of one run, from their start to their logs."""

import array
import os
import selectors
import subprocess
import time
from collections import namedtuple

from driver.build import command
from driver.cores import pinned

Hold = namedtuple("Hold", "held let_go freed asked process thread")

START_S = 40
END_S = 20


class Broken(Exception):
    """A worker failed, and how."""


class Crew:
    def __init__(self, peer, server, core, folder, processes, **options):
        self.peer, self.folder = peer, folder
        self.workers, self.logs = [], []
        self.selector = selectors.DefaultSelector()
        self.said = {}
        for number in range(processes):
            log = os.path.join(folder, f"{number}.log")
            words = ["--port", str(server.port), "--name", f"bench:{peer.key}", "--log", log]
            for key, value in options.items():
                words += ["--" + key.replace("_", "-"), str(value)]
            self._start(number, command(peer) + words, core)
            self.logs.append(log)

    def _start(self, number, words, core):
        with open(os.path.join(self.folder, f"{number}.err"), "wb") as err:
            worker = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                preexec_fn=pinned(core),
                cwd=self.folder,
            )
        os.set_blocking(worker.stdout.fileno(), False)
        self.said[number] = b""
        self.selector.register(worker.stdout, selectors.EVENT_READ, number)
        self.workers.append(worker)

    def _broken(self, number, what):
        with open(
            os.path.join(self.folder, f"{number}.err"), encoding="utf-8", errors="replace"
        ) as err:
            lines = [line for line in err.read().splitlines() if line.strip()]
        return Broken(f"{what}: {lines[-1][:160] if lines else 'no message'}")

    def hear(self, deadline):
        """Yields (worker, word) as they come; ends with what came together, or at the deadline."""
        for key, _ in self.selector.select(max(0, deadline - time.monotonic())):
            data = key.fileobj.read()
            if not data:
                raise self._broken(key.data, "a worker ended")
            *lines, self.said[key.data] = (self.said[key.data] + data).split(b"\n")
            for line in lines:
                yield key.data, line.decode().strip()

    def wait_all(self, word, seconds):
        deadline = time.monotonic() + seconds
        waiting = set(range(len(self.workers)))
        while waiting:
            if time.monotonic() > deadline:
                raise self._broken(min(waiting), f"no '{word}' in {seconds} s")
            for number, said in self.hear(deadline):
                if said == word:
                    waiting.discard(number)

    def tell(self, number, text):
        self.workers[number].stdin.write(f"{text}\n".encode())
        self.workers[number].stdin.flush()

    def begin(self):
        """All workers begin at one instant, which is returned in ns of CLOCK_MONOTONIC."""
        self.wait_all("ready", START_S)
        start_ns = time.monotonic_ns() + 50_000_000
        for number in range(len(self.workers)):
            self.tell(number, start_ns)
        return start_ns

    def cpu_us(self):
        """CPU time of all workers, each by its process's clock (man 3 clock_getcpuclockid)."""
        return sum(time.clock_gettime((~worker.pid << 3) | 2) for worker in self.workers) * 1e6

    def finish(self):
        """Waits for all workers' ends and gives what they logged, in order of time."""
        holds = []
        for number, worker in enumerate(self.workers):
            worker.stdin.close()
        for number, worker in enumerate(self.workers):
            try:
                status = worker.wait(END_S)
            except subprocess.TimeoutExpired as error:
                raise self._broken(number, f"a worker did not end in {END_S} s") from error
            if status != 0:
                raise self._broken(number, f"a worker ended with {status}")
            holds += self._read(number)
        holds.sort()
        return holds

    def _read(self, number):
        times = array.array("q")
        with open(self.logs[number], "rb") as file:
            times.frombytes(file.read())
        fields = [times[i::5] for i in range(5)]
        return [
            Hold(held, let_go, freed, asked, number, thread)
            for thread, asked, held, let_go, freed in zip(*fields)
        ]

    def close(self):
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
                worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass
        self.selector.close()
