#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""tshark.py EVERY_PACKET: tshark finds in our packets, field by field, what we meant."""

import os
import shutil
import subprocess
import sys
import tempfile

PREFIX = "infiniband."
NEWER = ("28", "29")  # FLUSH and ATOMIC_WRITE (IBA A19): before 4.2 tshark finds their BTH and leaves the rest alone


def number(name, text):
    if text in ("True", "False"):
        return int(text == "True")
    if name in ("immdt", "ieth"):
        return text.replace(":", "").lower()
    return int(text, 0)


def main():
    if not shutil.which("tshark"):
        print("tshark is not installed", file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory() as folder:
        capture = os.path.join(folder, "all.pcap")
        said = subprocess.run([sys.argv[1], capture], check=True, capture_output=True, text=True).stdout
        wanted = [dict(pair.split("=") for pair in line.split()) for line in said.splitlines()]
        names = sorted({name for packet in wanted for name in packet})
        fields = [option for name in names for option in ("-e", PREFIX + name)]
        shown = subprocess.run(["tshark", "-n", "-r", capture, "-T", "fields", "-E", "separator=|", "-E", "occurrence=f", *fields],
                               check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    found = [line.split("|") for line in shown.rstrip("\n").split("\n")]
    faults = 0
    if len(found) != len(wanted) or len(wanted) != 39:
        print(f"{len(wanted)} packets written, {len(found)} seen, 39 opcodes")
        faults += 1
    for want, values in zip(wanted, found):
        if want["bth.opcode"] in NEWER and not any(text for name, text in zip(names, values) if not name.startswith("bth.")):
            want = {name: value for name, value in want.items() if name.startswith("bth.")}
        for name, text in zip(names, values):
            got = number(name, text) if text else None
            meant = number(name, want[name]) if name in want else None
            if got != meant:
                print(f"opcode {want['bth.opcode']}: {name} is {got}, not {meant}")
                faults += 1
    print(f"{len(wanted)} packets, {faults} faults")
    return 1 if faults else 0


sys.exit(main())
