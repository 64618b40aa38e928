#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: run.py BUILD [--only REGEX] [--quick] [--clean | --lossy] [--repeat N] [--ordinary] [--kernel-both]
       [--table FILE] [--capture FILE] [--log LEVEL]
verbatim against the Linux kernel's rdma_rxe, which runs in the lab's machine (RXE_LAB, or ../shared/tools/rxe-lab beside the
project). Prints a line a case and then the table. Exits 1 when a case failed, 77 when the lab could not be started.

--quick: one case of every program in each role. --ordinary: verbatim's side as uid 65532 without capabilities.
--kernel-both: no verbatim at all, the kernel's library on both
sides inside the machine, to see whether a failure is the kernel's own. --capture: the packets of the whole run (tshark)."""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "tests", "apps"), os.path.join(ROOT, "tests", "cm")]

import connections  # noqa: E402
import lab as lab_module  # noqa: E402
import matrix  # noqa: E402
from lab import GuestProgram, Lab, NoLab, OurProgram  # noqa: E402
from pairs import Failure  # noqa: E402

SKIP = 77
PROGRAMS = ("ibv_rc_pingpong", "ib_send_lat", "ip", "nsenter", "setpriv")


def skip(reason):
    print(f"interop: skipped, not passed: {reason}")
    sys.exit(SKIP)


def find_lab():
    folder = os.environ.get("RXE_LAB") or os.path.join(os.path.dirname(ROOT), "shared", "tools", "rxe-lab")
    if not os.access(os.path.join(folder, "rxe-vm"), os.X_OK):
        skip(f"no lab: {os.path.relpath(folder, ROOT)}/rxe-vm is not there (RXE_LAB=folder names another place)")
    if os.geteuid() != 0:
        skip("the lab needs root: it makes a network namespace and a tap")
    for program in PROGRAMS:
        if not shutil.which(program):
            skip(f"{program} is not installed")
    return os.path.abspath(folder)


def gids(lab, side, device, program):
    """{family: GID index} of a device. Link-local addresses are left out."""
    found = {}
    for index, gid in re.findall(r"^gid (\d+) (\S+)$", lab.run(side, [program, "-d", device, "-G"]), re.M):
        family = "IPv4" if gid.startswith("::ffff:") and "." in gid else "IPv6"
        if not gid.startswith("fe80:"):
            found.setdefault(family, int(index))
    lacking = [family for family in matrix.FAMILIES if family not in found]
    if lacking:
        raise Failure(f"{device} has no GID of {lacking}")
    return found


class Report:
    def __init__(self):
        self.results = {}  # (lossy, program): {column: text}
        self.columns = []
        self.failed = []
        self.count = 0
        self.left_out = None

    def note(self, case, fault, seconds, remarks=()):
        self.count += 1
        row = self.results.setdefault((case.lossy, case.program), {})
        column = (case.family, case.mtu, case.role)
        if column not in self.columns:
            self.columns.append(column)
        row[column] = "FAILED" if fault or row.get(column) == "FAILED" else "ok"
        print(f"{'not ok' if fault else 'ok'} {self.count} - {case.name()} ({seconds:.1f} s)", flush=True)
        for remark in remarks:
            print(f"#   {remark}")
        if fault:
            self.failed.append(case.name())
            print("".join(f"#   {line}\n" for line in str(fault).splitlines()), end="", flush=True)

    def leave_out(self, reason):
        self.left_out = reason
        print(f"# connections are left out: {reason}", flush=True)

    def table(self):
        heads = [f"{family} {mtu} {role}" for family, mtu, role in self.columns]
        lines = ["| program | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
        for (lossy, program), row in self.results.items():
            cells = [row.get(column, "") for column in self.columns]
            lines.append(f"| {program}{', 1 % loss' if lossy else ''} | " + " | ".join(cells) + " |")
        return "\n".join(lines)


def run_case(lab, case, indexes, both_kernel):
    ours, theirs = (OurProgram, GuestProgram) if not both_kernel else (GuestProgram, GuestProgram)
    if isinstance(case, connections.Connection):
        return case.run(lab, ours) or ()
    devices = {OurProgram: lab_module.OUR_DEVICE, GuestProgram: lab_module.GUEST_DEVICE}
    client, server = (ours, theirs) if case.role == "client" else (theirs, ours)
    address = lab_module.GUEST_ADDRESS if server is GuestProgram else lab_module.OUR_ADDRESS
    port = lab.next_port()
    argv = [[*case.argv(devices[side], indexes[side][case.family]), "-p", str(port)] for side in (server, client)]
    outputs = lab.pair((server, argv[0]), (client, [*argv[1], address]), port, matrix.TIMEOUT_S)
    case.check(outputs)
    return [f"{side.side} asked: {line[len('ok error: '):]}" for side, text in zip((server, client), outputs)
            for line in text.splitlines() if line.startswith("ok error: ")]


def select(cases, args):
    chosen, seen = [], set()
    for case in cases:
        if args.only and not re.search(args.only, case.name()):
            continue
        if args.quick:
            key = (case.program.split(" -s")[0], case.role, case.lossy)
            if key in seen:
                continue
            seen.add(key)
        chosen += [case] * args.repeat
    return chosen


def run_all(lab, cases, program, args, report):
    sides = (GuestProgram,) if args.kernel_both else (OurProgram, GuestProgram)
    devices = {OurProgram: lab_module.OUR_DEVICE, GuestProgram: lab_module.GUEST_DEVICE}
    indexes = {side: gids(lab, side, devices[side], program) for side in sides}
    losing = False
    lacking = connections.available(lab) if any(isinstance(case, connections.Connection) for case in cases) else None
    if lacking:
        report.leave_out(lacking)
        cases = [case for case in cases if not isinstance(case, connections.Connection)]
    for case in cases:
        if case.lossy and not losing:
            lab.run(GuestProgram, ["bash", os.path.join(lab_module.HERE, "guest-loss.sh"), "1%"])
            losing = True
        began, fault, remarks = time.monotonic(), None, ()
        try:
            remarks = run_case(lab, case, indexes, args.kernel_both)
        except Failure as found:
            fault = found
        report.note(case, fault, time.monotonic() - began, remarks)


def capture(lab, path):
    return subprocess.Popen(["nsenter", f"--net=/run/netns/{lab.namespace}", "tshark", "-q", "-i", "rxetap0", "-f",
                             "udp port 4791", "-F", "pcap", "-w", path],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--only")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--clean", action="store_true", help="only the cases without loss")
    parser.add_argument("--lossy", action="store_true", help="only the cases with loss")
    parser.add_argument("--repeat", type=int, default=1, help="each case so often")
    parser.add_argument("--ordinary", action="store_true")
    parser.add_argument("--kernel-both", action="store_true")
    parser.add_argument("--table", help="writes the table there too")
    parser.add_argument("--capture")
    parser.add_argument("--log", help="VERBATIM_LOG of our side")
    return parser.parse_args()


def finish(report, args, seconds):
    print()
    print(report.table())
    if args.table:
        with open(args.table, "w", encoding="utf-8") as handle:
            handle.write(report.table() + "\n")
    for name in report.failed:
        print(f"FAILED: {name}")
    if report.left_out:
        print(f"LEFT OUT: connections: {report.left_out}")
    print(f"interop: {report.count - len(report.failed)} passed, {len(report.failed)} failed, {seconds:.0f} s")
    return 1 if report.failed or not report.count else 0


def main():
    args = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    build = os.path.abspath(args.build)
    program = os.path.join(build, "tests", "interop", "exchange")
    meet = os.path.join(os.path.dirname(program), "meet")
    for path in (program, meet, os.path.join(build, "lib", "libibverbs.so.1")):
        if not os.path.exists(path):
            print(f"interop: {path} does not exist; run make first", file=sys.stderr)
            return 1
    cases = [] if args.lossy else select([*matrix.clean(program), *connections.cases(meet)], args)
    cases += [] if args.clean else select(matrix.lossy(program), args)
    began, report = time.monotonic(), Report()
    try:
        env = {"VERBATIM_LOG": args.log} if args.log else {}
        with Lab(find_lab(), os.path.join(build, "lib"), args.ordinary, env) as lab:
            print(f"interop: the lab's machine was ready after {time.monotonic() - began:.0f} s", flush=True)
            tap = capture(lab, args.capture) if args.capture else None
            try:
                run_all(lab, cases, program, args, report)
            finally:
                if tap:
                    tap.terminate()
                    tap.wait()
    except NoLab as fault:
        skip(str(fault))
    return finish(report, args, time.monotonic() - began)


sys.exit(main())
