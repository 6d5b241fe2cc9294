# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""All that was found, on which machine, and by which command; as JSON, too."""

import json
import os
import platform
import sys
from dataclasses import dataclass, field
from pathlib import Path

from driver.figures import summary

PATHS = {"--json", "--add-to", "--docs"}  # options whose argument is nobody's business


def _cpu():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return "unknown"


def _command(words):
    """The command as another would repeat it."""
    kept = [
        word
        for before, word in zip(["", *words], words)
        if word not in PATHS and before not in PATHS
    ]
    return " ".join(["bench/peers/run", *kept])


def _machine():
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "kernel": f"{platform.system()} {platform.release()}",
        "command": _command(sys.argv[1:]),
    }


def brief(found):
    """One run, for who watches."""
    if "failed" in found:
        return f"failed: {found['failed']}"
    wanted = ("per_second", "switches_per_second", "handover_p50_us", "client_commands", "overlaps")
    return " ".join(f"{name} {found[name]:.4g}" for name in wanted if name in found)


@dataclass
class Outcome:
    peers: list
    scenarios: list
    results: dict  # of peer key and scenario key
    reasons: dict  # why a toolchain's peers were skipped
    toolchains: dict  # what each of the others says of itself
    redis: str
    cores: tuple  # the server's and the clients'
    machine: dict = field(default_factory=_machine)

    def found(self, peer, scenario):
        return self.results.get(peer.key, {}).get(scenario.key, {})

    def ours(self, scenario):
        return self.results.get("hirelock", {}).get(scenario.key, {})

    def summary(self):
        return summary(self.results)

    def double_holds(self):
        """(peer, scenario, how often) where a lock had two holders at a time."""
        for peer in self.peers:
            for scenario in self.scenarios:
                times = self.found(peer, scenario).get("overlaps")
                if times:
                    yield peer, scenario, times

    def is_bad(self):
        """hirelock is not here, failed, or had two holders at a time."""
        if not any(peer.key == "hirelock" for peer in self.peers):
            return False
        ours = self.results.get("hirelock", {})
        double = any(peer.key == "hirelock" for peer, _, _ in self.double_holds())
        return double or not ours or any("failed" in found for found in ours.values())

    def _by_peer(self):
        return {
            peer.key: {
                "title": peer.title,
                "version": peer.version,
                **({"skipped": self.reasons[peer.kind]} if peer.kind in self.reasons else {}),
                "scenarios": self.results.get(peer.key, {}),
            }
            for peer in self.peers
        }

    def write_json(self, path):
        machine = {**self.machine, "redis": self.redis}
        self._write(path, {"machine": machine, "figures": []})

    def add_to_json(self, path):
        """Adds to what another benchmark wrote there."""
        self._write(path, json.loads(Path(path).read_text(encoding="utf-8")))

    def _write(self, path, whole):
        whole["figures"] += self.summary()
        whole["peers"] = self._by_peer()
        Path(path).write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
