#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Promise: the line with which `make check` tells a failure names the first thing that went wrong, whoever printed it, and is no
longer than it says. Prints one TAP line a case; exits 1 when one failed."""

import os
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))

from first_fault import fault_of_case, first_fault, within  # noqa: E402

CHECK = """seed 4711
../tests/cm/up_and_down.c:89: pid 7: [300 connections leave nothing]: 900 bytes before, 70000 after
../tests/cm/up_and_down.c:95: pid 7: [the end]: fds is 5 (0x5), want 4 (0x4)
"""
CMOCKA = """[  ERROR   ] --- 0x1 != 0x2
[   LINE   ] --- ../tests/unit/base/bits.c:33: error: Failure!
"""
COMPILER = """[1/3] Compiling C object src/a.o
FAILED: src/a.o
cc -o src/a.o ../src/a.c
../src/a.c: In function 'a':
../src/a.c:12:3: error: 'b' undeclared (first use in this function)
"""
SANITIZER = """some words
==77==ERROR: AddressSanitizer: heap-use-after-free on address 0x1
    #0 0x2 in a ../src/a.c:12
"""
RACE = """==================
WARNING: ThreadSanitizer: data race (pid=1)
  Write of size 8 at 0x7b by thread T1:
"""
PYTHON = """Traceback (most recent call last):
  File "run.py", line 3, in <module>
RuntimeError: v0 of host 0 did not come up
"""
TAP = """ok 1 - first
not ok 2 - second, IPv4
#   ib_send_bw: a client exited with 1
#   -- server.out --
not ok 3 - third
#   other
1..3
"""

FIRST = [
    (CHECK, "tests/cm/up_and_down.c:89: pid 7: [300 connections leave nothing]: 900 bytes before, 70000 after"),
    (CMOCKA, "tests/unit/base/bits.c:33: error: Failure!"),
    (COMPILER, "src/a.c:12:3: error: 'b' undeclared (first use in this function)"),
    (SANITIZER, "==77==ERROR: AddressSanitizer: heap-use-after-free on address 0x1"),
    (RACE, "WARNING: ThreadSanitizer: data race (pid=1)"),
    (PYTHON, "RuntimeError: v0 of host 0 did not come up"),
    ("begun at 12:30:01: all well\nnothing more to say\n", "nothing more to say"),
    ("", ""),
]
CASES = [
    ("the end", "ok 1 - a\nnot ok 2 - the end\n", CHECK, "tests/cm/up_and_down.c:95: pid 7: [the end]: fds is 5 (0x5), want 4 (0x4)"),
    ("second, IPv4", TAP, "", "ib_send_bw: a client exited with 1"),
    ("third", TAP, "", "other"),
    ("alone", "not ok 1 - alone\nok 2 - x\n", "last words\n", "last words"),
]


def main():
    rows = [(text[:20], first_fault(text), wanted) for text, wanted in FIRST]
    rows += [(case, fault_of_case(case, report, errors), wanted) for case, report, errors, wanted in CASES]
    rows += [("short", within("x" * 200, 200), "x" * 200), ("long", within("x" * 201, 200), "x" * 197 + "...")]
    failed = 0
    for number, (name, got, wanted) in enumerate(rows, start=1):
        good = got == wanted
        failed += not good
        name = " ".join(name.split()) or "nothing"
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
        if not good:
            print(f"# {got!r}, want {wanted!r}")
    print(f"1..{len(rows)}")
    return 1 if failed else 0


sys.exit(main())
