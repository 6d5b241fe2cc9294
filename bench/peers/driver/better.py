# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""Where a peer is better than hirelock, and what else has to be said beside the tables."""

from driver.figures import passes_on
from driver.numbers import number
from driver.tables import COMPARED, TABLES

MARGIN = 1.02

BARGING = """\
Peers that barge, for which fewer than half of the acquisitions change the owner, are left out of \
that list where several owners want one name. They need fewer commands and less CPU time for an \
acquisition, because nearly each is an uncontended one, and so some make more of them in a second \
than a lock that serves whoever waits:"""


def _barges(scenario, found):
    return scenario.is_loop_of_many and "per_second" in found and not passes_on(found)


def _is_better(name, theirs, ours):
    if name.endswith("per_second") or name.startswith("share"):
        return theirs > MARGIN * ours
    return ours > MARGIN * theirs


def _better_peers(outcome, scenario, name):
    ours = outcome.ours(scenario)
    for peer in outcome.peers:
        found = outcome.found(peer, scenario)
        if peer.key in ("hirelock", "raw") or _barges(scenario, found):
            continue
        if name in found and name in ours and _is_better(name, found[name], ours[name]):
            yield f"{peer.title} {number(found[name])}"


def better(outcome):
    """Each figure in which a peer beats hirelock, in words."""
    lines = []
    for scenario in outcome.scenarios:
        for name, head in TABLES[scenario.key][0]:
            peers = list(_better_peers(outcome, scenario, name)) if name in COMPARED else []
            if peers:
                ours = number(outcome.ours(scenario)[name])
                lines.append(f"- {scenario.title}: {head} {ours}, but {'; '.join(peers)}")
    return "\n".join(lines) or "In none of these figures, in this run."


def barging(outcome):
    lines = []
    for scenario in outcome.scenarios:
        peers = [
            f"{peer.title} {number(outcome.found(peer, scenario)['per_second'])}"
            for peer in outcome.peers
            if _barges(scenario, outcome.found(peer, scenario))
        ]
        if peers:
            ours = number(outcome.ours(scenario).get("per_second"))
            lines.append(
                f"- {scenario.title}, acquisitions/s: {'; '.join(peers)} (hirelock {ours})"
            )
    return f"{BARGING}\n\n" + "\n".join(lines) if lines else ""


def double_holds(outcome):
    double = [
        f"{peer.title} {times} times ({scenario.title})"
        for peer, scenario, times in outcome.double_holds()
    ]
    if double:
        return f"The logs show two holders of a lock at a time: {'; '.join(double)}."
    return "The logs were checked as well: no lock had two holders at a time."


def repeated(outcome):
    lines = [
        f"- {peer.title}, {scenario.title}: {outcome.found(peer, scenario)['repeated']}"
        for peer in outcome.peers
        for scenario in outcome.scenarios
        if "repeated" in outcome.found(peer, scenario)
    ]
    return "Runs that failed and were tried once more:\n\n" + "\n".join(lines) if lines else ""
