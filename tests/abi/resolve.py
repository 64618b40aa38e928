#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Every program and library of the distribution that needs libibverbs resolves against ours.

usage: resolve.py LIBRARY
"""
import glob
import os
import re
import shutil
import subprocess
import sys

from common import fail, need, skip

PROGRAMS = """
    ibv_devices ibv_devinfo ibv_asyncwatch ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong
    ibv_srq_pingpong ibv_xsrq_pingpong
    ib_send_lat ib_send_bw ib_write_lat ib_write_bw ib_read_lat ib_read_bw ib_atomic_lat ib_atomic_bw
    rping ucmatose udaddy mckey rstream riostream rdma_client rdma_server rdma_xclient rdma_xserver
    qperf fio fi_info fi_pingpong ucx_info
""".split()

LIBRARIES = """
    /usr/lib/*/librdmacm.so.1 /usr/lib/*/libmlx4.so.1 /usr/lib/*/libmlx5.so.1 /usr/lib/*/libefa.so.1
    /usr/lib/*/libmana.so.1 /usr/lib/*/libibverbs/*.so /usr/lib/*/libfabric.so.1
    /usr/lib/*/libuct.so.0 /usr/lib/*/ucx/libuct_ib*.so.0
    /usr/lib/python3/dist-packages/pyverbs/*.so /usr/lib/python3/dist-packages/pyverbs/*/*.so
    /usr/lib/python3/dist-packages/pyverbs/*/*/*.so
""".split()

# ldd -r also names symbols that an interpreter or a plugin's host brings; ours are versioned.
LOST = re.compile(r"IBVERBS_|RDMACM_|libibverbs|librdmacm|not found")


def complaints(path, folder):
    """Lines of `ldd -r` about our library; None if the file does not use it at all."""
    env = dict(os.environ, LD_LIBRARY_PATH=folder)
    done = subprocess.run(["ldd", "-r", path], env=env, capture_output=True, text=True, check=False)
    lines = (done.stdout + done.stderr).splitlines()
    ours = [line for line in lines if "libibverbs.so.1 =>" in line]
    if not ours:
        return None
    if folder not in ours[0]:
        return [f"loads {ours[0].strip()}"]
    bad = [line for line in lines if re.search("undefined|not found|not defined", line)]
    return [line for line in bad if LOST.search(line)]


def main():
    need("ldd")
    folder = os.path.dirname(os.path.abspath(sys.argv[1]))
    paths = [shutil.which(name) for name in PROGRAMS]
    for pattern in LIBRARIES:
        paths += glob.glob(pattern)
    used, wrong = 0, []
    for path in filter(None, paths):
        bad = complaints(path, folder)
        if bad is None:
            continue
        used += 1
        wrong += [f"{path}: {line.strip()}" for line in bad]
    if wrong:
        fail("\n".join(wrong))
    if not used:
        skip("nothing that uses libibverbs is installed")
    print(f"{used} programs and libraries resolve")


main()
