#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The layout of the public headers: ours against the recorded ones and the installed one.

usage: layout.py CC WORKDIR
"""
import os
import platform
import re
import sys

from common import HERE, INCLUDE, SYSTEM_HEADER, fail, need, recorded, run, skip

# What grew since rdma-core 44. Nothing else may differ.
GREW = {
    "struct ib_uverbs_query_port_resp_ex.reserved 42 6",
    "struct ibv_port_attr size 52",
    "struct ibv_qp_ex size 352",
    "struct verbs_context size 648",
}


def layout(cc, workdir, *options):
    program = os.path.join(workdir, "layout")
    run(cc, "-w", "-o", program, *options, os.path.join(HERE, "layout.c"))
    try:
        return set(run(program).splitlines())
    finally:
        os.unlink(program)


def must_hold(what, lines, have):
    lost = [line for line in lines if line not in have]
    if lost:
        fail(f"{what}, but not ours:\n  " + "\n  ".join(lost))


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def check_complete():
    """Every structure and enumerator that our headers define stands in one of the lists."""
    listed = set()
    for name in ("layout_44.inc", "layout_new.inc", "layout_rdmacm_44.inc", "layout_rdmacm_new.inc"):
        with open(os.path.join(HERE, name), encoding="ascii") as file:
            listed.update(re.findall(r"(?:TYPE|VALUE)\((?:struct |union )?(\w+)\)", file.read()))
    missing = []
    for folder, _, files in os.walk(INCLUDE):
        for name in files:
            if not name.endswith(".h") or name == "verbatim.h":  # that one is ours alone
                continue
            with open(os.path.join(folder, name), encoding="ascii") as file:
                text = without_comments(file.read())
            names = re.findall(r"^(?:struct|union) (\w+) \{", text, flags=re.M)
            for body in re.findall(r"\benum(?: \w+)? \{(.*?)\};", text, flags=re.S):
                names += re.findall(r"^\s*(\w+)(?: = [^,]*)?,", body, flags=re.M)
            missing += [name for name in names if name not in listed]
    if missing:
        fail("defined in include/, but in no list of tests/abi: " + " ".join(sorted(missing)))


def main():
    if platform.machine() != "x86_64":
        skip("the recorded layouts are those of x86-64")
    cc, workdir = sys.argv[1:3]
    need(cc)
    ours = layout(cc, workdir, "-I" + INCLUDE, "-DWITH_NEW=1")
    must_hold("recorded from rdma-core 44", set(recorded("layout-44.txt")) - GREW, ours)
    must_hold("recorded from rdma-core 64 and 65", recorded("layout-64.txt"), ours)
    must_hold("recorded from rdma-core 44's librdmacm", recorded("layout-rdmacm-44.txt"), ours)
    must_hold("recorded from rdma-core 64's librdmacm", recorded("layout-rdmacm-64.txt"), ours)
    check_complete()
    if os.path.exists(SYSTEM_HEADER):
        installed = layout(cc, workdir)
        must_hold("printed by the installed header", installed - GREW, ours)
        print(f"{len(installed)} facts of {SYSTEM_HEADER} and its neighbours hold")
    print(f"{len(ours)} facts compared")


main()
