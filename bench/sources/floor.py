# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The floor: what the machine itself reaches, by the small programs of bench/floor."""

from kit.figure import Source
from kit.session import Failure
from sources.openmpi import results


class Programs(Source):
    """Of one program that takes words NAME[:SIZE] and answers each by a line. Specs: (NAME,) or (NAME, SIZE)."""

    batch = True
    program = ""

    def run(self, session, library, specs):
        words = [":".join(str(part) for part in spec) for spec in specs]
        argv = [session.program(self.program), "-c", str(session.cores[1]), "-d", str(session.cores[0]), *words]
        found = results(session.run(argv, library if self.own else None))
        missing = [word for word in words if word not in found]
        if missing:
            raise Failure(f"{self.program} gave no figure for {missing[0]}")
        return {spec: found[word] for spec, word in zip(specs, words)}


class Ring(Programs):
    name = "floor"
    program = "ring"
    units = {"line": "us", "slot_ring": "us", "slot_rate": "M/s", "tsc": "MHz"}

    def __init__(self):
        super().__init__()
        self.tsc = None

    def mhz(self, session):
        """Of the counter that perftest gives its cycles in; asked for once."""
        if self.tsc is None:
            self.tsc = self.run(session, None, [("tsc",)])[("tsc",)]
        return self.tsc


class Copy(Programs):
    name = "floor process_vm"
    program = "copy"
    units = {"write_us": "us", "read_us": "us", "write_rate": "M/s", "read_rate": "M/s", "write": "GB/s", "read": "GB/s",
             "halves": "GB/s", "memcpy": "GB/s"}


class Wake(Programs):
    name = "floor eventfd"
    program = "wake"
    units = {"wake": "us"}


class Udp(Source):
    """Between the two hosts. Specs: ("trip", BYTES), ("rate", BYTES of a datagram's payload, MTU of the interface)."""

    name = "raw UDP"
    units = {"trip": "us", "rate": "GB/s"}

    def run(self, session, library, specs):
        return {spec: self.measure(session, *spec) for spec in specs}

    def measure(self, session, mode, size, mtu=9000):
        session.set_mtu(mtu)
        argv = [session.program("udp"), "-m", mode, "-s", str(size), "-n", "10000" if mode == "trip" else "1000"]
        found = results(session.pair(argv, far=True)[1])
        if mode not in found:
            raise Failure("udp gave no figure")
        return found[mode]
