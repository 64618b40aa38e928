# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The rows: what is measured of the library, what stands beside it, and the goals."""

from kit.row import Goal, Row
from sources.connections import Cmtime, Connections, Sockets
from sources.floor import Copy, Ring, Udp, Wake
from sources.iperf import Iperf
from sources.libfabric import Pingpong
from sources.openmpi import OpenMpi, OpenMpiTogether
from sources.own import Idle, Mapped, Threads
from sources.perftest import Between, Together, Within
from sources.rsockets import Rstream, RstreamTcp
from sources.ucx import OverMapped, OverVerbs, Shm, ShmTogether, Tcp

KIB, MIB = 1 << 10, 1 << 20
OLD_POST = "--use_old_post_send"
LIST = ("-l", "32")
JUMBO, ETHERNET = 9000, 1500
PACKET_4096, PACKET_1024 = ("-m", "4096"), ("-m", "1024")

ring, copy, wake, udp = Ring(), Copy(), Wake(), Udp()
within, between, together = Within(ring), Between(ring), Together(ring)
mapped, idle, threads = Mapped(), Idle(), Threads()
shm, tcp, over, over_mapped = Shm(), Tcp(), OverVerbs(), OverMapped()
mpi, libfabric, iperf = OpenMpi(), Pingpong(), Iperf()
mpi_together, shm_together = OpenMpiTogether(), ShmTogether()
connections, sockets, cmtime = Connections(), Sockets(), Cmtime()
rstream, rstream_tcp = Rstream(), RstreamTcp()

LINE = ring.figure("line")
# Those whose ratio to a cache line's trip is recorded (floor_ratios.json).
FLOORS = [ring.figure("slot_ring"), copy.figure("write_us", 8), copy.figure("read_us", 8),
          copy.figure("write_rate", 8), *(copy.figure(what, size) for what in ("write", "read", "halves", "memcpy")
                                          for size in (64 * KIB, MIB, 16 * MIB)),
          udp.figure("trip", 8), udp.figure("rate", 4096, JUMBO), udp.figure("rate", 1024, JUMBO),
          udp.figure("rate", 1024, ETHERNET), wake.figure("wake")]


def size_text(size):
    return f"{size >> 20} MiB" if size >= MIB else f"{size >> 10} KiB" if size >= KIB else f"{size} B"


def latency():
    am, tag, put, vader = (source.figure(*spec) for source, *spec in
                           ((shm, "am_lat", 8), (shm, "tag_lat", 8), (shm, "put_lat", 8), (mpi, "lat", 8)))
    yield Row("SEND latency, 8 B", within.figure("send_lat", 8),
              [Goal(0.7, am, vader, of="best of UCX am, Open MPI"), Goal(1.5, ring.figure("slot_ring"), of="slot ring")],
              [tag, libfabric.figure("shm", 64), LINE])
    for size in (1 << power for power in range(6, 13)):
        yield Row(f"SEND latency, {size_text(size)}", within.figure("send_lat", size),
                  [Goal(1.0, shm.figure("am_lat", size), mpi.figure("lat", size), of="best of UCX am, Open MPI")])
    yield Row("SEND latency, 8 B, both on one processor", together.figure("send_lat", 8),
              [Goal(1.0, mpi_together.figure("lat", 8), shm_together.figure("am_lat", 8), of="best of UCX am, Open MPI")])
    yield Row("WRITE latency, 8 B, ordinary memory", within.figure("write_lat", 8),
              [Goal(1.25, copy.figure("write_us", 8), of="process_vm_writev")], [put])
    yield Row("READ latency, 8 B, ordinary memory", within.figure("read_lat", 8),
              [Goal(1.25, copy.figure("read_us", 8), of="process_vm_readv")])
    yield Row("WRITE latency, 8 B, mapped memory", mapped.figure("lat", 8), [Goal(0.6, put, of="UCX put")], [LINE])
    yield Row("ATOMIC latency, 8 B", within.figure("atomic_lat", 8))
    yield Row("SEND latency with events, 8 B", within.figure("send_lat", 8, "-e"),
              [Goal(1.3, wake.figure("wake"), of="eventfd and poll")])


def over_verbs():
    """UCX over the library against UCX over its own shared memory."""
    for what, limit in (("tag_lat", 1.5), ("am_lat", 1.5)):
        yield Row(f"UCX over rc_verbs {what}, 8 B", over.figure(what, 8), [Goal(limit, shm.figure(what, 8), of="UCX shm")],
                  [tcp.figure(what, 8)] if what == "tag_lat" else [])
    put = shm.figure("put_lat", 8)
    yield Row("UCX over rc_verbs put_lat, 8 B, mapped memory", over_mapped.figure("put_lat", 8), [Goal(2.0, put, of="UCX shm")])
    yield Row("UCX over rc_verbs put_lat, 8 B, ordinary memory", over.figure("put_lat", 8), [], [put])
    # 1.5 x the time of a message: two thirds of the rate.
    yield Row("UCX over rc_verbs tag_bw, 8 B", over.figure("tag_rate", 8), [Goal(0.667, shm.figure("tag_rate", 8), of="UCX shm")])
    for size in (64 * KIB, MIB):
        yield Row(f"UCX over rc_verbs tag_bw, {size_text(size)}", over.figure("tag_bw", size),
                  [Goal(1.0, shm.figure("tag_bw", size), of="UCX shm")], [tcp.figure("tag_bw", size)])


def rates():
    am, put, call = shm.figure("am_rate", 8), shm.figure("put_rate", 8), copy.figure("write_rate", 8)
    yield Row("SEND messages, 8 B, one by one", within.figure("send_rate", 8), [Goal(1.2, am, of="UCX am_bw")],
              [mpi.figure("rate", 8), ring.figure("slot_rate")])
    yield Row("SEND messages, 8 B, lists of 32", within.figure("send_rate", 8, *LIST), [Goal(2.0, am, of="UCX am_bw")])
    yield Row("WRITE messages, 8 B, one by one", within.figure("write_rate", 8), [Goal(1.0, call, of="one call each")])
    yield Row("WRITE messages, 8 B, ibv_wr batch of 32", within.figure("write_rate", 8, *LIST), [Goal(8.0, call, of="one call each")])
    yield Row("WRITE messages, 8 B, lists of 32", within.figure("write_rate", 8, *LIST, OLD_POST),
              [Goal(8.0, call, of="one call each")])
    yield Row("WRITE messages, 8 B, mapped, one by one", mapped.figure("write_rate", 8), [Goal(0.5, put, of="UCX put")])
    yield Row("WRITE messages, 8 B, mapped, lists of 32", mapped.figure("write_list", 8), [Goal(1.0, put, of="UCX put")])


def bandwidth():
    for verb, call in (("write", "write"), ("read", "read")):
        for size in (64 * KIB, MIB, 16 * MIB):
            yield Row(f"{verb.upper()} bandwidth, {size_text(size)}, ordinary memory", within.figure(f"{verb}_bw", size),
                      [Goal(1.0, shm.figure("tag_bw", size), mpi.figure("bw", size), of="best of UCX tag, Open MPI"),
                       Goal(0.95, copy.figure(call, size), of="process_vm")], [copy.figure("memcpy", size)])
    for verb in ("write", "read"):
        for size in (64 * KIB, MIB):
            yield Row(f"{verb.upper()} bandwidth, {size_text(size)}, mapped memory", mapped.figure(verb, size),
                      [Goal(0.95, shm.figure("put_bw", size), of="UCX put")])
    for size in (64 * KIB, MIB):
        yield Row(f"SEND bandwidth, {size_text(size)}", within.figure("send_bw", size),
                  [Goal(1.5, shm.figure("tag_bw", size), shm.figure("am_bw", size), of="best of UCX tag, am")],
                  [copy.figure("halves", size)])


def between_hosts():
    yield Row("between hosts: SEND latency, 8 B", between.figure("send_lat", 8), [Goal(1.25, udp.figure("trip", 8), of="raw UDP")])
    yield Row("between hosts: WRITE latency, 8 B", between.figure("write_lat", 8), [Goal(1.25, udp.figure("trip", 8), of="raw UDP")])
    for title, mtu, path, limit in (("path MTU 4096", JUMBO, PACKET_4096, 0.65), ("path MTU 1024", JUMBO, PACKET_1024, 0.5),
                                    ("interface of 1500", ETHERNET, PACKET_1024, 0.5)):
        options = (*((str(ETHERNET),) if mtu == ETHERNET else ()), *path)
        write = between.figure("write_bw", MIB, *options)
        yield Row(f"between hosts: WRITE, 1 MiB, {title}", write,
                  [Goal(limit, udp.figure("rate", int(path[1]), mtu), of="raw UDP"), Goal(1.0, iperf.figure("TCP", mtu), of="iperf3 TCP")])
        for verb in ("read", "send"):
            yield Row(f"between hosts: {verb.upper()}, 1 MiB, {title}", between.figure(f"{verb}_bw", MIB, *options),
                      [Goal(0.9, write, of="our WRITE")])


def connecting():
    yield Row("connect to established, one by one", connections.figure("connect"),
              [Goal(3.0, sockets.figure("connect"), of="TCP connect and accept")])
    yield Row("from rdma_create_id to established", connections.figure("whole"), [], [sockets.figure("whole")])
    yield Row("1000 connections by cmtime", cmtime.figure("connected", 1000), [Goal(1000.0)])
    yield Row("1000 connections at once", connections.figure("together", 1000), [Goal(1000.0)], [sockets.figure("together", 1000)])
    for count in (1000, 5000):
        yield Row(f"memory of a connection without its queue pair, of {count}", connections.figure("memory", count), [Goal(16384.0)])


def streams():
    yield Row("rstream latency, 64 B", rstream.figure("lat", 64),
              [Goal(1.0, rstream_tcp.figure("lat", 64), of="TCP"),
               Goal(1.3, within.figure("send_mean", 64), of="our SEND, the average, too")], [within.figure("send_lat", 64)])
    yield Row("rstream bandwidth, 1 MiB", rstream.figure("bw", MIB),
              [Goal(1.0, rstream_tcp.figure("bw", MIB), iperf.figure("loopback"), of="best of TCP, iperf3")])


def others():
    yield Row("two threads, a domain each", threads.figure("threads", 2, "each"),
              [Goal(1.8, threads.figure("threads", 1, "each"), of="one thread")], [threads.figure("threads", 2, "none")])
    yield Row("wake-ups of two idle connected processes, 10 s", idle.figure("wakeups"), [Goal(0)])


def curves():
    """{chart: {line: {size: figure}}} over sizes from 2 B to 8 MiB, each four times the one before."""
    sizes = [1 << power for power in range(1, 24, 2)]

    def line(source, what, least=2):
        return {size: source.figure(what, size) for size in sizes if size >= least}

    def chart(kind, mapped_write):
        return {"SEND": line(within, f"send_{kind}"), "WRITE": line(within, f"write_{kind}"), "READ": line(within, f"read_{kind}"),
                "WRITE, mapped": line(mapped, mapped_write, 8), "UCX am": line(shm, f"am_{kind}"),
                "UCX put, mapped": line(shm, f"put_{kind}"), "Open MPI": line(mpi, kind)}

    return {"latency": chart("lat", "lat"), "bandwidth": chart("bw", "write")}


OWN_LINES = ("SEND", "WRITE", "READ", "WRITE, mapped")


def all_rows():
    return [row for group in (latency, over_verbs, rates, bandwidth, between_hosts, connecting, streams, others) for row in group()]
