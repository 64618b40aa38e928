# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The table of what must run: a name, a program with its options, and what its output has to show."""

import os
import re
import subprocess

from pairs import Failure

MAX_ALL = 1 << 23  # the last size of perftest's -a


def pingpong_check(outputs):
    """Both sides report their rate, and neither found wrong data."""
    for text in outputs:
        if "invalid data" in text:
            raise Failure(f"data arrived damaged:\n{text}")
        if not re.search(r"\d+ iters in [\d.]+ seconds", text):
            raise Failure(f"no result line:\n{text}")


def xrc_check(outputs):
    for text in outputs:
        if not re.search(r"^success$", text, re.M):
            raise Failure(f"no success:\n{text}")


def xrc_pingpongs(device):
    """(name, program, check, clients). The clients of one host share a domain, and each gets messages by all of their queue pairs.
    Several that poll take turns on the cores of a small machine: few messages."""
    argv = ["ibv_xsrq_pingpong", "-d", device, "-g", "0"]
    yield ("ibv_xsrq_pingpong", [*argv, "-n", "200"], xrc_check, 1)
    yield ("ibv_xsrq_pingpong, 2 clients", [*argv, "-n", "10"], xrc_check, 2)
    yield ("ibv_xsrq_pingpong -e, 4 clients", [*argv, "-e", "-n", "100"], xrc_check, 4)


def perftest_rows(text):
    """The result table: {size: columns}."""
    rows = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 4 and re.fullmatch(r"\d+", fields[0]) and re.fullmatch(r"\d+", fields[1]):
            rows[int(fields[0])] = fields
    return rows


def perftest_check(sizes):
    def check(outputs):
        rows = perftest_rows(outputs[1])
        lacking = [size for size in sizes if size not in rows]
        if lacking:
            raise Failure(f"no result for size {lacking}:\n{outputs[1]}")
    return check


def options_of(tool):
    """What the program says it offers; on whichever library the system has, since nothing is opened."""
    env = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
    return subprocess.run([tool, "--help"], env=env, capture_output=True, text=True, check=False).stdout


def pingpongs(device):
    yield from ((f"ibv_{kind}_pingpong {' '.join(options)}".strip(),
                 [f"ibv_{kind}_pingpong", "-d", device, "-g", "0", *options, "-n", "200"], pingpong_check)
                for kind in ("rc", "uc", "ud", "srq")
                for options in ([], ["-e"], ["-c"]))
    # The newer calls, timestamps, on-demand regions (one for all memory, prefetched), device memory.
    for options in (["-N"], ["-t"], ["-t", "-e"], ["-o", "-c"], ["-O", "-c"], ["-o", "-P"], ["-j", "-c"], ["-j", "-N", "-t"]):
        yield (f"ibv_rc_pingpong {' '.join(options)}", ["ibv_rc_pingpong", "-d", device, "-g", "0", *options, "-n", "200"],
               pingpong_check)
    yield ("ibv_rc_pingpong -c -s 1048576",
           ["ibv_rc_pingpong", "-d", device, "-g", "0", "-c", "-s", "1048576", "-n", "50"], pingpong_check)


def variants(tool, sweep, brief):
    """(name, options, sizes that must appear) of one perftest program. `-n` is small: this is no benchmark. Each size that is reported
    costs 0.2 s of the processor on one side or both, which perftest spends measuring the clock, if it has the true one (quick_clock.c). So where `sweep` names the kind (lat,
    bw), the bandwidth programs run with every size (-a), which have messages in flight, and the latency programs with the smallest and the
    largest. brief: only plain and -e."""
    verb, kind = tool.split("_")[1:]
    size = 8 if verb == "atomic" else 4096
    # Both sides of ib_write_lat look at memory without a call in which they could yield: where there are more programs than
    # processors, each message takes a turn of the scheduler.
    few = ["-n", "20" if tool == "ib_write_lat" else "100"]
    help_text = options_of(tool)

    def plain(*options):
        return (list(options), ([] if verb == "atomic" else ["-s", str(size)]) + [*options, *few], [size])

    yield plain()
    if verb != "write":  # "Events feature not available on WRITE verb"
        yield plain("-e")
    if brief:
        return
    yield plain("--use_old_post_send")
    if verb != "atomic":  # "ODP does not support ATOMICS"
        yield plain("--odp")
    if verb != "atomic" and kind in sweep:
        if kind == "bw":
            yield (["-a"], ["-a", "-n", "20"], [2, 64, 4096, 65536, MAX_ALL])
        else:
            yield from ((["-s", str(size)], ["-s", str(size), "-n", "20"], [size]) for size in (2, MAX_ALL))
    if kind == "bw":
        yield plain("-q", "8")
        yield plain("--mr_per_qp", "-q", "4")
        yield plain("-b")
    if "--inline_size" in help_text:
        yield (["-I", "64"], ["-s", "64", "-I", "64", *few], [64])
    yield plain("-c", "XRC")
    if verb == "send":
        yield plain("--use-srq")
        yield plain("-c", "XRC", "--use-srq", "-q", "2") if kind == "bw" else plain("-c", "XRC", "-e")
    for service in {"send": ("UC", "UD"), "write": ("UC",)}.get(verb, ()):
        yield (["-c", service], ["-c", service, "-s", "1024", *few], [1024])
        if verb != "write":
            yield (["-c", service, "-e"], ["-c", service, "-e", "-s", "1024", *few], [1024])
        yield (["-c", service, "--use_old_post_send"],
               ["-c", service, "--use_old_post_send", "-s", "1024", *few], [1024])


def perftests(device, sweep, brief):
    for verb in ("send", "write", "read", "atomic"):
        for kind in ("lat", "bw"):
            tool = f"ib_{verb}_{kind}"
            for label, options, sizes in variants(tool, sweep, brief):
                yield (" ".join([tool, *label]), [tool, "-d", device, "-F", *options], perftest_check(sizes))


def devices_check(device):
    def check(text):
        if not re.search(rf"^\s+{re.escape(device)}\s+[0-9a-f]{{16}}$", text, re.M):
            raise Failure(f"{device} is not listed:\n{text}")
    return check


def devinfo_check(device):
    def check(text):
        for wanted in (rf"hca_id:\s+{re.escape(device)}", r"state:\s+PORT_ACTIVE", r"link_layer:\s+Ethernet",
                       r"GID\[\s*0\]:\s+::ffff:\d+\.\d+\.\d+\.\d+, RoCE v2"):
            if not re.search(wanted, text):
                raise Failure(f"ibv_devinfo -v lacks {wanted!r}:\n{text}")
    return check


def singles(device):
    yield ("ibv_devices", ["ibv_devices"], devices_check(device))
    yield ("ibv_devinfo -v", ["ibv_devinfo", "-v", "-d", device], devinfo_check(device))
