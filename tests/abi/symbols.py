#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The exported symbols of our library against the recorded lists: none lost, none too many.

usage: symbols.py LIBRARY
"""
import re
import sys

from common import fail, need, recorded, run

# Whoever looks a public name up without a version must get its newest form.
NOT_DEFAULT = re.compile(r"IBVERBS_PRIVATE_")


def exported(library):
    """{(name, version): is the default version}"""
    found = {}
    for line in run("objdump", "-T", library).splitlines():
        words = line.split()
        if "*UND*" in line or "*ABS*" in line or len(words) < 6 or not re.match("[0-9a-f]+$", words[0]):
            continue
        version, name = words[-2], words[-1]
        found[(name, version.strip("()"))] = not version.startswith("(")
    return found


def main():
    need("objdump")
    have = exported(sys.argv[1])
    want = set()
    for name in ("symbols-44.txt", "symbols-64.txt", "symbols-65.txt", "symbols-private.txt"):
        want.update(tuple(line.split()) for line in recorded(name))
    lost = [f"{name}@{version}" for name, version in sorted(want - set(have))]
    added = [f"{name}@{version}" for name, version in sorted(set(have) - want)]
    if lost or added:
        fail(f"lost: {lost}\nadded: {added}")

    newest = {}
    for name, version in want:
        if not NOT_DEFAULT.match(version):
            number = [int(part) for part in version.split("_")[1].split(".")]
            newest[name] = max(newest.get(name, number), number)
    for name, number in newest.items():
        version = "IBVERBS_" + ".".join(map(str, number))
        if not have[(name, version)]:
            fail(f"{name}@{version} is not the default version")
    print(f"{len(have)} symbols")


main()
