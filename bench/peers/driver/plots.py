# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""Bar charts by gnuplot, as SVG and PNG."""

import shutil
import subprocess
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Plot:
    name: str
    title: str
    scenario: str
    figure: str  # the bar
    second: str  # a thin bar inside it, or a mark beyond it; "" for none
    axis: str
    is_log: bool
    best_is_high: bool


PLOTS = (
    Plot(
        "peers-uncontended",
        "Acquire and release, one thread alone",
        "alone",
        "per_second",
        "",
        "pairs per second (higher is better)",
        False,
        True,
    ),
    Plot(
        "peers-passes",
        "8 threads of one process on one name",
        "threads8",
        "per_second",
        "switches_per_second",
        "per second, logarithmic: acquisitions (wide, pale) and owner switches (narrow)",
        True,
        True,
    ),
    Plot(
        "peers-handover",
        "Hand-over between processes, release at a random time",
        "rounds",
        "handover_p50_us",
        "handover_p99_us",
        "us, logarithmic: p50 (bar) and p99 (line) (lower is better)",
        True,
        False,
    ),
)

SCRIPT = """\
set terminal {terminal}
set output '{output}'
set title '{title}' font ',14'
set xlabel '{axis}'
set border 1
set tics nomirror scale 0.5
set format x '%.0f'
set ytics ({ticks})
set yrange [-0.6:{last}.6]
set xrange [{floor}:*]
{scale}
set grid xtics lc rgb '#dddddd' lt 1
set style fill solid noborder
set lmargin 34
unset key
ours = 0xc0392b
theirs = 0x7f8c9a
pale = 0xc9d1d9
$bars << END
{rows}
END
plot {layers}
"""

# A row: place, name, value, second value (or the value again), 1 for hirelock.
BARS = (
    "$bars using 3:1:({floor}):3:($1-{half}):($1+{half}):({colour}) with boxxyerror lc rgb variable"
)
WHISKER = "$bars using 3:1:3:4 with xerrorbars pt 0 lw 1.5 lc rgb '#2c3e50'"
LABELS = "$bars using {at}:1:(sprintf('  %s', strcol(6))) with labels left font ',10'"

TERMINALS = {
    "svg": "svg size 960,480 dynamic font 'Helvetica,12' noenhanced background rgb 'white'",
    "png": "pngcairo size 960,480 font 'Sans,10' noenhanced background rgb 'white'",
}


def _rows(plot, peers, results):
    found = [
        (peer, results[peer.key][plot.scenario])
        for peer in peers
        if plot.figure in results.get(peer.key, {}).get(plot.scenario, {})
    ]
    found.sort(key=lambda pair: pair[1][plot.figure], reverse=not plot.best_is_high)
    return [
        (peer, values[plot.figure], values.get(plot.second, values[plot.figure]))
        for peer, values in found
    ]


def _layers(plot, floor):
    colour = "$5 > 0 ? ours : theirs"
    bar = BARS.format(floor=floor, half=0.36, colour=colour)
    if plot.second.startswith("handover"):
        return ", ".join([bar, WHISKER, LABELS.format(at=4)])
    if plot.second:
        wide = BARS.format(floor=floor, half=0.36, colour="pale")
        narrow = (
            BARS.format(floor=floor, half=0.18, colour=colour)
            .replace("using 3:1", "using 4:1")
            .replace(f"({floor}):3:", f"({floor}):4:")
        )
        return ", ".join([wide, narrow, LABELS.format(at=3)])
    return ", ".join([bar, LABELS.format(at=3)])


def _script(plot, rows, output, kind):
    floor = 10 if plot.is_log else 0
    ticks = ", ".join(f"'{peer.title}' {place}" for place, (peer, _, _) in enumerate(rows))
    data = "\n".join(
        f'{place} "{peer.key}" {value:.6g} {max(second, floor):.6g} {int(peer.key == "hirelock")} '
        f'"{value:,.0f}"'
        for place, (peer, value, second) in enumerate(rows)
    )
    return SCRIPT.format(
        terminal=TERMINALS[kind],
        output=output,
        title=plot.title,
        axis=plot.axis,
        ticks=ticks,
        last=len(rows) - 1,
        floor=floor,
        scale="set logscale x" if plot.is_log else "",
        rows=data,
        layers=_layers(plot, floor),
    )


def draw(folder, peers, results):
    """Draws what there are figures for; gives [(name, title)]. Without gnuplot: nothing."""
    if not shutil.which("gnuplot"):
        print("peers: gnuplot is not on this machine, so there are no plots", file=sys.stderr)
        return []
    drawn = []
    for plot in PLOTS:
        rows = _rows(plot, peers, results)
        if not rows:
            continue
        for kind in TERMINALS:
            script = _script(plot, rows, folder / f"{plot.name}.{kind}", kind)
            subprocess.run(["gnuplot"], input=script.encode(), check=True)
        drawn.append((plot.name, plot.title))
    return drawn
