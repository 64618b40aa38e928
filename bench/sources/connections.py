# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Connections within a host: by bench/own/connections.c and by cmtime on the library, and by sockets beside them."""

import re
import resource

from kit.figure import Source
from kit.session import TIMEOUT, CmRunner, Failure, a_port, cmtime_has_threads, free_port

ADDRESS = "127.0.0.1"
TURNS = 300
FILES = 8192  # descriptors that a crowd of sockets needs


def said(text, word):
    """The figure that a program says after a word."""
    found = re.search(rf"^{word} +([0-9.]+)", text, re.M)
    if not found:
        raise Failure(f"the program did not say {word!r}")
    return float(found.group(1))


def cm_runner(session, library, by_log=True):
    """Runs pairs that meet by the connection manager."""
    return CmRunner(library.folder if library else session.any_library(), timeout=TIMEOUT, pins=session.pins,
                    known_by="log" if by_log else "tcp")


def more_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(FILES, hard)), hard))


class Connections(Source):
    """Specs: ("connect",), ("whole",): one after the other; ("together", COUNT): all at once; ("memory", COUNT)."""

    name = "verbatim"
    placed = False
    own = True
    mode = "rdma"
    units = {"connect": "us", "whole": "us", "together": "ms", "memory": "bytes"}
    options = {"connect": (), "whole": (), "together": ("-k",), "memory": ("-k", "-q")}

    def both(self, session, library, what, count):
        port = free_port()
        argv = [session.program("connections"), "-m", self.mode, *self.options[what], "-n", str(count), "-p", str(port)]
        more_files()
        with cm_runner(session, library, by_log=self.own) as runner:
            return runner.sides(argv, [[*argv, ADDRESS]], port)

    def run(self, session, library, specs):
        return {spec: self.measure(session, library, *spec) for spec in specs}

    def measure(self, session, library, what, count=TURNS):
        texts = self.both(session, library, what, count)
        if what == "memory":
            return max(said(text, "kept") for text in texts)
        return said(texts[1], what)


class Sockets(Connections):
    """The same by TCP; no memory, which is the kernel's."""

    name = "TCP sockets"
    own = False
    mode = "tcp"


STEPS = ("create id", "resolve addr", "resolve route", "create qp", "connect")


def all_steps(text):
    """Milliseconds of cmtime's table."""
    steps = {step: float(total) for step, total in re.findall(r"^([a-z ]+?) *: +([0-9.]+)", text, re.M)}
    if any(step not in steps for step in STEPS):
        raise Failure("cmtime printed no table")
    return sum(steps[step] for step in STEPS)


class Cmtime(Source):
    """Specs: ("connected", COUNT): all steps of the client until the last connection is there."""

    name = "cmtime"
    placed = False
    own = True
    units = {"connected": "ms"}

    def run(self, session, library, specs):
        session.need("cmtime")
        if cmtime_has_threads():
            raise Failure("the cmtime whose table is read here (Debian 12) is not installed")
        return {spec: self.measure(session, library, spec[1]) for spec in specs}

    def measure(self, session, library, count):
        port = a_port()
        argv = ["cmtime", "-p", str(port), "-c", str(count)]
        with cm_runner(session, library) as runner:
            # Its server never ends.
            return all_steps(runner.served([*argv, "-b", ADDRESS], [[*argv, "-s", ADDRESS]], port)[1])
