#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: sources.py BUILD
Promise: each source of bench/ still runs its program on this library and reads a figure out of what it prints. One round of one
cheap figure each, which may have any size: nothing is measured here. A source whose program is not installed is skipped. Prints
one TAP line a source; exits 1 when one failed, 77 (reason on the last line of standard error) when nothing could be run."""

import os
import re
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))

import rows as table  # noqa: E402
from kit import machine, report, result  # noqa: E402
from kit.figure import Source  # noqa: E402
from kit.rounds import Rounds  # noqa: E402
from kit.row import Row  # noqa: E402
from kit.session import Failure, Library, Session, hosts  # noqa: E402
from sources import connections, libfabric, perftest, rsockets, ucx  # noqa: E402

SKIP = 77
KIB, MIB = 1 << 10, 1 << 20
# What is cheap, by the names that the sources have in bench/rows.py.
CHEAP = {
    "ring": ("tsc",), "copy": ("write_us", 8), "wake": ("wake",), "udp": ("rate", 1024, 9000), "within": ("send_lat", 8),
    "between": ("send_bw", MIB), "mapped": ("write_rate", 8), "idle": ("wakeups", 1), "threads": ("threads", 1, "each"),
    "shm": ("am_lat", 8), "tcp": ("tag_lat", 8), "over": ("tag_lat", 8), "mpi": ("bw", 64 * KIB), "libfabric": ("tcp", 64),
    "over_mapped": ("put_lat", 8), "iperf": ("loopback",),
    "connections": ("connect",), "sockets": ("connect",), "cmtime": ("connected", 20), "rstream": ("lat", 64),
    "rstream_tcp": ("lat", 64), "together": ("send_lat", 8), "mpi_together": ("lat", 8), "shm_together": ("am_lat", 8),
}
ABSENT = re.compile(r"is not installed|network namespace|veth pair")


def few():
    """As many messages as show that it works. On a busy machine each may wait for a turn of the scheduler."""
    perftest.LAT_TRIPS = perftest.EVENT_TRIPS = perftest.ATOMIC_TRIPS = 200
    perftest.messages = lambda size, far: 8
    connections.TURNS = 5
    connections.Connections.measure.__defaults__ = (5,)
    libfabric.TRIPS = {"shm": 50, "tcp": 50}
    rsockets.TRIPS = 50
    ucx.count = lambda spec, slow: 50


class Tap:
    def __init__(self):
        self.count = self.failed = self.passed = 0

    def tell(self, name, fault, skips=""):
        self.count += 1
        self.failed += bool(fault)
        self.passed += not fault and not skips
        print(f"{'not ok' if fault else 'ok'} {self.count} - {name}" + (f" # SKIP {skips}" if skips else ""))
        if fault:
            print(f"#   {fault}")
        sys.stdout.flush()


def one(session, library, name, source, tap):
    """A round of its cheap figure, which goes all the way to a line of the report."""
    rounds = Rounds(session, [library])
    figure = source.figure(*CHEAP[name])
    try:
        rounds.run([Row(figure.name, figure)], 1)
    except Exception as fault:  # of the source's own code: the others have their turn all the same
        return tap.tell(name, repr(fault))
    failed, values = rounds.failed[0].get(figure.name), rounds.values(figure.name)
    if failed:
        return tap.tell(name, *(("", failed) if ABSENT.search(failed) else (failed,)))
    final = result.build(machine.facts(), {}, [figure], rounds, [Row(figure.name, figure)])
    good = len(values) == 1 and values[0] >= 0 and any(figure.name in line for line in report.lines(final))
    return tap.tell(name, "" if good else f"no figure came out: {values}")


def skip(reason):
    print(reason, file=sys.stderr)
    sys.exit(SKIP)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build = os.path.abspath(sys.argv[1])
    hosts.enter(lambda reason: None)
    few()
    cores = sorted(os.sched_getaffinity(0))
    session = Session(build, cores[-1], cores[0])
    tap = Tap()
    try:
        try:
            session.make_hosts()
        except Failure as fault:
            session.no_nets = str(fault)
        library = Library(build)
        for name, source in vars(table).items():
            if not isinstance(source, Source):
                continue
            if name in CHEAP:
                one(session, library, name, source, tap)
            else:
                tap.tell(name, "bench/rows.py has this source, and this test does not")
    finally:
        session.close()
    print(f"1..{tap.count}")
    if not tap.passed and not tap.failed:
        skip("no program of a source is installed")
    return 1 if tap.failed else 0


sys.exit(main())
