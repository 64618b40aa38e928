#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: run.py --lib DIR [--device NAME] [--write] [TEST...]
Runs the generic modules of rdma-core's Python tests (as Debian ships them) on the library and compares
every test's outcome with expected.txt. Prints TAP; a skip or failure that expected.txt names with its cause is told as
skipped with that cause. --write prints the observed outcomes in the form of expected.txt instead."""

import argparse
import gzip
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

SHIPPED = "/usr/share/doc/rdma-core/tests"
PYTHON = "/usr/bin/python3"
HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = ("test_addr", "test_cq", "test_cq_events", "test_cqex", "test_device", "test_pd", "test_qp", "test_qpex",
           "test_atomic", "test_mr", "test_flow", "test_rss_traffic", "test_tag_matching", "test_parent_domain",
           "test_fork", "test_shared_pd", "test_odp", "test_relaxed_ordering", "test_cuda_dmabuf", "test_rdmacm")
TEST_SECONDS = 40  # a lost completion costs the suite 10 s each time it polls
HUGE_PAGES = 8  # what the tests that ask for some need at once
NETWORK = """ip link set lo up && ip link add v0 type veth peer name v1 && ip addr add 192.0.2.1/24 dev v0 &&
ip link set v0 up && ip link set v1 up && exec "$0" run -- "$@" """
WORST = ("pass", "skip", "fail", "error", "crash", "hang")


def skip(reason):
    print(reason, file=sys.stderr)
    sys.exit(77)


def unpack(target):
    folder = os.path.join(target, "tests")
    os.mkdir(folder)
    for name in os.listdir(SHIPPED):
        source = os.path.join(SHIPPED, name)
        if name.endswith(".gz"):
            with gzip.open(source) as packed, open(os.path.join(folder, name[:-3]), "wb") as plain:
                shutil.copyfileobj(packed, plain)
        elif name.endswith(".py"):
            shutil.copy(source, folder)


def own_network(env):
    """What runs a command in a network of its own with the device vb_v0, whose interface the tests of connections look up
    in sysfs; nothing where the system does not allow it."""
    unshare = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-r", "-n"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
        return None
    verbatim = os.path.join(os.path.dirname(env["LD_LIBRARY_PATH"]), "verbatim")
    return [*unshare, "sh", "-c", NETWORK, verbatim]


def one_run(env, unpacked, device, names, outcomes):
    """Runs the named tests in one process; returns the test that ended the process or hung, if one did."""
    prefix = own_network(env) if names[0].startswith("test_rdmacm") else None
    argv = ["setpriv", "--pdeathsig", "KILL", *(prefix or []), PYTHON, os.path.join(HERE, "observe.py"), unpacked,
            "vb_v0" if prefix else device, *names]
    with open(os.path.join(unpacked, "stderr"), "wb") as errors:
        process = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL,
                                   cwd=unpacked)
    current, settled, rest, hung = None, True, b"", False
    last = time.monotonic()
    while True:
        if not select.select([process.stdout], [], [], 1)[0]:
            if time.monotonic() - last > TEST_SECONDS:
                hung = True
                process.kill()
                break
            continue
        data = os.read(process.stdout.fileno(), 65536)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            last = time.monotonic()
            if event["outcome"] == "start":
                current, settled = event["test"], False
                continue
            settled = True
            old = outcomes.get(event["test"], ("pass", ""))
            if event["test"] not in outcomes or WORST.index(event["outcome"]) > WORST.index(old[0]):
                outcomes[event["test"]] = (event["outcome"], event["text"])
    code = process.wait()
    process.stdout.close()
    if current is None and code != 0:
        with open(os.path.join(unpacked, "stderr"), encoding="utf-8", errors="replace") as errors:
            raise SystemExit(f"{' '.join(names)}: nothing ran (exit {code})\n{errors.read()}")
    if hung or code != 0:
        kind = "hang" if hung else "crash"
        outcomes[current] = (kind, f"no outcome within {TEST_SECONDS} s" if hung else f"the process ended with {code}")
        return current
    return None


def observe(env, unpacked, device, names):
    """Outcomes of all tests. After a crash or hang the module's remaining tests run in a new process."""
    outcomes = {}
    listing = list_tests(env, unpacked, device, names)
    for name in names:
        pending = [test for test in listing if test == name or test.startswith(name + ".")]
        while pending:
            if one_run(env, unpacked, device, pending, outcomes) is None:
                break
            pending = [test for test in pending if test not in outcomes]
    return outcomes


def list_tests(env, unpacked, device, names):
    run = subprocess.run([PYTHON, os.path.join(HERE, "observe.py"), "--list", unpacked, device, *names], env=env,
                         capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise SystemExit(f"the suite does not load on the library:\n{run.stderr}")
    return run.stdout.split()


def huge_pages():
    """Can the tests that need some have them?"""
    with open("/proc/meminfo", encoding="ascii") as handle:
        return any(line.startswith("HugePages_Free:") and int(line.split()[1]) >= HUGE_PAGES for line in handle)


def read_expected():
    """{test: (outcomes, cause)}. "a|b": either of them, as releases of the suite differ; "absent": some lack the test. "huge": a pass where the system has huge pages, a skip where it has none; "root" likewise."""
    given = {"huge": "pass" if huge_pages() else "skip", "root": "pass" if os.geteuid() == 0 else "skip"}
    expected = {}
    with open(os.path.join(HERE, "expected.txt"), encoding="utf-8") as handle:
        for line in handle:
            if line.strip() and not line.startswith("#"):
                name, outcome, *cause = line.strip().split(None, 2)
                expected[name] = (given.get(outcome, outcome), cause[0] if cause else "")
    return expected


def compare(expected, observed, partial):
    failed = 0
    names = sorted(observed if partial else set(expected) | set(observed))
    for number, name in enumerate(names, 1):
        outcome, text = observed.get(name, ("absent", "the suite does not have this test"))
        wanted, cause = expected.get(name, ("unlisted", ""))
        if outcome in wanted.split("|"):
            if outcome == "absent":
                cause = text
            note = "" if outcome == "pass" else f" # SKIP {cause}" if outcome in ("skip", "absent") else f" # SKIP known {outcome}: {cause}"
            print(f"ok {number} - {name}{note}")
            continue
        failed += 1
        print(f"not ok {number} - {name}\n#   expected {wanted} {cause}\n#   observed {outcome}")
        print("".join(f"#     {line}\n" for line in text.strip().splitlines()[-12:]), end="")
    print(f"1..{len(names)}")
    return failed


def write(observed):
    for name in sorted(observed):
        outcome, text = observed[name]
        last = text.strip().splitlines()[-1] if text.strip() else ""
        print(f"{name} {outcome} {last}".rstrip())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lib", required=True)
    parser.add_argument("--device", default="vb_lo")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("tests", nargs="*")
    args = parser.parse_args()
    if not os.path.isdir(SHIPPED):
        skip(f"{SHIPPED} is not there (package rdma-core)")
    if subprocess.run([PYTHON, "-c", "import pyverbs"], capture_output=True, check=False).returncode != 0:
        skip("the Python binding is not installed (package python3-pyverbs)")
    env = dict(os.environ, PATH=f"{os.path.join(HERE, 'bin')}:{os.environ['PATH']}",
               LD_LIBRARY_PATH=os.path.abspath(args.lib), PYTHONDONTWRITEBYTECODE="1", VERBATIM_DEVICES="*")
    with tempfile.TemporaryDirectory(prefix="verbatim-pyverbs-") as unpacked:
        unpack(unpacked)
        observed = observe(env, unpacked, args.device, args.tests or MODULES)
    if args.write:
        write(observed)
        return 0
    return 1 if compare(read_expected(), observed, bool(args.tests)) else 0


sys.exit(main())
