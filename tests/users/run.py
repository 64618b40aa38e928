#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: run.py --lib DIR [--mcast PROGRAM] [--shares N] [--only REGEX]
Promise: processes of users that agree (VERBATIM_DOMAIN) share the port between hosts, and one of them that stands still, dies or
lies holds up no other; without agreement the port is refused by the holder's name, and everything within the host goes on. Two
hosts are two network namespaces; the users are numbers. Prints one TAP line a case; exits 77 where that cannot be had."""

import argparse
import os
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "udp"), os.path.join(os.path.dirname(HERE), "apps")]

import hosts  # noqa: E402
import people  # noqa: E402
import shares  # noqa: E402
from agree import Agree  # noqa: E402
from hostile import Hostile  # noqa: E402


def enter():
    """A network namespace, as root; an ordinary user needs numbers of its own for the other users (newuidmap(1), subuid(5))."""
    if os.geteuid() == 0:
        hosts.enter(people.skip)
        return
    flags = ["--map-root-user", "--map-auto", "--net"]
    if subprocess.run(["unshare", *flags, "true"], capture_output=True, check=False).returncode != 0:
        people.skip("only root can be several users, or who has newuidmap and a range of numbers in /etc/subuid")
    os.environ[hosts.MARK] = "1"
    os.execvp("unshare", ["unshare", *flags, "setpriv", "--pdeathsig", "TERM", sys.executable, *sys.argv])


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that being told to end clears up
    parser = argparse.ArgumentParser()
    parser.add_argument("--lib", required=True, type=os.path.abspath)
    parser.add_argument("--mcast", type=os.path.abspath)
    parser.add_argument("--shares", type=int, default=1, help="so many pairs of hosts at once, each working off its share")
    parser.add_argument("--only")
    args = parser.parse_args()
    for program in ("setpriv", "unshare", "nsenter", "ibv_rc_pingpong", people.PATIENT):
        if not shutil.which(program):
            people.skip(f"{program} is not installed")
    if args.shares > 1:
        return shares.run_shared(args.shares)
    enter()
    os.environ["LD_LIBRARY_PATH"] = args.lib
    nets = hosts.Hosts(people.skip)
    try:
        report = shares.Report(args.only)
        everybody = people.People(nets, args.lib)
        try:
            Agree(everybody, report, args.mcast).run()
            Hostile(everybody, report).run()
        finally:
            everybody.close()
    finally:
        nets.close()
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
