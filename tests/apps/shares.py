# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""One table of cases, worked off by several processes at once: most of what a case takes is perftest's waiting. Every process
walks the whole table and runs a case that no other has claimed yet."""

import os
import re
import subprocess
import sys
import tempfile
import time

from pairs import Failure

CLAIMS = "VB_TEST_CLAIMS"


class Skip(Exception):
    """The case cannot run here; the text says why."""


class Report:
    """Prints a TAP line a case, numbered as in the whole table."""

    def __init__(self, only):
        self.only = only
        self.claims = os.environ.get(CLAIMS)
        self.count = self.failed = 0

    def is_mine(self):
        if not self.claims:
            return True
        try:
            os.close(os.open(os.path.join(self.claims, str(self.count)), os.O_CREAT | os.O_EXCL, 0o600))
            return True
        except FileExistsError:
            return False

    def case(self, name, run):
        if self.only and not re.search(self.only, name):
            return
        self.count += 1
        if not self.is_mine():
            return
        began = time.monotonic()
        try:
            run()
            print(f"ok {self.count} - {name}")
        except Skip as reason:
            print(f"ok {self.count} - {name} # SKIP {reason}")
        except Failure as fault:
            self.failed += 1
            print(f"not ok {self.count} - {name}")
            print("".join(f"#   {line}\n" for line in str(fault).splitlines()), end="")
        print(f"# {time.monotonic() - began:.2f} s")
        sys.stdout.flush()

    def end(self):
        print(f"1..{self.count}")
        return 1 if self.failed else 0


def run_shared(count):
    """This program again, `count` times at once; prints what they report. A share that cannot start leaves its cases to the
    others."""
    with tempfile.TemporaryDirectory(prefix="verbatim-claims-") as claims:
        env = dict(os.environ, **{CLAIMS: claims})
        argv = ["setpriv", "--pdeathsig", "TERM", sys.executable, *sys.argv, "--shares", "1"]
        shares = [subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
                  for _ in range(count)]
        plans = set()
        try:
            for share in shares:
                for line in share.stdout:
                    if re.match(r"1\.\.\d+$", line):
                        plans.add(line)
                    else:
                        print(line, end="", flush=True)
        finally:
            for share in shares:
                if sys.exc_info()[0]:
                    share.terminate()
            codes = [share.wait() for share in shares]
    print("".join(sorted(plans)), end="")
    return max(codes, key=lambda code: (code not in (0, 77), code == 0, code))
