# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""perftest, unmodified, on the library: within a host and between two.

Latencies are asked for in cycles, since perftest rounds microseconds to two digits, and 0.01 us is a tenth of what is measured;
what a cycle is, the floor says (`ring tsc`)."""

import platform

from kit.figure import Source
from kit.session import ETHERNET, JUMBO, Failure, hosts

LAT_TRIPS = 30000
EVENT_TRIPS = 3000
ATOMIC_TRIPS = 10000
PATIENT = ["-u", "18"]  # half a second without an answer is no proof that a peer is gone
IN_CYCLES = platform.machine() == "x86_64"


def table(text):
    """{size: fields} of the rows of perftest's table; raises Failure where there is none, or a field is no number."""
    rows = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 4 and fields[0].isdigit() and fields[1].isdigit():
            try:
                rows[int(fields[0])] = [float(field) for field in fields]
            except ValueError:
                raise Failure(f"perftest's table has a line that is none: {line.strip()}") from None
    if not rows:
        raise Failure("perftest printed no table")
    return rows


def column(text, size, number):
    rows = table(text)
    if size not in rows:
        raise Failure(f"perftest has no row for {size} bytes")
    fields = rows[size]
    if not -len(fields) <= number < len(fields):
        raise Failure(f"perftest's row has {len(fields)} columns")
    if fields[number] <= 0:
        raise Failure(f"perftest says {fields[number]:g}")
    return fields[number]


TYPICAL, MEAN = 4, 5  # columns: of latencies
AVERAGE, RATE = 3, -1  # of bandwidths in Gbit/s; messages in millions a second


def trips(verb, far):
    if far:
        return LAT_TRIPS // 3
    return ATOMIC_TRIPS if verb == "atomic" else LAT_TRIPS


def messages(size, far):
    """Enough that it lasts a tenth of a second or two."""
    return max(64, min(100000, (1 << (30 if far else 31)) // size))


class Perftest(Source):
    """Specs: ("send_lat", SIZE, OPTION...), ("send_mean", SIZE), ("send_rate", 8, OPTION...), ("write_bw", SIZE, OPTION...)."""

    own = True
    far = together = False

    def __init__(self, ring):
        super().__init__()
        self.ring = ring  # says what a cycle is

    def unit(self, spec):
        return {"lat": "us", "mean": "us", "rate": "M/s", "bw": "GB/s"}[spec[0].split("_")[1]]

    def device(self):
        return ["-d", hosts.DEVICE if self.far else "vb_lo", "-F", *(PATIENT if self.far else [])]

    def start(self, session, library, argv):
        return session.pair([*argv, *self.device()], library, far=self.far, together=self.together)[1]

    def run(self, session, library, specs):
        return {spec: self.measure(session, library, *spec) for spec in specs}

    def measure(self, session, library, what, size, *options):
        verb, kind = what.split("_")
        return getattr(self, kind)(session, library, verb, size, list(options))

    def lat(self, session, library, verb, size, options, number=TYPICAL):
        sized = [] if verb == "atomic" else ["-s", str(size)]
        count = EVENT_TRIPS if "-e" in options else max(200, min(trips(verb, self.far), (1 << 28) // size))
        cycles = ["-C"] if IN_CYCLES else []
        text = self.start(session, library, [f"ib_{verb}_lat", *sized, "-n", str(count), *cycles, *options])
        value = column(text, size, number)
        return value / self.ring.mhz(session) if IN_CYCLES else value

    def mean(self, session, library, verb, size, options):
        """The average of all trips, the first ones included: for programs that print no other figure."""
        return self.lat(session, library, verb, size, options, MEAN)

    def rate(self, session, library, verb, size, options):
        argv = [f"ib_{verb}_bw", "-s", str(size), "-n", str(50000 if self.far else 300000), "-N", *options]
        return column(self.start(session, library, argv), size, RATE)

    def bw(self, session, library, verb, size, options):
        argv = [f"ib_{verb}_bw", "-s", str(size), "-n", str(messages(size, self.far)), "--report_gbits", "-N", *options]
        return column(self.start(session, library, argv), size, AVERAGE) / 8


class Within(Perftest):
    name = "verbatim"


class Together(Perftest):
    """Both processes on one core."""

    name = "verbatim, one core"
    placed = False
    together = True


class Between(Perftest):
    """Of two hosts. The first option may be "1500", the interface's MTU, instead of 9000; the path MTU is an option as any."""

    name = "verbatim, hosts"
    far = True

    def measure(self, session, library, what, size, *options):
        small = str(ETHERNET) in options[:1]
        session.set_mtu(ETHERNET if small else JUMBO)
        return super().measure(session, library, what, size, *options[small:])

