# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""The page: page.md, with what was found filled in."""

from datetime import date
from pathlib import Path

from driver import better, plots
from driver.numbers import number
from driver.tables import TABLES


def _table(heads, rows):
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def _rows(outcome, scenario, columns):
    for peer in outcome.peers:
        found = outcome.found(peer, scenario)
        if "failed" in found:
            yield [peer.title, f"failed: {found['failed']}", *[""] * (len(columns) - 1)]
        elif found:
            yield [peer.title, *[number(found.get(name)) for name, _ in columns]]


def _tables(outcome):
    for scenario in outcome.scenarios:
        columns, note = TABLES[scenario.key]
        heads = ["", *[head for _, head in columns]]
        table = _table(heads, _rows(outcome, scenario, columns))
        yield f"### {scenario.title[0].upper()}{scenario.title[1:]}\n\n{note}\n\n{table}"


def _who(outcome):
    rows = []
    for peer in outcome.peers:
        skipped = outcome.reasons.get(peer.kind)
        how = f"skipped: {skipped}" if skipped else outcome.toolchains.get(peer.kind, "")
        rows.append([peer.title, peer.version or "the machine's", peer.wakes, how])
    return _table(["peer", "version", "how a waiter learns of a release", "built by"], rows)


def _summary(outcome):
    titles = {peer.key: peer.title for peer in outcome.peers}
    rows = [
        [f"`{figure['name']}`", number(figure["value"]), titles[figure["peer"]]]
        for figure in outcome.summary()
    ]
    return _table(["figure (above 1: hirelock is better)", "value", "best peer"], rows)


def _machine(outcome):
    machine = outcome.machine
    server, client = outcome.cores
    placement = f"server on core {server}, all clients on core {client}"
    if server is None:
        placement = "everything placed by the scheduler"
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['kernel']}, Redis {outcome.redis}; "
        f"{placement}. {date.today().isoformat()}, `{machine['command']}`."
    )


def write(outcome, folder):
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    drawn = plots.draw(place, outcome.peers, outcome.results)
    parts = {
        "MACHINE": _machine(outcome),
        "SUMMARY": _summary(outcome),
        "PLOTS": "\n\n".join(f"![{title}]({name}.svg)" for name, title in drawn),
        "WHO": _who(outcome),
        "TABLES": "\n\n".join(_tables(outcome)),
        "CHECK": better.double_holds(outcome),
        "BETTER": better.better(outcome),
        "BARGING": better.barging(outcome),
        "REPEATED": better.repeated(outcome),
    }
    text = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"@{name}@\n", f"{part}\n" if part else "").replace("\n\n\n", "\n\n")
    (place / "peers.md").write_text(text.rstrip() + "\n", encoding="utf-8")
