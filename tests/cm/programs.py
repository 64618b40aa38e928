#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: programs.py --lib DIR [--ordinary] [--all | --brief] [--shares N] [--only REGEX] [--debug]
Unmodified programs that connect through the connection manager: a server and a client, on one host and on two (network
namespaces), over IPv4 and IPv6. Each row of table.py runs in two of these four cells, the next row in the other two; --all: in
all four; --brief: in one, in turn. Prints one TAP line a case; exits 1 when one failed, 77 (reason on the last line of standard
error) when nothing could be run."""

import argparse
import filecmp
import os
import shutil
import signal
import sys

SKIP = 77
HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(TESTS, "udp"), os.path.join(TESTS, "apps")]

import hosts  # noqa: E402
import shares  # noqa: E402
import table  # noqa: E402
import users  # noqa: E402
from cm_pairs import CmRunner, a_port  # noqa: E402
from pairs import Failure  # noqa: E402

# Neighbours are of opposite kind, so that a row which runs in two cells sees both families and both ways.
CELLS = (("one host", "IPv4"), ("two hosts", "IPv6"), ("one host", "IPv6"), ("two hosts", "IPv4"))
FILE_BYTES = 3_000_017
MULTICAST = {"IPv4": "230.1.2.3", "IPv6": "ff15::1:2:3"}


def skip(reason):
    print(reason, file=sys.stderr)
    sys.exit(SKIP)


class Programs:
    def __init__(self, args, nets, report):
        self.args, self.nets, self.report = args, nets, report

    def runner(self, where, known_by="log", faults=""):
        launch = self.nets.launch
        pins = [launch[0], launch[0] if where == "one host" else launch[1]]
        env = {"VERBATIM_FAULT": faults} if faults else None
        return CmRunner(self.args.lib, timeout=60, debug=self.args.debug, pins=pins, known_by=known_by, env=env)

    def run(self, entry, where, family, faults=""):
        # The server is host 0 of two.
        address = (hosts.IPV4 if family == "IPv4" else hosts.IPV6)[0]
        port = 7174 if "{port}" not in " ".join(entry.server) else a_port()
        with self.runner(where, entry.known_by, faults) as runner:
            words = {"address": address, "port": port, "file": os.path.join(runner.dir, "file"), "copy": os.path.join(runner.dir, "copy")}
            if any("{file}" in word for word in entry.client):
                with open(words["file"], "wb") as handle:
                    handle.write(os.urandom(FILE_BYTES))
                os.chmod(runner.dir, 0o777)
            server = [word.format(**words) for word in entry.server]
            clients = [[word.format(**words) for word in entry.client]] * entry.clients
            outputs = runner.sides(server, clients, port) if entry.ends else runner.served(server, clients, port)
            table.checked(entry, outputs)
            if os.path.exists(words["file"]) and not filecmp.cmp(words["file"], words["copy"], shallow=False):
                raise Failure(f"{entry.name}: the copy differs from the file")

    def mckey(self, where, family, options):
        """Both sides join; the sender waits for that by itself."""
        with self.runner(where) as runner:
            address = hosts.IPV4 if family == "IPv4" else hosts.IPV6
            common = ["mckey", "-m", MULTICAST[family], *options]
            outputs = runner.together([[*common, "-b", address[0]],
                                       [*common, "-s", "-b", address[0 if where == "one host" else 1]]])
            for text in outputs:
                if "test complete" not in text or "return status 0" not in text:
                    raise Failure(f"mckey: it did not complete\n{text}")

    def cells(self, entry, number):
        """The cells that the row runs in."""
        cells = [cell for cell in CELLS if cell[1] in entry.families]
        if self.args.brief:
            return [cells[number % len(cells)]]
        if self.args.all or len(cells) < len(CELLS):
            return cells
        return cells[:2] if number % 2 == 0 else cells[2:]

    def all(self):
        number = 0
        for entry in table.all_rows(self.args.brief):
            if not shutil.which(entry.server[0]):
                continue
            for where, family in self.cells(entry, number):
                self.report.case(f"{where}, {family}: {entry.name}",
                                 lambda entry=entry, where=where, family=family: self.run(entry, where, family))
            number += 1
        for where, family in CELLS:
            for options in ([], ["-C", "5", "-S", "200", "-c", "2"]):
                self.report.case(f"{where}, {family}: mckey {' '.join(options)}".rstrip(),
                                 lambda where=where, family=family, options=options: self.mckey(where, family, options))
        self.lossy()

    def lossy(self):
        """Packets between the hosts are lost, repeated and change places: the connection manager's, and those of the data."""
        for number, (entry, faults) in enumerate(table.lossy_rows(self.args.brief)):
            family = entry.families[number % len(entry.families)]
            self.report.case(f"two hosts, {family}, {faults}: {entry.name}",
                             lambda entry=entry, family=family, faults=faults: self.run(entry, "two hosts", family, faults))


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that being told to end clears up
    parser = argparse.ArgumentParser()
    parser.add_argument("--lib", required=True, type=os.path.abspath)
    parser.add_argument("--ordinary", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--shares", type=int, default=1, help="so many pairs of hosts at once, each working off its share")
    parser.add_argument("--only")
    parser.add_argument("--debug", action="store_true")
    args = parser.parse_args()
    for program in ("setpriv", "unshare", "nsenter", "rping", "ucmatose"):
        if not shutil.which(program):
            skip(f"{program} is not installed")
    if args.ordinary and os.geteuid() == 0 and os.environ.get(hosts.MARK) != "1":
        return users.run_as_ordinary(os.path.abspath(__file__), args, programs=(), folders=("apps", "udp", "cm"))
    if args.shares > 1:
        return shares.run_shared(args.shares)
    hosts.enter(skip)
    report = shares.Report(args.only)
    nets = hosts.Hosts(skip)
    try:
        if args.ordinary:
            nets.launch = tuple([*enter, *users.NO_RIGHTS] for enter in nets.enter)
        Programs(args, nets, report).all()
    finally:
        nets.close()
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
