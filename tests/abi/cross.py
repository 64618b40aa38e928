#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""One program, compiled against either header, runs with either library.

usage: cross.py CC WORKDIR LIBRARY
"""
import os
import subprocess
import sys

from common import HERE, INCLUDE, SYSTEM_HEADER, fail, need, run, skip, system_library


def build(cc, workdir, name, *options):
    program = os.path.join(workdir, "cross_" + name)
    run(cc, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-o", program,
        os.path.join(HERE, "cross.c"), *options)
    return program


def start(program, library, *arguments):
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(os.path.abspath(library)))
    done = subprocess.run([program, *arguments], env=env, capture_output=True, text=True,
                          check=False, timeout=60)
    if done.returncode:
        fail(f"{program} with {library}: status {done.returncode}\n{done.stdout}{done.stderr}")
    print(f"{os.path.basename(program)} with {library}: {done.stdout.strip()}")


def main():
    cc, workdir, ours = sys.argv[1:4]
    theirs = system_library()
    need(cc)
    programs = [build(cc, workdir, "ours", "-I" + INCLUDE, ours)]
    if os.path.exists(SYSTEM_HEADER) and theirs:
        programs.append(build(cc, workdir, "theirs", theirs))
    try:
        for program in programs:
            start(program, ours, "1")
            if theirs:
                start(program, theirs)
    finally:
        for program in programs:
            os.unlink(program)
    if len(programs) == 1:
        skip("ran with our header and library only: libibverbs-dev is not installed")


main()
