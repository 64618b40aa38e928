#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The exported symbols of our libraries against the recorded lists: none lost, none too many.

usage: symbols.py LIBRARY...
"""
import os
import re
import sys

from common import fail, need, recorded, run

# What each library exports, and what it does not have yet of that.
LISTS = {
    "libibverbs": (["symbols-44.txt", "symbols-64.txt", "symbols-65.txt", "symbols-private.txt", "symbols-shared.txt"], []),
    "librdmacm": (["symbols-rdmacm-44.txt", "symbols-rdmacm-64.txt", "symbols-rdmacm-65.txt"],
                  ["symbols-rdmacm-later.txt"]),
}

# Whoever looks a public name up without a version must get its newest form.
NOT_DEFAULT = re.compile(r"(IBVERBS|VERBATIM)_PRIVATE_")
# Only builds that watch the order of locks have these.
WATCHES = re.compile(r"vb_lock_check_")


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


def pairs(names):
    return {tuple(line.split()) for name in names for line in recorded(name)}


def check(library):
    lists, later = LISTS[os.path.basename(library).split(".")[0]]
    have = exported(library)
    want = pairs(lists)
    missing = pairs(later)
    if missing - want:
        fail(f"in {later}, but not in {lists}: {sorted(missing - want)}")
    want -= missing
    lost = [f"{name}@{version}" for name, version in sorted(want - set(have))]
    added = [f"{name}@{version}" for name, version in sorted(set(have) - want) if not WATCHES.match(name)]
    if lost or added:
        fail(f"{library}: lost: {lost}\nadded: {added}")

    newest = {}
    for name, version in want:
        if not NOT_DEFAULT.match(version):
            number = [int(part) for part in version.split("_")[1].split(".")]
            newest[name] = max(newest.get(name, (number, "")), (number, version))
    for name, (_, version) in newest.items():
        if not have[(name, version)]:
            fail(f"{name}@{version} is not the default version")
    print(f"{library}: {len(have)} symbols" + (f", {len(missing)} still missing" if missing else ""))


def main():
    need("objdump")
    for library in sys.argv[1:]:
        check(library)


main()
