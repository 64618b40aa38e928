#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""abidiff between the distribution's library and ours: nothing removed, nothing changed.

usage: abidiff.py LIBRARY [LATER]     LATER lists symbols that ours does not have yet
"""
import os
import subprocess
import sys
import tempfile

from common import INCLUDE, fail, need, recorded, skip, system_library


def suppressions(names):
    """Lets these symbols be missing and nothing else."""
    if not names:
        return ""
    return f"[suppress_function]\nchange_kind = deleted-function\nsymbol_name_regexp = ^({'|'.join(names)})$\n"


def main():
    need("abidiff")
    name = ".".join(os.path.basename(sys.argv[1]).split(".")[:3])
    theirs = system_library(name)
    if not theirs:
        skip(f"no {name} is installed to compare with")
    later = [line.split()[0] for line in recorded(sys.argv[2])] if len(sys.argv) > 2 else []
    with tempfile.NamedTemporaryFile("w", suffix=".ini") as file:
        file.write(suppressions(later))
        file.flush()
        headers = "/usr/include/" + ("rdma" if "rdmacm" in name else "infiniband")
        done = subprocess.run(
            ["abidiff", "--no-added-syms", "--drop-private-types", "--headers-dir1", headers,
             "--headers-dir2", INCLUDE, "--suppressions", file.name, theirs, sys.argv[1]],
            capture_output=True, text=True, check=False)
    print(done.stdout)
    if done.returncode:
        fail(f"abidiff says {done.returncode} (4: changed, 8: incompatible)\n{done.stderr}")


main()
