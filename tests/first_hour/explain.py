#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: explain.py --verbatim PROGRAM
`verbatim explain`: every code, status, event and errno that it lists is explained under each of its names, with a cause and a
cure; what is unknown ends with status 1 and the nearest names. Prints one TAP line a case."""

import argparse
import os
import re
import subprocess
import sys

ENTRY = re.compile(r"  usual cause: .{15,}\n  what to do: .{10,}\n")
UNKNOWN = {"IBV_WC_REM_ACCES_ERR": "IBV_WC_REM_ACCESS_ERR", "RKEY_RANG": "RKEY_RANGE", "EINVALL": "EINVAL", "rnr_retry_exc_er": "RNR_RETRY_EXC_ERR",
           "QP_FATL": "QP_FATAL", "completely-different": None, "0x9999": None, "0x40": None, "": None, "-1": None}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--verbatim", required=True)
    args = parser.parse_args()
    env = {key: value for key, value in os.environ.items() if not key.startswith(("VERBATIM_", "LD_"))}
    env["VERBATIM_RUNTIME_DIR"] = "/proc/none"  # no journals, and no place made for them
    count, failed = 0, 0

    def explain(*words):
        run = subprocess.run([args.verbatim, "explain", *words], env=env, capture_output=True, text=True, timeout=60, check=False)
        return run.returncode, run.stdout, run.stderr

    def case(name, good, text):
        nonlocal count, failed
        count += 1
        failed += not good
        print(f"{'ok' if good else 'not ok'} {count} - {name}")
        if not good:
            print("".join(f"# {line}\n" for line in text.splitlines()), end="")

    code, listed, _ = explain("--all")
    reasons = re.findall(r"^  (0x[0-9a-f]+) (\w+) ", listed, re.M)
    terms = re.findall(r"^  +(\d+) (IBV_\w+|E[A-Z]+) ", listed, re.M)
    case("the list has all reasons, statuses, events and errnos", code == 0 and len(reasons) > 110 and len(terms) > 55, listed)

    bad = ""
    for number, name in reasons:
        for word in (number, name, name.lower(), f"VB_REASON_{name}"):
            code, out, err = explain(word)
            if code or f"{number} {name}: " not in out or not ENTRY.search(out):
                bad += f"{word}: status {code}\n{out}{err}"
    case("each reason by its code and its names", not bad, bad)

    bad = ""
    for value, name in terms:
        short = re.sub(r"^IBV_(WC|EVENT)_", "", name)
        for word in (name, short, name.lower()):
            code, out, err = explain(word)
            if code or not re.search(rf"{name} \(.* {value}\): ", out) or not ENTRY.search(out):
                bad += f"{word}: status {code}\n{out}{err}"
    case("each status, event and errno by its names", not bad, bad)

    code, out, err = explain("10")
    case("a status by its number", code == 0 and "IBV_WC_REM_ACCESS_ERR" in out, out + err)
    code, out, err = explain("1027")
    case("a code in decimal", code == 0 and "0x403 RKEY_RANGE" in out, out + err)
    for word, near in UNKNOWN.items():
        code, out, err = explain("--", word)
        case(f"unknown: '{word}'", code == 1 and not out and (not near or near in err), f"status {code}\n{out}{err}")
    code, out, err = explain("one", "two")
    case("two subjects", code not in (0, 1) and not out, f"status {code}\n{out}{err}")
    print(f"1..{count}")
    return 1 if failed else 0


sys.exit(main())
