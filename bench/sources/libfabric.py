# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""fi_pingpong, unmodified: libfabric over its own shared memory and over TCP."""

import re

from kit.figure import Source
from kit.session import Failure

TRIPS = {"shm": 50000, "tcp": 10000}
PROVIDERS = {"shm": ["-p", "shm", "-e", "rdm", "-m", "tagged"], "tcp": ["-p", "tcp", "-e", "msg"]}


def microseconds(text, size):
    """Half a round trip: the column usec/xfer of the row of this size ("64", "64k", "1m")."""
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 6 and fields[0] == size and re.fullmatch(r"[0-9.]+", fields[-2]):
            return float(fields[-2])
    raise Failure(f"fi_pingpong printed no row for {size}: {text.strip()[-200:]}")


class Pingpong(Source):
    """Specs: ("shm", SIZE), ("tcp", SIZE). fi_pingpong rounds to a hundredth of a microsecond."""

    name = "libfabric"
    units = {"shm": "us", "tcp": "us"}

    def run(self, session, library, specs):
        session.need("fi_pingpong")
        return {spec: self.measure(session, *spec) for spec in specs}

    @staticmethod
    def measure(session, provider, size):
        argv = ["fi_pingpong", *PROVIDERS[provider], "-S", str(size), "-I", str(TRIPS[provider])]
        return microseconds(session.ports(argv, "-B", [*argv, "-P"]), str(size))
