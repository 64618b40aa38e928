#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: portable/check.py MAJOR.MINOR FILE...
Fails if one of the programs and libraries (other files are passed over) needs a symbol of a glibc above that release, a library
other than the C library's and those of this project, or has relocations of type RELR, which only later releases know. Says of each
file what it needs."""

import os
import re
import subprocess
import sys

# libgcc_s.so.1 is in every package of glibc's own dependencies: pthread_cancel() loads it.
ALLOWED = {"libc.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2", "libibverbs.so.1",
           "librdmacm.so.1"}


def number(version):
    return tuple(map(int, version.split(".")))


def readelf(path, *options):
    return subprocess.run(["readelf", "--wide", *options, path], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", errors="replace").stdout


def is_elf(path):
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as handle:
        return handle.read(4) == b"\177ELF"


def faults(path, floor):
    versions = {found for found in re.findall(r"\bName: GLIBC_(\S+)", readelf(path, "--version-info").split("Version needs")[-1])}
    for version in sorted(versions):
        if not re.fullmatch(r"[\d.]+", version) or number(version) > number(floor):
            symbols = re.findall(r"(\S+@GLIBC_%s)\b" % re.escape(version), readelf(path, "--dyn-syms"))
            yield f"needs GLIBC_{version}: {' '.join(sorted(set(symbols))[:8])}"
    dynamic = readelf(path, "--dynamic")
    needed = re.findall(r"\(NEEDED\)\s+Shared library: \[(.*?)\]", dynamic)
    for library in sorted(set(needed) - ALLOWED):
        yield f"needs {library}"
    if "(RELR)" in dynamic:
        yield "has RELR relocations, which need glibc 2.36"
    highest = max((version for version in versions if re.fullmatch(r"[\d.]+", version)), key=number, default="none")
    print(f"{os.path.basename(path)}: needs glibc {highest}, {' '.join(needed)}")


def main():
    floor, *paths = sys.argv[1:]
    elf = [path for path in paths if is_elf(path)]
    found = [f"{path}: {fault}" for path in elf for fault in faults(path, floor)]
    for line in found:
        print(line, file=sys.stderr)
    if not elf:
        print("check: no program and no library among the files", file=sys.stderr)
    return 1 if found or not elf else 0


sys.exit(main())
