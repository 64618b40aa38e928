# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""rsockets, by rstream, which can do the same by sockets of TCP (-T s)."""

from kit.figure import Source
from kit.session import Failure, free_port
from sources.connections import ADDRESS, cm_runner

TRIPS = 30000
SENDS = 500
GBITS, US = 6, 7  # columns


def column(text, number):
    lines = text.splitlines()
    fields = lines[-1].split() if lines else []
    if len(fields) != US + 1 or not fields[number].replace(".", "", 1).isdigit():
        raise Failure("rstream printed no table")
    return float(fields[number])


class Rstream(Source):
    """Specs: ("lat", SIZE): half a round trip; ("bw", SIZE): one way, then the other."""

    name = "rstream"
    own = True
    units = {"lat": "us", "bw": "GB/s"}
    options = ()

    def run(self, session, library, specs):
        session.need("rstream")
        return {spec: self.measure(session, library, *spec) for spec in specs}

    def measure(self, session, library, what, size):
        port = free_port()
        turns = ["-C", "1", "-I", str(TRIPS)] if what == "lat" else ["-C", str(SENDS), "-I", "1"]
        argv = ["rstream", "-p", str(port), "-S", str(size), *turns, *self.options]
        with cm_runner(session, library, by_log=self.own) as runner:
            text = runner.sides([*argv, "-b", ADDRESS], [[*argv, "-s", ADDRESS]], port)[1]
        return column(text, US) if what == "lat" else column(text, GBITS) / 8


class RstreamTcp(Rstream):
    name = "rstream over TCP"
    own = False
    options = ("-T", "s")
