# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""What was found, as a page with tables and as JSON."""

import json
import os
import platform
import sys
from datetime import date
from pathlib import Path

from driver import plots
from driver.figures import passes_on
from driver.text import BARGING, COMPARED, HEAD, METHOD, TABLES

PATHS = {"--json", "--add-to", "--docs"}  # options whose argument is nobody's business


def brief(found):
    if "failed" in found:
        return f"failed: {found['failed']}"
    wanted = ("per_second", "switches_per_second", "handover_p50_us", "client_commands", "overlaps")
    return " ".join(f"{name} {found[name]:.4g}" for name in wanted if name in found)


def _number(value):
    if value is None:
        return "-"
    if isinstance(value, int) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


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


def _table(heads, rows):
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


class Page:
    def __init__(self, peers, scenarios, results, reasons, toolchains, redis, cores, summary):
        self.peers, self.scenarios, self.results = peers, scenarios, results
        self.reasons, self.toolchains, self.summary = reasons, toolchains, summary
        self.machine = {
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "redis": redis,
            "kernel": f"{platform.system()} {platform.release()}",
            "server_core": cores[0],
            "client_core": cores[1],
        }
        self.command = _command(sys.argv[1:])

    def is_bad(self):
        """hirelock failed, or anybody's lock had two holders at a time."""
        double = [
            f"{key} in {name}"
            for key, found in self.results.items()
            for name, figures in found.items()
            if figures.get("overlaps")
        ]
        if double:
            print(f"peers: two holders at a time: {', '.join(double)}", file=sys.stderr)
        ours = self.results.get("hirelock", {})
        return bool(double) or any("failed" in found for found in ours.values())

    def _rows(self, scenario, columns):
        for peer in self.peers:
            found = self.results.get(peer.key, {}).get(scenario)
            if found is None:
                continue
            if "failed" in found:
                yield [peer.title, f"failed: {found['failed']}", *[""] * (len(columns) - 1)]
                continue
            yield [peer.title, *[_number(found.get(name)) for name, _ in columns]]

    def _tables(self):
        for scenario in self.scenarios:
            columns, note = TABLES[scenario.key]
            rows = list(self._rows(scenario.key, columns))
            if rows:
                heads = ["", *[head for _, head in columns]]
                yield f"### {scenario.title[0].upper()}{scenario.title[1:]}\n\n{note}\n\n" + _table(
                    heads, rows
                )

    def _who(self):
        rows = []
        for peer in self.peers:
            skipped = self.reasons.get(peer.kind)
            rows.append(
                [
                    peer.title,
                    peer.version or "the machine's",
                    peer.wakes,
                    f"skipped: {skipped}" if skipped else self.toolchains.get(peer.kind, ""),
                ]
            )
        return _table(["peer", "version", "how a waiter learns of a release", "built by"], rows)

    def _summary(self):
        titles = {peer.key: peer.title for peer in self.peers}
        rows = [
            [f"`{figure['name']}`", _number(figure["value"]), titles[figure["peer"]]]
            for figure in self.summary
        ]
        return _table(["figure (above 1: hirelock is better)", "value", "best peer"], rows)

    def _better(self):
        """Each figure in which a peer beats hirelock, said in words."""
        lines = []
        for scenario in self.scenarios:
            ours = self.results.get("hirelock", {}).get(scenario.key, {})
            for name, head in TABLES[scenario.key][0]:
                beaten = self._beaten_by(scenario, name, ours.get(name))
                if beaten:
                    lines.append(
                        f"- {scenario.title}: {head} {_number(ours[name])}, but "
                        f"{', '.join(beaten)}"
                    )
        return "\n".join(lines) or "In none of these figures, in this run."

    def _beaten_by(self, scenario, name, ours):
        if ours is None or name not in COMPARED:
            return []
        higher = name.endswith("per_second") or name.startswith("share")
        beaten = []
        for peer in self.peers:
            found = self.results.get(peer.key, {}).get(scenario.key, {})
            theirs = found.get(name)
            if theirs is None or peer.key in ("hirelock", "raw"):
                continue
            if scenario.is_loop_of_many and not passes_on(found):
                continue
            if (theirs > 1.02 * ours) if higher else (theirs < 0.98 * ours):
                beaten.append(f"{peer.title} {_number(theirs)}")
        return beaten

    def _barging(self):
        lines = []
        for scenario in self.scenarios:
            barge = [
                f"{peer.title} {_number(found['per_second'])}"
                for peer in self.peers
                for found in [self.results.get(peer.key, {}).get(scenario.key, {})]
                if scenario.is_loop_of_many and "per_second" in found and not passes_on(found)
            ]
            ours = self.results.get("hirelock", {}).get(scenario.key, {}).get("per_second")
            if barge:
                lines.append(f"- {scenario.title}: {', '.join(barge)} (hirelock {_number(ours)})")
        return f"{BARGING}\n\n" + "\n".join(lines) if lines else ""

    def _repeated(self):
        lines = [
            f"- {peer.title}, {scenario.title}: {found['repeated']}"
            for peer in self.peers
            for scenario in self.scenarios
            for found in [self.results.get(peer.key, {}).get(scenario.key, {})]
            if "repeated" in found
        ]
        return "Runs that failed and were tried once more:\n\n" + "\n".join(lines) if lines else ""

    def text(self, drawn):
        where = self.machine
        placement = (
            "left to the scheduler"
            if where["server_core"] is None
            else (
                f"server on core {where['server_core']}, all clients on core {where['client_core']}"
            )
        )
        machine = (
            f"{where['cpu']}, {where['cores']} cores, {where['kernel']}, Redis "
            f"{where['redis']}; {placement}. {date.today().isoformat()}, `{self.command}`."
        )
        plotted = "\n\n".join(f"![{title}]({name}.svg)" for name, title in drawn)
        parts = [
            HEAD,
            machine,
            "## In short\n\n" + self._summary(),
            plotted,
            "## Who\n\n" + self._who(),
            METHOD,
            "## Figures",
            *self._tables(),
            "## Where a peer is better\n\nBy more than 2 %, in this run:\n\n" + self._better(),
            self._barging(),
            self._repeated(),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"

    def write(self, folder):
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        drawn = plots.draw(place, self.peers, self.results)
        (place / "peers.md").write_text(self.text(drawn), encoding="utf-8")

    def _as_json(self):
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
        whole = {
            "machine": {**self.machine, "command": self.command},
            "figures": self.summary,
            "peers": self._as_json(),
        }
        Path(path).write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")

    def add_to_json(self, path):
        whole = json.loads(Path(path).read_text(encoding="utf-8"))
        whole["figures"] += self.summary
        whole["peers"] = self._as_json()
        Path(path).write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
