#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: devices.py --lib DIR --verbatim PROGRAM
Promise: `verbatim devices` names the devices that programs do not see, each with the reason: the default, or VERBATIM_DEVICES. Runs
in a network namespace of its own. Prints one TAP line a case; exits 1 when one failed, 77 (reason on the last line of
standard error) when nothing could be run."""

import argparse
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True

SKIP = 77
MARK = "VB_DEVICES_NAMESPACE"
IP = shutil.which("ip") or "/usr/sbin/ip"
PAIR = (["link", "add", "v0", "type", "veth", "peer", "name", "v1"], ["link", "set", "lo", "up"],
        ["addr", "add", "198.51.100.1/24", "dev", "v0"], ["link", "set", "v1", "up"], ["link", "set", "v0", "up"])
BY_DEFAULT = "loopback, and another device has a running link; VERBATIM_DEVICES=* lists it"
# The setting (None: none), and what stands behind each device that is not listed.
CASES = (
    (None, {"vb_lo": BY_DEFAULT}),
    ("*", {}),
    ("!vb_v*", {"vb_v0": "VERBATIM_DEVICES=!vb_v* leaves it out"}),
    ("vb_v0", {"vb_lo": BY_DEFAULT}),
    ("vb_none", {"vb_v0": "VERBATIM_DEVICES=vb_none leaves it out", "vb_lo": BY_DEFAULT}),
)


def skip(reason):
    print(reason, file=sys.stderr)
    sys.exit(SKIP)


def enter():
    if os.environ.get(MARK) == "1":
        return
    flags = ["--net"] if os.geteuid() == 0 else ["--map-root-user", "--net"]
    if subprocess.run(["unshare", *flags, "true"], capture_output=True, check=False).returncode != 0:
        skip("a network namespace may not be created here (unshare --net is refused)")
    os.environ[MARK] = "1"
    os.execvp("unshare", ["unshare", *flags, sys.executable, *sys.argv])


def wait_running():
    """The kernel tells a fresh interface's carrier a moment after both ends are up."""
    for _ in range(1000):
        out = subprocess.run([IP, "-o", "link", "show", "dev", "v0"], capture_output=True, text=True, check=True).stdout
        if "state UP" in out:
            return
    skip("v0 does not get a carrier")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lib", required=True)
    parser.add_argument("--verbatim", required=True)
    args = parser.parse_args()
    enter()
    for words in PAIR:
        made = subprocess.run([IP, *words], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            skip(f"a veth pair cannot be made here: {made.stderr.strip()}")
    wait_running()
    failed = 0
    env = {key: value for key, value in os.environ.items() if key != "VERBATIM_DEVICES"}
    env["LD_LIBRARY_PATH"] = os.path.abspath(args.lib)
    for number, (patterns, hidden) in enumerate(CASES, 1):
        told = subprocess.run([args.verbatim, "devices"], capture_output=True, text=True, check=False,
                              env={**env, "VERBATIM_DEVICES": patterns} if patterns else env)
        found = dict(re.findall(r"^(\S+)\n    not listed: (.*)$", told.stdout, re.M))
        good = told.returncode == 0 and found == hidden
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - VERBATIM_DEVICES {patterns if patterns else 'not set'}")
        if not good:
            print(f"{hidden} expected, {found} told:\n{told.stdout}{told.stderr}", file=sys.stderr)
    print(f"1..{len(CASES)}")
    return 1 if failed else 0


sys.exit(main())
