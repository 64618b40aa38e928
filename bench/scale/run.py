#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: bench/scale/run.py [--build DIR] [--out DIR] [--most N] [TEXT]
Cost over number: queue pairs, regions, CQs, processes, processes behind one port. Runs build/bench/scale/scale with growing
numbers; prints a table, and which limits are met. --out: also figures.json, README.md with that table, and a curve of each
figure in curves.svg; series that were not run this time stay as they were found there. `make bench` runs it after bench/run.
--most: leaves larger numbers out. TEXT picks the series whose name contains it. The machine is to be quiet."""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "bench"))

from kit import machine  # noqa: E402

TIMEOUT = 600
QPS = (2, 10, 100, 1000, 3000, 10000, 30000)
# name, arguments, numbers
SERIES = [
    *[(f"qps {cqs} {place}", ["qps", cqs, place], QPS) for cqs in ("one", "each") for place in ("within", "apart")],
    ("mrs", ["mrs"], (100, 1000, 10000, 100000, 990000)),
    ("mrs beside engines", ["mrs"], (100, 1000, 10000)),
    ("cqs", ["cqs"], (10, 100, 1000, 10000, 60000)),
    ("peers", ["peers"], (2, 10, 30, 100, 300)),
    ("strays", ["strays"], (2, 4, 8, 16)),
]
REGIONS_BESIDE = 2000
KIB, MIB = 1024, 1 << 20
# series, number, figure, the most that it may be
LIMITS = [
    ("qps one within", 10000, "bytes", 4 * KIB),
    ("qps each within", 10000, "bytes", 4 * KIB),
    ("qps each within", 10000, "channel_bytes", 8 * KIB),
    ("qps each apart", 10000, "channel_bytes", 8 * KIB),
    ("qps one within", 10000, "connected_ms", 1000),
    ("qps each within", 10000, "connected_ms", 1000),
    ("qps one apart", 10000, "connected_ms", 1000),
    ("qps each apart", 10000, "connected_ms", 1000),
    ("mrs", 100000, "register_us", 1),
    ("peers", 300, "bytes_most", 200 * MIB),
    ("peers", 300, "descriptors_most", 1000),
]
# Figures that are of a whole run grow with the number; all others are of one object, and are to stay as they are.
WHOLE = re.compile(r"^(connected_ms|mappings|descriptors|bytes_most|messages|engines|strays)|^(all|connect|first|again)(_most)?_ms$")
PEERS_WHOLE = re.compile(r"^(bytes|open)")


def runs(build, arguments, number, name):
    """The figures of one number, a dictionary for each line that the program prints."""
    tail = [str(REGIONS_BESIDE), str(number)] if name == "mrs beside engines" else [str(number)]
    env = dict(os.environ, VB_TEST_DEVICE="vb_lo")
    with tempfile.NamedTemporaryFile("r", suffix=".log") as log:
        if name == "strays":
            env.update(VERBATIM_LINK="udp", VERBATIM_LOG="info", VERBS_LOG_FILE=log.name)
        done = subprocess.run([os.path.join(build, "bench/scale/scale"), *arguments, *tail], env=env, text=True, timeout=TIMEOUT,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1])
        found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if name == "strays":
            found[0]["strays"] = sum(map(int, re.findall(r"(\d+) strays", log.read())))
    for line in found:
        if name == "mrs beside engines":
            line["n"] = number
            line.pop("engines", None)
        if line["what"].startswith("qps end"):
            line["what"] = name
    return found


def merged(lines):
    """Lines of one number as one: a process that ends tells its figure apart."""
    whole = {}
    for line in lines:
        whole.update(line)
    return whole


def is_whole(series, figure):
    return bool(WHOLE.match(figure) or (series in ("peers", "strays") and PEERS_WHOLE.match(figure)))


def most_growth(series, figure):
    if series == "peers" and figure.endswith("_ms"):
        return 2.3  # all pairs of processes
    return 1.3 if is_whole(series, figure) else 0.3


def growth(points):
    """The exponent between the last number and the one a tenth of it: 0 is flat, 1 is linear."""
    last = points[-1]
    before = [p for p in points if p[0] * 9 <= last[0]] or points[:1]
    low = before[-1]
    if low[0] == last[0] or low[1] <= 0 or last[1] <= 0:
        return None
    return math.log(last[1] / low[1]) / math.log(last[0] / low[0])


def curves(rows):
    """{(series, figure): [(number, value)]}"""
    found = {}
    for row in rows:
        for figure, value in row.items():
            if figure not in ("what", "n"):
                found.setdefault((row["what"], figure), []).append((row["n"], value))
    return found


def shorten(value):
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def table(rows):
    """Lines: what each series found, and how it grows."""
    lines = []
    for series in dict.fromkeys(row["what"] for row in rows):
        mine = [row for row in rows if row["what"] == series]
        lines += ["", series, f"  {'':26}" + "".join(f"{row['n']:>10}" for row in mine) + "    growth"]
        for figure in dict.fromkeys(f for row in mine for f in row if f not in ("what", "n")):
            points = [(row["n"], row[figure]) for row in mine if figure in row]
            cells = "".join(f"{shorten(row[figure]) if figure in row else '':>10}" for row in mine)
            power = growth(points)
            steep = power is not None and power > most_growth(series, figure)
            lines.append(f"  {figure:26}{cells}" + ("" if power is None else f"{power:10.2f}{' steep' if steep else ''}"))
    return lines


def limits(found):
    lines = ["", "limits"]
    for series, number, figure, most in LIMITS:
        value = dict(found.get((series, figure), [])).get(number)
        if value is not None:
            verdict = "met" if value <= most else "NOT MET"
            lines.append(f"  {series} {number}: {figure} {shorten(value)}, at most {shorten(most)}: {verdict}")
    return lines


def svg(found):
    """Small multiples, both axes logarithmic: a flat line is a cost that does not grow."""
    width, height, pad, across = 260, 150, 34, 5
    cells = []
    for place, ((series, figure), points) in enumerate(found.items()):
        x0, y0 = place % across * width, place // across * height
        xs = [math.log10(max(n, 1)) for n, _ in points]
        ys = [math.log10(v) for _, v in points if v > 0]
        if len(ys) != len(points):
            continue
        low, high = math.floor(min(ys)), max(math.floor(min(ys)) + 1, math.ceil(max(ys)))
        right = max(xs[-1], xs[0] + 1)

        def at(x, y, x0=x0, y0=y0, first=xs[0], right=right, low=low, high=high):
            return (x0 + pad + (x - first) / (right - first) * (width - 2 * pad),
                    y0 + height - pad + 8 - (y - low) / (high - low) * (height - 2 * pad))
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in (at(x, y) for x, y in zip(xs, ys)))
        left, bottom = at(xs[0], low)
        top = at(xs[0], high)[1]
        cells.append(f'<text x="{left}" y="{y0 + 12}">{series}: {figure}</text>'
                     f'<path d="M{left},{top}V{bottom}H{x0 + width - pad}" class="axis"/><polyline points="{path}"/>'
                     f'<text x="{left - 4}" y="{top + 4}" class="end">1e{high}</text><text x="{left - 4}" y="{bottom}" class="end">1e{low}</text>'
                     f'<text x="{left}" y="{bottom + 12}">{points[0][0]}</text>'
                     f'<text x="{x0 + width - pad}" y="{bottom + 12}" class="end">{points[-1][0]}</text>')
    rows = -(-len(found) // across)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{across * width}" height="{rows * height}" font-family="sans-serif" '
            'font-size="9">\n<!-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only -->\n<style>polyline{fill:none;stroke:#05a;stroke-width:1.5}.axis{fill:none;stroke:#888}.end{text-anchor:end}'
            '</style><rect width="100%" height="100%" fill="#fff"/>' + "".join(cells) + "</svg>\n")


PAGE = """<!-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only -->
# Cost over number

Written by `bench/scale/run.py`: {cpu}, {cores} cores, {kernel}. Each column is a number of objects or
of processes, each row what one of them costs; *growth* is the exponent between the last number and the one a tenth of it: 0 is
flat, 1 is linear. `ms`, descriptors and mappings are of a whole process. [Curves](curves.svg).

```
{lines}
```
"""


def page(lines):
    facts = machine.facts()
    return PAGE.format(cpu=facts["cpu"], cores=facts["cores"], kernel=facts["kernel"], lines="\n".join(lines).strip("\n"))


def kept(out, measured):
    """Rows of earlier runs, of series that this one leaves out."""
    if not out or not os.path.exists(os.path.join(out, "figures.json")):
        return []
    with open(os.path.join(out, "figures.json"), encoding="utf-8") as file:
        return [row for row in json.load(file) if row["what"] not in measured]


def write(out, rows, found, lines):
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "README.md"), "w", encoding="utf-8") as file:
        file.write(page(lines))
    with open(os.path.join(out, "figures.json"), "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
    with open(os.path.join(out, "curves.svg"), "w", encoding="utf-8") as file:
        file.write(svg(found))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--out")
    parser.add_argument("--most", type=int)
    parser.add_argument("only", nargs="?", default="")
    args = parser.parse_args()
    rows, failed = [], []
    for name, arguments, numbers in SERIES:
        for number in numbers if args.only in name else ():
            if args.most and number > args.most:
                continue
            try:
                rows.append(merged(runs(args.build, arguments, number, name)))
            except (RuntimeError, subprocess.TimeoutExpired) as why:
                failed.append(f"{name} {number}: {why}")
                break
    measured = {name for name, _, _ in SERIES if args.only in name}
    names = [name for name, _, _ in SERIES]
    rows = sorted(rows + kept(args.out, measured), key=lambda row: names.index(row["what"]))
    found = curves(rows)
    lines = table(rows) + limits(found) + [f"failed: {line}" for line in failed]
    print("\n".join(lines))
    if args.out:
        write(args.out, rows, found, lines)
    sys.exit(1 if failed else 0)


main()
