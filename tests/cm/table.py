# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The programs that connect through the connection manager: a name, the server's command, the client's, and what both have to
say. {address}: the server's; {port}: of the connection manager; {file}, {copy}: a file of random bytes and its copy."""

import re
from typing import NamedTuple

from cm_pairs import cmtime_has_threads
from pairs import Failure


class Row(NamedTuple):
    name: str
    server: list
    client: list
    says: tuple = ("", "")  # regular expressions, of the server's and the client's output
    ends: bool = True       # the server ends by itself
    clients: int = 1        # one after the other; only of a server that does not end
    families: tuple = ("IPv4", "IPv6")
    known_by: str = "log"   # how the server is known to listen: the library's log, or a port of "tcp" or "udp"


def row(name, server, client, **rest):
    return Row(name, server.split(), client.split(), **rest)


def checked(entry, outputs):
    for text, wanted in zip(outputs, (entry.says[0],) + (entry.says[1],) * (len(outputs) - 1)):
        if not re.search(wanted, text, re.M):
            raise Failure(f"{entry.name}: no {wanted!r} in\n{text}")
        if re.search(r"data mismatch|data error|failed|corrupt", text, re.I):
            raise Failure(f"{entry.name}: it reports a fault\n{text}")


def rping():
    for options in ("", " -q", " -S 65000 -C 30"):
        count = "" if "-C" in options else " -C 10"
        yield row(f"rping{options}", f"rping -s -a {{address}} -p {{port}} -V -v{count}{options}",
                  f"rping -c -a {{address}} -p {{port}} -V -v{count}{options}", says=("", r"ping data: rdma-ping-9"))
    yield row("rping -P, ten clients", "rping -s -P -a {address} -p {port} -V", "rping -c -a {address} -p {port} -V -C 3", ends=False,
              clients=10)


def examples():
    done = (r"test complete\n(?s:.*)return status 0", r"test complete\n(?s:.*)return status 0")
    for options in ("", " -c 8", " -P ib", " -m", " -t 32", " -c 3 -C 50 -S 5000", " -a 18"):
        yield row(f"ucmatose{options}", f"ucmatose -b {{address}} -p {{port}}{options}", f"ucmatose -s {{address}} -p {{port}}{options}", says=done)
    for options in ("", " -c 4 -C 20 -S 500"):
        yield row(f"udaddy{options}", f"udaddy -b {{address}} {options}", f"udaddy -s {{address}} {options}", says=done)
    yield row("rdma_client", "rdma_server -p {port}", "rdma_client -s {address} -p {port}", says=("end 0", "end 0"), families=("IPv4",))
    for kind in "rx":
        yield row(f"rdma_xclient -c {kind}", f"rdma_xserver -p {{port}} -c {kind}", f"rdma_xclient -s {{address}} -p {{port}} -c {kind}",
                  says=("end 0", "end 0"), families=("IPv4",))
    threads = cmtime_has_threads()
    yield row("cmtime -c 1000", "cmtime -b {address} -p {port} -c 1000", "cmtime -s {address} -p {port} -c 1000",
              says=("", r"^full connect +\d" if threads else r"^connect\s+:"), ends=threads, families=("IPv4",) if threads else ("IPv4", "IPv6"))


def perftest():
    for verb in ("send", "write", "read", "atomic"):
        for kind in ("lat", "bw"):
            yield perftest_row(f"ib_{verb}_{kind}")
    for program, options in (("ib_send_bw", "-c UD"), ("ib_send_lat", "-c UD"), ("ib_send_bw", "-e"), ("ib_send_lat", "-e"),
                             ("ib_send_bw", "-b"), ("ib_send_bw", "-T 32")):
        yield perftest_row(program, options)
    yield perftest_row("ib_write_bw", "-q 32 -s 4096", 32)
    yield perftest_row("ib_read_bw", "-q 8 -s 4096", 8)


def perftest_row(program, options="", pairs=1):
    """Its own messages go by the connection manager too: it listens on one port twice. Its -R knows neither IPv6 nor XRC."""
    line = f"{program} -R -F -n 50 -p {{port}} {options}".rstrip()
    return row(f"{program} -R {options}".rstrip(), line, f"{line} {{address}}", says=("", rf"^ \d+ +{50 * pairs}\b"), families=("IPv4",))


def applications():
    """They need not be there: the driver leaves out what is not installed."""
    for name, tests in (("messages", "rc_lat rc_bw rc_bi_bw"),
                        ("one-sided", "rc_rdma_read_lat rc_rdma_read_bw rc_rdma_write_lat rc_rdma_write_bw rc_rdma_write_poll_lat"),
                        ("atomics", "rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add")):
        yield row(f"qperf -cm1, {name}", "qperf -lp {port}", f"qperf -lp {{port}} -cm1 -t 1 {{address}} {tests}",
                  says=("", rf"{tests.split()[-1]}:\n +\S+ += "), ends=False, families=("IPv4",), known_by="tcp")
    for kind, provider in (("msg", "verbs"), ("rdm", "verbs;ofi_rxm")):
        line = f"fi_pingpong -p {provider} -e {kind} -c"
        yield row(line, f"{line} -B {{port}}", f"{line} -P {{port}} {{address}}", says=(r"^1m +10 +=10",) * 2, families=("IPv4",), known_by="tcp")
    # Its server wants no retry after RNR: all the receives that are needed, 16, are posted at first.
    line = "fio --name=job --ioengine=rdma --port={port} --bs=64k --size=1m --iodepth=16 --verify=crc32c"
    for verb, other in (("write", ""), ("read", ""), ("send", " --verb=recv")):
        yield row(f"fio, {verb}", f"{line} --rw=read{other}", f"{line} --rw=write --verb={verb} --hostname={{address}}",
                  says=("err= 0", "err= 0(?s:.*)io=1024KiB"), families=("IPv4",))


SOCKETS_SAY = r"^\S+ +\S+ +\S+ +\S+"


def rsocket_row(program, options):
    return row(f"{program} {options}".rstrip(), f"{program} -b {{address}} -p {{port}} {options}", f"{program} -s {{address}} -p {{port}} {options}",
               says=("", SOCKETS_SAY))


def rsockets():
    """Few messages of each kind."""
    for options in ("-T v -S all -C 3 -I 2", "-T a -T v -S all -C 3 -I 2", "-T n -T v -S 4096 -C 100 -I 2", "-T b -T v -S 4096 -C 100 -I 2",
                    "-k 1 -S 64 -C 100 -I 2", "-B 65536 -T v -S 100000 -C 20 -I 2", "-i 0 -T v -S 64 -C 100 -I 2"):
        yield rsocket_row("rstream", options)
    yield row("rstream -T r", "rstream -b {address} -p {port} -S 64 -C 100 -I 2", "rstream -s {address} -p {port} -T r -S 64 -C 100 -I 2",
              says=("", SOCKETS_SAY))
    for options in ("-T v -S all -C 3 -I 1", "-S 64 -C 100 -I 1 -T a -T v", "-S 65536 -C 20 -I 1 -T n"):
        yield rsocket_row("riostream", options)
    for options in ("-S 64 -C 50", "-S 1000 -C 50 -T a", "-S 64 -C 50 -T n", "-S 200 -C 50 -T e"):
        yield rsocket_row("udpong", options)._replace(ends=False, known_by="udp")
    yield row("rcopy", "rcopy -p {port}", "rcopy {file} {address}:{copy} -p {port}", ends=False, families=("IPv4",))


def rsockets_long():
    """As the programs are by themselves: a hundred thousand messages."""
    for options in ("", "-T a -T v -S all -C 5 -I 10", "-S all -C 5 -I 1", "-T v"):
        yield rsocket_row("rstream", options)
    # It waits by looking at its memory and calls nothing meanwhile, so that each message between hosts takes the progress thread's time.
    for options in ("-S all -C 5 -I 1", "-S 64 -C 1000 -I 1 -T a -T v", "-S 65536 -C 100 -I 1 -T n"):
        yield rsocket_row("riostream", options)


def lossy_rows(brief=False):
    """Rows, and what becomes of the packets that both hosts send. A last packet that is lost costs the 2 s of the connection
    manager's queue pairs, so that few rows are brief. No program of datagrams of the table stands the loss of one."""
    loss = "drop=3%,dup=2%,reorder=3%,seed=3"
    if not cmtime_has_threads():  # it waits for each of its steps on both sides
        yield row("cmtime -c 200", "cmtime -b {address} -p {port} -c 200", "cmtime -s {address} -p {port} -c 200", says=("", r"^connect\s+:"),
                  ends=False), loss
    yield rsocket_row("rstream", "-T v -S 4096 -C 20 -I 2"), loss
    if brief:
        return
    yield row("ucmatose -c 20", "ucmatose -b {address} -p {port} -c 20", "ucmatose -s {address} -p {port} -c 20",
              says=("return status 0", "return status 0")), loss
    yield row("rping -C 20", "rping -s -a {address} -p {port} -C 20 -V", "rping -c -a {address} -p {port} -C 20 -V"), loss
    yield perftest_row("ib_write_bw", "-q 8 -s 65536", 8), "drop=0.1%,reorder=1%,seed=3"


def all_rows(brief=False):
    for group in (rping, examples, perftest, applications, rsockets, *([] if brief else [rsockets_long])):
        yield from group()
