#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: run.py --lib DIR [--mcast PROGRAM] [--reply PROGRAM] [--xrc PROGRAM] [--memory PROGRAM] [--dm PROGRAM]
  [--reused PROGRAM] [--strays PROGRAM] [--join PROGRAM] [--ordinary] [--shares N] [--only REGEX] [--debug]
The link between hosts: unmodified programs in two network namespaces, and what goes wrong there. Prints one TAP line a case;
exits 1 when one failed, 77 (reason on the last line of standard error) when nothing could be run."""

import argparse
import os
import shutil
import signal
import sys

SKIP = 77
TRIES = 3
AWAY = "transport retries exceeded (12)"  # as the pingpongs say it
HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "apps")]

import hosts  # noqa: E402
import shares  # noqa: E402
import router  # noqa: E402
import users  # noqa: E402
from pairs import Failure, Runner  # noqa: E402
from programs import Programs  # noqa: E402
from several import Several  # noqa: E402
from trouble import Trouble  # noqa: E402


def skip(reason):
    print(reason, file=sys.stderr)
    sys.exit(SKIP)


class Tests:
    """What the cases share: the two hosts, as whom programs run, where results go."""

    def __init__(self, args, nets, report):
        self.args = args
        self.nets = nets
        self.report = report
        self.index = {"IPv4": nets.index_of(0, hosts.IPV4[0]), "IPv6": nets.index_of(0, hosts.IPV6[0])}
        if self.index["IPv6"] != nets.index_of(1, hosts.IPV6[1]):
            raise RuntimeError("the two hosts have their addresses at different indices")

    def runner(self, timeout=40, **env):
        env.setdefault("VERBATIM_LOG", "warn")
        return Runner(self.args.lib, timeout=timeout, env=env, debug=self.args.debug, pins=self.nets.launch)

    def case(self, name, run):
        """The pingpongs give half a second to all tries of a packet, which cannot be set. Where a side has no processor for so long,
        the case begins anew."""
        def tried():
            for left in range(TRIES - 1, -1, -1):
                try:
                    return run()
                except Failure as fault:
                    if not left or AWAY not in str(fault):
                        raise
                    print(f"# once more: {AWAY}")
            return None
        self.report.case(name, tried)

    def pair(self, name, argv, check, **env):
        def run():
            with self.runner(**env) as runner:
                check(runner.pair(argv, hosts.IPV4[0]))
        self.case(name, run)

    def crowd(self, name, argv, check, clients):
        def run():
            with self.runner() as runner:
                check(runner.crowd(argv, clients, hosts.IPV4[0]))
        self.case(name, run)


def run_all(tests):
    programs, several, trouble = Programs(tests), Several(tests), Trouble(tests)
    if not tests.args.ordinary:  # what takes longest comes first
        programs.sweeps()
        trouble.faults()
    several.idle()
    for mtu in (9000, 1500):
        tests.nets.set_mtu(mtu)
        for cell in programs.cells():
            if cell[1] == mtu:
                programs.pingpongs(cell)
        programs.table(mtu)
    trouble.mtu_refused()
    trouble.mtu_told()
    tests.nets.set_mtu(9000)
    several.servers()
    several.bystanders()
    several.hand_over()
    several.xrc()
    programs.groups()
    programs.device_memory()
    several.multicast("239.1.2.3", "IPv4")
    several.multicast("ff05::1:2:3", "IPv6")
    several.multicast_apart("239.1.2.4", "IPv4")
    several.multicast_apart("ff05::1:2:4", "IPv6")
    trouble.reply_first()
    trouble.memory()
    trouble.numbers_taken()
    trouble.strays()
    trouble.join()
    trouble.port_taken()
    router.across(tests)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that being told to end clears up
    parser = argparse.ArgumentParser()
    parser.add_argument("--lib", required=True, type=os.path.abspath)
    for name in users.PROGRAMS:
        parser.add_argument(f"--{name}", type=os.path.abspath, help="the built program, when not in tests/udp beside the library")
    parser.add_argument("--ordinary", action="store_true")
    parser.add_argument("--shares", type=int, default=1, help="so many pairs of hosts at once, each working off its share")
    parser.add_argument("--only")
    parser.add_argument("--debug", action="store_true")
    args = parser.parse_args()
    for name in users.PROGRAMS:
        if not getattr(args, name):
            setattr(args, name, os.path.join(os.path.dirname(args.lib), "tests", "udp", f"udp-{name}"))

    for program in ("setpriv", "unshare", "nsenter", "ibv_rc_pingpong", "ib_send_lat"):
        if not shutil.which(program):
            skip(f"{program} is not installed")
    if args.ordinary and os.geteuid() == 0 and os.environ.get(hosts.MARK) != "1":
        return users.run_as_ordinary(os.path.abspath(__file__), args)
    if args.shares > 1:
        return shares.run_shared(args.shares)
    hosts.enter(skip)
    os.environ["LD_LIBRARY_PATH"] = args.lib
    nets = hosts.Hosts(skip)
    try:
        if args.ordinary:
            nets.launch = tuple([*enter, *users.NO_RIGHTS] for enter in nets.enter)
        report = shares.Report(args.only)
        run_all(Tests(args, nets, report))
    finally:
        nets.close()
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
