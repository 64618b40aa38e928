#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: no_watch.py LIBRARY NM
A release build of the library has nothing of the watch over locks (src/base/lock_order.h): no function of it is there, and none
is asked for."""

import subprocess
import sys

symbols = subprocess.run([sys.argv[2], sys.argv[1]], check=True, capture_output=True, text=True).stdout
found = [line for line in symbols.splitlines() if "vb_lock_check" in line or "vb_lock_assert" in line]
print("\n".join(found), end="\n" if found else "")
if " vb_lock_wait" not in symbols:
    sys.exit("no_watch: the library has no symbols to look at")
sys.exit(1 if found else 0)
