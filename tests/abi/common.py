# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What the scripts of this folder share: skipping, failing, recorded lists, running a command."""
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.join(HERE, "..", "..", "include")
SYSTEM_HEADER = "/usr/include/infiniband/verbs.h"


def skip(reason):
    """Meson's convention: status 77, the reason on the last line of standard error."""
    print(reason, file=sys.stderr)
    sys.exit(77)


def fail(message):
    print(message, file=sys.stderr)
    sys.exit(1)


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            skip(f"{program} is not installed")


def recorded(name):
    """The lines of a recorded list, without comments."""
    with open(os.path.join(HERE, name), encoding="ascii") as file:
        return [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]


def run(*command, **options):
    """Standard output of a command that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        fail(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def system_library(name="libibverbs.so.1"):
    """The library of this name that the distribution installed, or None."""
    for line in run("/sbin/ldconfig", "-p").splitlines():
        if line.strip().startswith(name + " ") and "x86-64" in line:
            path = line.split("=>")[1].strip()
            if name in os.path.basename(os.path.realpath(path)):
                return path
    return None
