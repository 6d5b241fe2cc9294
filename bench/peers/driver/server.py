# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""A private redis-server on TCP loopback, and what it says of the work that it does."""

import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections import Counter

from driver.cores import pinned


class Link:
    """A plain connection; simple enough that it disturbs nothing."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.file = self.socket.makefile("rb")

    def send(self, *words):
        parts = [f"*{len(words)}\r\n".encode()]
        for word in words:
            data = str(word).encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
        self.socket.sendall(b"".join(parts))

    def read(self):
        line = self.file.readline().rstrip(b"\r\n")
        if line[:1] == b"$":
            return self.file.read(int(line[1:]) + 2)[:-2]
        if line[:1] not in (b"+", b":"):
            raise RuntimeError(f"the server says {line!r}")
        return line[1:]

    def ask(self, *words):
        self.send(*words)
        return self.read()

    def close(self):
        self.file.close()
        self.socket.close()


class Counts:
    """Calls of each command and CPU time of the server, as of one instant."""

    OWN = {"info", "config", "monitor", "ping"}  # the driver's

    def __init__(self, text, when_ns):
        self.when_ns = when_ns
        self.calls = Counter()
        self.cpu_us = 0.0
        for line in text.splitlines():
            key, _, value = line.partition(":")
            if key.startswith("cmdstat_"):
                name = key[len("cmdstat_") :].split("|")[0]
                if name not in self.OWN:
                    self.calls[name] += int(value.split(",")[0].removeprefix("calls="))
            elif key in ("used_cpu_sys", "used_cpu_user"):
                self.cpu_us += 1e6 * float(value)


class Senders:
    """Which commands clients send and which scripts call, by name, from a stretch of MONITOR."""

    def __init__(self, text):
        self.client, self.script = Counter(), Counter()
        for line in text.split("\n"):
            who, found, what = line.partition('] "')
            if found:
                side = self.script if who.endswith(" lua") else self.client
                side[what.split('"')[0].lower()] += 1

    def share(self, name):
        """How much of the calls of a command clients made; what was not seen is taken as theirs."""
        total = self.client[name] + self.script[name]
        return self.client[name] / total if total else 1.0

    def sent(self, calls):
        """How many of these calls clients made; None when nothing was to be heard."""
        if not self.client:
            return None
        return sum(count * self.share(name) for name, count in calls.items())


def total(counts):
    """The counts of several servers together, as of the middle one's instant."""
    whole = Counts("", sorted(each.when_ns for each in counts)[len(counts) // 2])
    for each in counts:
        whole.calls += each.calls
        whole.cpu_us += each.cpu_us
    return whole


class Server:
    def __init__(self, core, *words):
        self.words = words  # more of its configuration
        self.folder = tempfile.mkdtemp(prefix="hirelock-peers-")
        self.process = None
        for _ in range(20):
            self.port = random.randint(10000, 30000)
            if self._start(core):
                return
        self.stop()
        raise RuntimeError("redis-server did not start")

    def _start(self, core):
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.process = subprocess.Popen(
                [
                    "redis-server",
                    "--bind",
                    "127.0.0.1",
                    "--port",
                    str(self.port),
                    "--save",
                    "",
                    "--appendonly",
                    "no",
                    "--dir",
                    self.folder,
                    *self.words,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=pinned(core),
            )
        for _ in range(100):
            time.sleep(0.05)
            if self.process.poll() is not None:
                return False  # the port was taken
            try:
                self.link = Link(self.port)
                self.link.ask("PING")
                return True
            except OSError:
                continue
        self.process.kill()
        self.process.wait()
        return False

    @property
    def version(self):
        return self._field("redis_version")

    def _field(self, name):
        text = self.link.ask("INFO", "server").decode()
        return next(line.split(":")[1] for line in text.split("\r\n") if line.startswith(name))

    def counts(self):
        before = time.monotonic_ns()
        text = self.link.ask("INFO", "everything").decode()
        return Counts(text, (before + time.monotonic_ns()) // 2)

    def senders(self, seconds):
        """Listens to all that is said for a moment; never while counting, for that slows it."""
        link = Link(self.port)
        link.ask("MONITOR")
        link.socket.settimeout(0.05)
        data, end = bytearray(), time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                data += link.socket.recv(1 << 20)
            except TimeoutError:
                continue
        link.close()
        return Senders(data.decode(errors="replace"))

    def flush(self):
        self.link.ask("FLUSHALL")

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Masters:
    """Servers that know nothing of one another; all are asked what one is."""

    def __init__(self, core, count):
        self.servers = []
        try:
            for _ in range(count):
                self.servers.append(Server(core))
        except BaseException:
            self.stop()
            raise

    @property
    def port(self):
        return self.servers[0].port

    @property
    def ports(self):
        return ",".join(str(server.port) for server in self.servers)

    def counts(self):
        return total([server.counts() for server in self.servers])

    def senders(self, seconds):
        """Who calls what is the same at all of them."""
        return self.servers[0].senders(seconds)

    def flush(self):
        for server in self.servers:
            server.flush()

    def stop(self):
        for server in self.servers:
            server.stop()
