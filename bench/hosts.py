#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: bench/hosts.py [--build DIR] [--rounds N] [--peer-core N --own-core N] [TEXT]
The link between hosts beside what UDP and TCP carry by themselves, in one run: two network namespaces joined by a veth pair of MTU
9000. Each round measures every column of every row once, server and client each on a core of its own; medians of N rounds.
TEXT picks the rows that contain it.

  verbatim  perftest on the library: half a round trip of 8 bytes (typical), average bandwidth of 1 MiB messages
  raw UDP   bench/udp_raw.c: datagrams as long as the link's packets, UDP_SEGMENT bursts out, UDP_GRO in, nothing lost
  iperf3    TCP, and UDP with the same datagrams: what arrived ("-" where it is not installed)

Ratios are verbatim's figure over the other's: of a latency smaller is better, of a bandwidth larger. The last row is the processor
time of a connected server whose client says nothing."""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "tests", "udp"), os.path.join(ROOT, "tests", "apps")]

import hosts  # noqa: E402
from cases import perftest_rows  # noqa: E402
from idle import idle_server  # noqa: E402
from pairs import Failure, Runner  # noqa: E402
from programs import PATIENT  # noqa: E402

PACKET_EXTRA = 16  # a RoCEv2 packet's headers and check
IDLE_SECONDS = 5
COLUMNS = ("verbatim", "raw UDP", "iperf3 TCP", "iperf3 UDP")


def perftest(column, factor, *argv):
    def measure(bench):
        rows = perftest_rows(bench.pair([*argv, *PATIENT, "-d", hosts.DEVICE, "-F"])[1])
        return float(next(iter(rows.values()))[column]) * factor
    return measure


def raw(mode, size, count):
    def measure(bench):
        text = bench.pair([bench.raw, "-m", mode, "-s", str(size), "-n", str(count)])[1]
        return float(text.split()[1])
    return measure


def iperf(*options):
    def measure(bench):
        if not shutil.which("iperf3"):
            return None
        text = bench.pair(["iperf3", "-s", "-1"], ["iperf3", "-t", "1", "-O", "0.2", "-J", *options, "-c", hosts.IPV4[0]])[1]
        end = json.loads(text)["end"]
        total = end["sum"] if "-u" in options else end["sum_received"]
        return total["bits_per_second"] * (1 - total.get("lost_percent", 0) / 100) / 8e9
    return measure


def table():
    """(label, unit, what measures each column)"""
    yield ("ib_send_lat 8 B", "us", (perftest(4, 1, "ib_send_lat", "-s", "8", "-n", "20000"), raw("trip", 8, 20000), None, None))
    for mtu in (4096, 1024):
        udp = iperf("-u", "-b", "0", "-l", str(mtu + PACKET_EXTRA))
        for verb in ("write", "read"):
            argv = [f"ib_{verb}_bw", "-s", str(1 << 20), "-n", "2000", "-m", str(mtu), "--report_gbits", "-N"]
            yield (f"ib_{verb}_bw 1 MiB, path MTU {mtu}", "GB/s",
                   (perftest(3, 1 / 8, *argv), raw("rate", mtu, 2000), iperf(), udp))


class Bench:
    def __init__(self, args, nets):
        pins = [["taskset", "-c", str(core)] for core in (args.peer_core, args.own_core)]
        self.runner = Runner(os.path.join(args.build, "lib"), timeout=60, pins=[a + b for a, b in zip(nets.enter, pins)])
        self.raw = os.path.join(args.build, "bench", "udp_raw")

    def pair(self, argv, client=None):
        return self.runner.pair(argv, hosts.IPV4[0], client)


def cells(values):
    """The line's figures: each median, and what verbatim's is of it."""
    medians = [statistics.median(seen) if seen else None for seen in values]
    own = medians[0]
    yield f"{own:9.3f} ({min(values[0]):.3f} .. {max(values[0]):.3f})"
    for other in medians[1:]:
        yield f"{'-':>10}" if other is None else f"{other:10.3f} x{own / other:.2f}"


def run(bench, rows, rounds):
    seen = {row[0]: [[] for _ in COLUMNS] for row in rows}
    for _ in range(rounds):
        for label, _, measures in rows:
            for values, measure in zip(seen[label], measures):
                value = measure(bench) if measure else None
                if value is not None:
                    values.append(value)
    print(" " * 38 + f"{COLUMNS[0]:>9}".ljust(28) + "".join(f"{name:>10} ratio".ljust(18) for name in COLUMNS[1:]))
    for label, unit, _ in rows:
        own, *others = cells(seen[label])
        print(f"{label:32} {unit:4} {own:28}" + "".join(f"{other:18}" for other in others).rstrip())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer-core", type=int, default=1)
    parser.add_argument("--own-core", type=int, default=0)
    parser.add_argument("only", nargs="?", default="")
    args = parser.parse_args()
    subprocess.run(["ninja", "-C", args.build, "bench/udp_raw"], check=True, stdout=subprocess.DEVNULL)
    hosts.enter(sys.exit)
    nets = hosts.Hosts(sys.exit)
    os.environ["LD_LIBRARY_PATH"] = os.path.join(args.build, "lib")
    bench = Bench(args, nets)
    try:
        with bench.runner:
            rows = [row for row in table() if args.only in row[0]]
            if rows:
                run(bench, rows, args.rounds)
            if args.only in "idle server":
                used = idle_server(bench.runner, ["ib_send_bw", "-e", "-d", hosts.DEVICE, "-F"], IDLE_SECONDS)
                print(f"{'idle server':32} {'s':4} {used:9.3f} of processor time in {IDLE_SECONDS} s")
    except Failure as fault:
        print(fault, file=sys.stderr)
        return 1
    finally:
        nets.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
