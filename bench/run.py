#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: bench/run.py [--build DIR] [--against DIR] [--device NAME] [--rounds N] [--peer-core N --own-core N] [TEXT]
perftest's figures on the library: latency at 8 bytes, bandwidth at 64 KiB and 1 MiB; medians of N interleaved rounds,
server and client each on a core of its own. --against: of two builds in turn, with the ratio of the first to the second.
TEXT picks the rows that contain it."""

import argparse
import contextlib
import os
import statistics
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tests", "apps"))

from cases import perftest_rows  # noqa: E402
from pairs import Runner  # noqa: E402

SIZES = (65536, 1048576)


def table():
    """(label, program and options, column of the figure, factor, unit)"""
    for verb in ("send", "write", "read", "atomic"):
        size = [] if verb == "atomic" else ["-s", "8"]
        yield f"ib_{verb}_lat 8 B", [f"ib_{verb}_lat", *size, "-n", "50000"], 4, 1, "us"
    for verb in ("write", "send", "read"):
        for size in SIZES:
            iters = max(2000, (1 << 30) // size)
            options = ["-s", str(size), "-n", str(iters), "--report_gbits", "-N"]
            yield f"ib_{verb}_bw {size >> 10} KiB", [f"ib_{verb}_bw", *options], 3, 1 / 8, "GB/s"
    yield "ib_send_bw 8 B", ["ib_send_bw", "-s", "8", "-n", "200000", "-N"], -1, 1, "M messages/s"


def figure(runner, argv, column, factor):
    outputs = runner.pair(argv)
    row = next(iter(perftest_rows(outputs[1]).values()))
    return float(row[column]) * factor


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--against")
    parser.add_argument("--device", default="vb_lo")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer-core", type=int, default=1)
    parser.add_argument("--own-core", type=int, default=0)
    parser.add_argument("only", nargs="?", default="")
    args = parser.parse_args()
    rows = [row for row in table() if args.only in row[0]]
    builds = [args.build] + ([args.against] if args.against else [])
    seen = {(build, row[0]): [] for build in builds for row in rows}
    pins = [["taskset", "-c", str(core)] for core in (args.peer_core, args.own_core)]
    with contextlib.ExitStack() as stack:
        runners = {build: stack.enter_context(Runner(os.path.join(build, "lib"), timeout=60, pins=pins)) for build in builds}
        for turn in range(args.rounds):
            for label, argv, column, factor, _ in rows:
                # Neither build is always the first.
                for build in builds if turn % 2 == 0 else reversed(builds):
                    argv_here = [argv[0], "-d", args.device, "-F", *argv[1:]]
                    seen[build, label].append(figure(runners[build], argv_here, column, factor))
    for label, _, _, _, unit in rows:
        medians = []
        for build in builds:
            values = sorted(seen[build, label])
            medians.append(statistics.median(values))
            print(f"{label:22} {medians[-1]:9.3f} {unit:13} ({values[0]:.3f} .. {values[-1]:.3f})", end="")
            print(f"  {build}" if args.against else "")
        if args.against:
            print(f"{'':22} {medians[0] / medians[1]:9.3f}")


main()
