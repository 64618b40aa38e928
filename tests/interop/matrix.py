# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What is run against the kernel: programs, sizes, path MTUs, address families, both roles."""

import itertools

from cases import perftest_check, pingpong_check
from pairs import Failure

SIZES = (2, 4096, 65536, 1 << 20)
FAMILIES = ("IPv4", "IPv6")
MTUS = (1024, 4096)
ROLES = ("client", "server")  # what verbatim is
TIMEOUT_S = 120


class Case:
    """argv: a function of (device, GID index) that gives the command without port and address."""

    def __init__(self, program, column, argv, check, lossy=False):
        self.program = program  # its row in the table
        self.family, self.mtu, self.role = column
        self.argv = argv
        self.check = check
        self.lossy = lossy

    def name(self):
        return f"{self.program}, {self.family}, MTU {self.mtu}, {self.role}" + (", loss" if self.lossy else "")


def exchange_check(outputs):
    for text in outputs:
        if "all done" not in text or "FAILED" in text:
            raise Failure(f"the exchange did not finish:\n{text}")


def pingpong(kind, mtu, size, count):
    """-c: both sides look at every byte. ibv_ud_pingpong has no -m: a datagram is one packet. Its time-out is fixed, 67 ms, which an
    emulated machine exceeds with large messages; the kernel's requester gets stuck after that (docs/interop.md). Those are
    exchange's and perftest's, which can be told to wait longer."""
    def argv(device, gid):
        path = [] if kind == "ud" else ["-m", str(mtu)]
        return [f"ibv_{kind}_pingpong", "-d", device, "-g", str(gid), *path, "-s", str(size), "-n", str(count), "-c"]
    return argv


def perftest(tool, mtu, size, count, service="RC", timeout=17, options=()):
    """The time-out is half a second: an emulated machine on a busy one stands still for longer than one thinks."""
    def argv(device, gid):
        sized = [] if "atomic" in tool else ["-s", str(size)]
        return [tool, "-d", device, "-x", str(gid), "-F", "-m", str(mtu), "-c", service, *sized, "-n", str(count),
                "-u", str(timeout), *options]
    return argv


def exchange(path, mtu, tests, lossy=False):
    def argv(device, gid):
        return [path, "-d", device, "-g", str(gid), "-m", str(mtu), "-t", tests, *(["-l"] if lossy else [])]
    return argv


def pingpongs(column):
    mtu = column[1]
    for kind, size in (("rc", 4096), ("rc", 16384), ("uc", 4096), ("ud", mtu), ("srq", 4096)):
        yield Case(f"ibv_{kind}_pingpong -s {size if kind != 'ud' else 'MTU'}", column,
                   pingpong(kind, mtu, size, 50), pingpong_check)


def perftests(column):
    mtu = column[1]
    for verb, kind in itertools.product(("send", "write", "read"), ("lat", "bw")):
        for size in SIZES:
            tool = f"ib_{verb}_{kind}"
            yield Case(f"{tool} -s {size}", column, perftest(tool, mtu, size, 10 if size < 1 << 20 else 5),
                       perftest_check([size]))
    for kind in ("lat", "bw"):
        tool = f"ib_atomic_{kind}"
        yield Case(tool, column, perftest(tool, mtu, 8, 20), perftest_check([8]))
    for options in (["-e"], ["-b", "-q", "4"]):
        yield Case(" ".join(["ib_send_bw -s 4096", *options]), column,
                   perftest("ib_send_bw", mtu, 4096, 20, options=options), perftest_check([4096]))
    yield Case("ib_send_lat -c UD", column, perftest("ib_send_lat", mtu, mtu, 10, "UD"), perftest_check([mtu]))
    yield Case("ib_write_lat -c UC", column, perftest("ib_write_lat", mtu, 4096, 10, "UC"), perftest_check([4096]))


def clean(program):
    """Without loss; `program`: where the exchange program lies."""
    for column in itertools.product(FAMILIES, MTUS, ROLES):
        for tests in ("rc", "uc", "ud", "multicast", "errors"):
            yield Case(f"exchange {tests}", column, exchange(program, column[1], tests), exchange_check)
        yield from pingpongs(column)
        yield from perftests(column)


    # The other path MTUs once.
    for mtu, role in itertools.product((256, 512, 2048), ROLES):
        yield Case("exchange rc,ud", ("IPv4", mtu, role), exchange(program, mtu, "rc,ud"), exchange_check)


def lossy(program):
    """Where packets get lost. The UC and UD pingpongs would wait for a lost message for ever: not run."""
    for column in itertools.product(FAMILIES, MTUS, ROLES):
        mtu = column[1]
        for tests in ("rc", "uc", "ud"):
            yield Case(f"exchange {tests}", column, exchange(program, mtu, tests, True), exchange_check, True)
        for size in (4096, 16384):
            yield Case(f"ibv_rc_pingpong -s {size}", column, pingpong("rc", mtu, size, 100), pingpong_check, True)
        for verb, kind in (("send", "lat"), ("write", "bw"), ("read", "bw")):
            for size in (65536, 1 << 20):
                tool = f"ib_{verb}_{kind}"
                yield Case(f"{tool} -s {size}", column, perftest(tool, mtu, size, 5, timeout=16),
                           perftest_check([size]), True)
        yield Case("ib_atomic_lat", column, perftest("ib_atomic_lat", mtu, 8, 100, timeout=16),
                   perftest_check([8]), True)
