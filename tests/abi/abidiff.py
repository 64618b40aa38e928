#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""abidiff between the distribution's library and ours: nothing removed, nothing changed.

usage: abidiff.py LIBRARY
"""
import subprocess
import sys

from common import INCLUDE, fail, need, skip, system_library


def main():
    need("abidiff")
    theirs = system_library()
    if not theirs:
        skip("no libibverbs.so.1 is installed to compare with")
    done = subprocess.run(
        ["abidiff", "--no-added-syms", "--drop-private-types", "--headers-dir1",
         "/usr/include/infiniband", "--headers-dir2", INCLUDE, theirs, sys.argv[1]],
        capture_output=True, text=True, check=False)
    print(done.stdout)
    if done.returncode:
        fail(f"abidiff says {done.returncode} (4: changed, 8: incompatible)\n{done.stderr}")


main()
