#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: ucx.py --lib DIR --verbatim PROGRAM [--shares N] [--only REGEX] [--debug]
Promise: UCX, unmodified, does messages, one-sided transfers and atomics over this library, reliable and by datagrams, on one host and
between two. It asks for one thing beside the library: that /dev/infiniband has a character device of the verbs device's
name; in a mount namespace of this program's own there is one. Prints one TAP line a case; exits 1 when one failed, 77 (reason
on the last line of standard error) when nothing could be run."""

import argparse
import os
import re
import shutil
import stat
import subprocess
import sys

SKIP = 77
HERE = os.path.dirname(os.path.abspath(__file__))
MARK = "VB_UCX_NAMESPACE"
SCRATCH = "/mnt"  # an empty folder of every system, to hang file systems into
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "udp")]

import hosts  # noqa: E402
import shares  # noqa: E402
from pairs import Failure, Runner  # noqa: E402

RELIABLE, DATAGRAMS = "rc_verbs,ud_verbs,self", "ud_verbs,self"  # UCX connects the first by the second
ONE_HOST = [
    (RELIABLE, "tag_lat", 8, 500), (RELIABLE, "ucp_put_bw", 1 << 20, 100), (RELIABLE, "ucp_get", 65536, 100),
    (RELIABLE, "ucp_fadd", 8, 500), (DATAGRAMS, "tag_lat", 8, 500), (DATAGRAMS, "tag_bw", 1 << 20, 20),
    # It polls until there is nothing, arms, and waits: what enters in between must wake it.
    (RELIABLE, "tag_lat", 8, 2000, "-E", "sleep"), (RELIABLE, "tag_bw", 65536, 200, "-E", "sleep"),
    (DATAGRAMS, "tag_lat", 8, 2000, "-E", "sleep"),
]
TWO_HOSTS = [(RELIABLE, "tag_bw", 65536, 100), (RELIABLE, "ucp_put_bw", 1 << 20, 20), (DATAGRAMS, "tag_lat", 8, 200)]


def skip(reason):
    print(reason, file=sys.stderr)
    sys.exit(SKIP)


def enter():
    """Starts this program again in namespaces of its own."""
    if os.environ.get(MARK) == "1":
        return
    flags = ["--net", "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    if subprocess.run(["unshare", *flags, "true"], capture_output=True, check=False).returncode != 0:
        skip("network and mount namespaces may not be created here (unshare is refused)")
    os.environ[MARK] = os.environ[hosts.MARK] = "1"
    os.execvp("unshare", ["unshare", *flags, "setpriv", "--pdeathsig", "TERM", sys.executable, *sys.argv])


def mount(*words):
    run = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        skip(f"mount {' '.join(words)}: {run.stderr.strip()}")


def device_files(names):
    """/dev as it is, and the files of the devices in it; /dev/null stands for each, since nobody opens them."""
    mount("-t", "tmpfs", "none", SCRATCH)
    for name in sorted(os.listdir("/dev")):
        old, new = os.path.join("/dev", name), os.path.join(SCRATCH, name)
        mode = os.lstat(old).st_mode
        if stat.S_ISLNK(mode):
            os.symlink(os.readlink(old), new)
        elif stat.S_ISDIR(mode) and name != "infiniband":
            os.mkdir(new)
            mount("--rbind", old, new)
        elif name in ("null", "zero", "full", "random", "urandom", "tty"):
            open(new, "w", encoding="ascii").close()
            mount("--bind", old, new)
    os.mkdir(os.path.join(SCRATCH, "infiniband"))
    for name in names:
        new = os.path.join(SCRATCH, "infiniband", f"uverbs_{name}")
        open(new, "w", encoding="ascii").close()
        mount("--bind", "/dev/null", new)
    mount("--rbind", SCRATCH, "/dev")


def check(iterations):
    """UCX tells what goes wrong by lines of their own (an address that comes late is a mere warning), and reports the last iteration."""
    def check_outputs(outputs):
        for text in outputs:
            if re.search(r"\b(ERROR|FATAL)\b|Assertion", text):
                raise Failure(f"UCX complains:\n{text}")
        if not re.search(rf"^Final:\s+{iterations}\b", outputs[1], re.M):
            raise Failure(f"no result:\n{outputs[1]}")
    return check_outputs


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--lib", required=True)
    parser.add_argument("--verbatim", required=True)
    parser.add_argument("--shares", type=int, default=1, help="so many cases at once, each share in namespaces of its own")
    parser.add_argument("--only")
    parser.add_argument("--debug", action="store_true")
    args = parser.parse_args()
    if not shutil.which("ucx_perftest"):
        skip("ucx_perftest is not installed (package ucx-utils)")
    if args.shares > 1:
        return shares.run_shared(args.shares)
    enter()
    nets = hosts.Hosts(skip)
    report = shares.Report(args.only)

    # Where it was built with MPI it takes itself for a rank of a job unless a terminal starts it.
    usage = subprocess.run(["ucx_perftest", "-h"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    no_job = ["-P", "0"] if "MPI mode" in usage.stdout + usage.stderr else []

    def transfer(device, pins, address, transports, what, size, iterations, *options):
        # The fence that UCX 1.18 and later prefer needs a key that only one maker's devices have (README).
        env = {"UCX_TLS": transports, "UCX_LOG_LEVEL": "error", "VERBATIM_LOG": "error", "UCX_FENCE_MODE": "weak",
               **({"UCX_NET_DEVICES": f"{device}:1"} if device else {"VERBATIM_DEVICES": ""})}
        with Runner(args.lib, timeout=60, env=env, debug=args.debug, pins=pins) as runner:
            argv = ["ucx_perftest", *no_job, "-t", what, "-s", str(size), "-n", str(iterations), "-w", "10", *options]
            check(iterations)(runner.pair(argv, address))

    def files_told(there):
        with Runner(args.lib) as runner:
            text = runner.single([os.path.abspath(args.verbatim), "devices"])
        if bool(re.search(r"file /dev/infiniband/uverbs_lo: there$", text, re.M)) != there or ("mknod" in text) == there:
            raise Failure(f"wrong about the device files:\n{text}")

    try:
        if not os.path.exists("/dev/infiniband"):
            report.case("verbatim devices: the files are not there", lambda: files_told(False))
        device_files(["lo", hosts.INTERFACE])
        report.case("verbatim devices: the files are there", lambda: files_told(True))
        for where, device, pins, address, table in (("one host", "vb_lo", ((), ()), "127.0.0.1", ONE_HOST),
                                                    ("two hosts", hosts.DEVICE, nets.launch, hosts.IPV4[0], TWO_HOSTS)):
            for case in table:
                report.case(f"{where}: {case[1]} of {case[2]} bytes, {' '.join([case[0].split(',')[0], *case[4:]])}",
                            lambda case=case, device=device, pins=pins, address=address: transfer(device, pins, address, *case))
        # vb_lo has the same address on both hosts: UCX would take them for one.
        report.case("two hosts, no device named: tag_bw of 1048576 bytes",
                    lambda: transfer(None, nets.launch, hosts.IPV4[0], RELIABLE, "tag_bw", 1 << 20, 20))
    finally:
        nets.close()
    return report.end()


sys.exit(main())
