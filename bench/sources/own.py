# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What perftest does not measure, by the programs of bench/own on the library."""

import re

from kit.figure import Source
from kit.session import Failure
from sources.floor import Programs


class Mapped(Programs):
    name = "verbatim, mapped"
    own = True
    program = "mapped"
    units = {"lat": "us", "write_rate": "M/s", "write_list": "M/s", "write": "GB/s", "read": "GB/s"}


class Idle(Programs):
    name = "verbatim, idle"
    once = True
    placed = False
    own = True
    program = "idle"
    units = {"wakeups": "wakeups", "cpu": "ms"}


DOMAINS = {"none": "no thread domain", "one": "one thread domain", "each": "one each"}


def thread_rates(text):
    """{(threads, domains): millions of messages a second} of the program's lines."""
    found = {}
    for threads, label, rate in re.findall(r"^(\d) threads? *, (.+?) +([0-9.]+) M messages/s", text, re.M):
        for key, name in DOMAINS.items():
            if name == label.strip():
                found[(int(threads), key)] = float(rate)
    return found


class Threads(Source):
    """Specs: ("threads", NUMBER, "none"|"one"|"each")."""

    name = "verbatim"
    own = True
    batch = True
    units = {"threads": "M/s"}

    def run(self, session, library, specs):
        cores = ",".join(str(core) for core in session.cores)
        found = thread_rates(session.run(["taskset", "-c", cores, session.program("threads"), "0.1", "1"], library))
        missing = [spec for spec in specs if spec[1:] not in found]
        if missing:
            raise Failure(f"threads gave no figure for {missing[0]}")
        return {spec: found[spec[1:]] for spec in specs}
