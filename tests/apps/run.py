#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: run.py --lib DIR [--device lo|second] [--ordinary] [--sweep lat|bw]... [--brief] [--shares N] [--only REGEX] [--preload FILE] [--debug]
Debian's programs, unmodified, as separate processes on the library. Prints one TAP line a case; exits 1 when one
failed, 77 (reason on the last line of standard error) when nothing could be run."""

import argparse
import os
import select
import shutil
import signal
import subprocess
import sys
import time

import cases
import shares
from pairs import Failure, Runner

SKIP = 77
SECOND = "vbtest0"
SECOND_ADDRESS = "198.51.100.1"  # of the block that is reserved for examples


def skip(reason):
    print(reason, file=sys.stderr)
    sys.exit(SKIP)


def enter_namespace():
    """Starts this program again in a network namespace of its own, which ends with its last process."""
    if os.environ.get("VB_APPS_NAMESPACE") == "1":
        return
    flags = ["--net"] if os.geteuid() == 0 else ["--map-root-user", "--net"]
    if subprocess.run(["unshare", *flags, "true"], capture_output=True, check=False).returncode != 0:
        skip("a network namespace may not be created here (unshare --net is refused)")
    os.environ["VB_APPS_NAMESPACE"] = "1"
    os.execvp("unshare", ["unshare", *flags, sys.executable, *sys.argv])


def make_second_interface():
    """A veth pair, or a dummy interface where the kernel has no veth."""
    ip = shutil.which("ip") or "/usr/sbin/ip"
    kinds = (["veth", "peer", "name", "vbtest1"], ["dummy"])
    made = [kind for kind in kinds
            if subprocess.run([ip, "link", "add", SECOND, "type", *kind], capture_output=True,
                              check=False).returncode == 0][:1]
    if not made:
        skip("neither a veth nor a dummy interface can be made here")
    commands = [["link", "set", "lo", "up"], ["addr", "add", f"{SECOND_ADDRESS}/24", "dev", SECOND],
                ["link", "set", SECOND, "up"]]
    if made[0][0] == "veth":
        commands.append(["link", "set", "vbtest1", "up"])
    for command in commands:
        subprocess.run([ip, *command], check=True)


def checked(run, argv, check):
    def case():
        check(run(argv))
    return case


def read_terminal(fd, wanted, deadline):
    text = ""
    while wanted not in text and time.monotonic() < deadline:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                text += os.read(fd, 4096).decode("utf-8", "replace")
            except OSError:  # the program has ended
                break
    return text


def asyncwatch(runner, device):
    """It announces the device and then waits for events until it is told to end. On a terminal, since it does not
    flush what it prints elsewhere."""
    master, slave = os.openpty()
    process = runner.start_on(["ibv_asyncwatch", "-d", device], slave)
    os.close(slave)
    try:
        text = read_terminal(master, "async event FD", time.monotonic() + runner.timeout)
        if "async event FD" not in text:
            raise Failure(f"ibv_asyncwatch did not start to watch:\n{text}")
        time.sleep(0.1)
        if process.poll() is not None:
            raise Failure(f"ibv_asyncwatch ended by itself ({process.returncode})")
        process.send_signal(signal.SIGTERM)
        if process.wait(runner.timeout) != -signal.SIGTERM:
            raise Failure(f"ibv_asyncwatch ended with {process.returncode} on SIGTERM")
    finally:
        runner.end(process)
        os.close(master)


def run_all(runner, device, args, report):
    for name, argv, check in cases.singles(device):
        report.case(name, checked(runner.single, argv, check))
    report.case("ibv_asyncwatch", lambda: asyncwatch(runner, device))
    for name, argv, check, clients in cases.xrc_pingpongs(device):
        report.case(name, checked(lambda argv, clients=clients: runner.crowd(argv, clients), argv, check))
    for name, argv, check in (*cases.pingpongs(device), *cases.perftests(device, args.sweep, args.brief)):
        report.case(name, checked(runner.pair, argv, check))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lib", required=True)
    parser.add_argument("--device", choices=("lo", "second"), default="lo")
    parser.add_argument("--ordinary", action="store_true")
    parser.add_argument("--sweep", action="append", choices=("lat", "bw"), default=[],
                        help="for perftest's programs of this kind more sizes: all (bw), the first and the last (lat)")
    parser.add_argument("--brief", action="store_true", help="of perftest only the plain and the event-driven runs")
    parser.add_argument("--shares", type=int, default=1, help="so many cases at once")
    parser.add_argument("--only")
    parser.add_argument("--preload", help="the sanitizer's runtime that an instrumented library needs first")
    parser.add_argument("--debug", action="store_true")
    args = parser.parse_args()

    for program in ("setpriv", "ibv_rc_pingpong", "ib_send_lat"):
        if not shutil.which(program):
            skip(f"{program} is not installed")
    if args.ordinary and os.geteuid() != 0:
        skip("started as an ordinary user: the run without --ordinary is that case already")
    if args.shares > 1:
        return shares.run_shared(args.shares)
    if args.device == "second":
        enter_namespace()
        make_second_interface()
    device = "vb_lo" if args.device == "lo" else f"vb_{SECOND}"

    report = shares.Report(args.only)
    # The programs' own leaks are not ours to judge.
    env = {"LD_PRELOAD": args.preload, "ASAN_OPTIONS": "detect_leaks=0:exitcode=66"} if args.preload else {}
    with Runner(args.lib, ordinary=args.ordinary, debug=args.debug, env=env) as runner:
        run_all(runner, device, args, report)
    return report.end()


sys.exit(main())
