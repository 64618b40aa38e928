# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Debian's programs between two hosts: the same table as on one host (tests/apps/cases.py), over both address families and on
interfaces of MTU 1500 and 9000.

A cell is a family and an MTU. The caller (root, mostly) runs every pingpong and perftest's programs without options in all four
cells, and perftest's options in one cell, the next option in the next cell. An ordinary user has the same calls; what is different is the receive
buffer of a stock machine, which perftest then has. So it runs each pingpong in one of two cells that have both families and both
MTUs, the programs without options in both, and of the options those with several queue pairs or large messages, in the cell opposite
to the caller's (other family, other MTU).
"""

import cases
import hosts

CELLS = (("IPv4", 1500), ("IPv6", 9000), ("IPv6", 1500), ("IPv4", 9000))  # the opposite of cell i is cell i ^ 1
ORDINARY_CELLS = CELLS[:2]
PATH_MTU = {1500: 1024, 9000: 4096}
STOCK_BUFFER = 212992  # net.core.rmem_default of a kernel that nobody has tuned
# Datagrams and UC have no way to be slowed: more of these messages than a stock buffer takes may be lost, and then perftest waits
# for ever. A packet of 1024 bytes takes 2304 of the buffer.
UNRELIABLE_MESSAGES = 40
# perftest gives a peer half a second before it gives a request up, which on a busy machine is no proof of anything: 8 s here.
PATIENT = ["-u", "18"]
EXTRA = (
    ("write", "bw", ["-s", "1048576"], 1048576),
    ("read", "bw", ["-s", "1048576"], 1048576),
    ("send", "bw", ["-s", "65536", "-q", "8"], 65536),
)


class Programs:
    def __init__(self, tests):
        self.tests = tests

    def pingpongs(self, cell):
        family, mtu = cell
        for number, (name, argv, check) in enumerate(cases.pingpongs(hosts.DEVICE)):
            if self.tests.args.ordinary and ORDINARY_CELLS[number % 2] != cell:
                continue
            argv = list(argv)
            argv[argv.index("-g") + 1] = str(self.tests.index[family])
            # A datagram is one packet: its size takes the place of a path MTU.
            argv += ["-s", str(PATH_MTU[mtu])] if "_ud_" in name else ["-m", str(PATH_MTU[mtu])]
            self.tests.pair(f"{family}, MTU {mtu}: {name}", argv, check)

        for name, argv, check, clients in cases.xrc_pingpongs(hosts.DEVICE):
            argv = list(argv)
            argv[argv.index("-g") + 1] = str(self.tests.index[family])
            argv += ["-m", str(PATH_MTU[mtu])]
            self.tests.crowd(f"{family}, MTU {mtu}: {name}", argv, check, clients)

    def perftest(self, cell, name, argv, check, buffer=None):
        family, mtu = cell
        argv = [*argv, *PATIENT, "-x", str(self.tests.index[family])]
        if "UD" not in argv:
            argv += ["-m", str(PATH_MTU[mtu])]
        env, label = {}, ""
        if buffer:
            env, label = {"VERBATIM_UDP_BUFFER": str(buffer)}, f", receive buffer {buffer}"
            if "UD" in argv or "UC" in argv:
                argv[argv.index("-n") + 1] = str(UNRELIABLE_MESSAGES)
        self.tests.pair(f"{family}, MTU {mtu}{label}: {name}", argv, check, **env)

    def table(self, mtu):
        """The rows that the interface's cells have."""
        rows = list(cases.perftests(hosts.DEVICE, [], False))
        rows += [(f"ib_{verb}_{kind} {' '.join(options)}",
                  [f"ib_{verb}_{kind}", "-d", hosts.DEVICE, "-F", "-n", "20", *options], cases.perftest_check([size]))
                 for verb, kind, options, size in EXTRA]
        ordinary = self.tests.args.ordinary
        for number, (name, argv, check) in enumerate(rows):
            cell = CELLS[number % len(CELLS) ^ ordinary]
            if ordinary and " " in name and "-q" not in argv and number < len(rows) - len(EXTRA):
                continue
            for where in self.cells() if " " not in name else (cell,):
                if where[1] == mtu:
                    self.perftest(where, name, argv, check, STOCK_BUFFER if ordinary else None)

    def cells(self):
        """Where everything runs, not only the options whose turn it is."""
        return ORDINARY_CELLS if self.tests.args.ordinary else CELLS

    def sweeps(self):
        """Every size from 2 bytes to 8 MiB."""
        for number, verb in enumerate(("send", "write", "read")):
            name = f"ib_{verb}_bw -a"
            argv = [f"ib_{verb}_bw", "-d", hosts.DEVICE, "-F", "-a", "-n", "5"]
            self.perftest(CELLS[1 if number % 2 else 3], name, argv, cases.perftest_check([2, 64, 4096, 65536, cases.MAX_ALL]))

    def groups(self):
        """perftest's default group is one of interface scope, which a kernel's own sockets send to no other host."""
        def one_host(argv, check):
            with self.tests.runner() as runner:
                runner.pins = [self.tests.nets.launch[0]] * 2
                check(runner.pair(argv, hosts.IPV4[0]))

        for tool in ("ib_send_bw", "ib_send_lat"):
            name = f"{tool} -c UD -g"
            argv = [*name.split(), "-d", hosts.DEVICE, "-F", "-s", "1024", "-n", "100"]
            self.perftest(("IPv6", 9000), name, argv, cases.perftest_check([1024]))
            self.tests.report.case(f"one host: {name}", lambda argv=argv: one_host(
                [*argv, "-x", str(self.tests.index["IPv6"])], cases.perftest_check([1024])))

    def device_memory(self):
        """WRITE, READ and atomics on another host's device memory and buffers."""
        def case(index):
            with self.tests.runner(VB_TEST_DEVICE=hosts.DEVICE) as runner:
                # With the right to enter the other host, where the memory is.
                runner.single([runner.program(self.tests.args.dm), str(index), self.tests.nets.netns(1)])
        for family, index in self.tests.index.items():
            self.tests.report.case(f"{family}: device memory of another host", lambda index=index: case(index))
