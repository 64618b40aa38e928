#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: gsi.py --lib DIR --agent PROGRAM [--only REGEX] [--log LEVEL] [--crowd N] [--shares N]
The carrier of the connection manager's datagrams, and the table of ports: processes of one host and of two, the wrong
process's socket, floods, processes that stand still or are killed. Prints one TAP line a case; exits 1 when one failed,
77 (reason on the last line of standard error) when nothing could be run."""

import argparse
import os
import queue
import shutil
import signal
import subprocess
import sys
import time

SKIP = 77
HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE] + [os.path.join(os.path.dirname(HERE), room) for room in ("udp", "apps")]

import hosts  # noqa: E402
import shares  # noqa: E402
from agent import Agent, KEPT, PATIENCE, TCP, gid  # noqa: E402
from pairs import Failure  # noqa: E402

ERRNO_USED, ERRNO_AVAIL, NOT_CONNECTED, INVALID, NO_ENTRY, NO_MEMORY, BUSY, TIMED_OUT = 98, 99, 107, 22, 2, 12, 16, 110
BURST = 3000  # messages at once
FLOOD, FLOOD_SECONDS = 10000, 1  # MADs a second, and for how long
BLOCK, ALIKE = 1024, 256  # numbers of a process; blocks with the same low 8 bits are alike
TRIES = 5  # of what has to be quick, on a machine that may be busy
HOLD = ("import socket,sys; s=socket.socket(getattr(socket,sys.argv[1]),socket.SOCK_DGRAM); s.bind(('',4791));"
        "print('held',flush=True); sys.stdin.read()")
GARBAGE = """
import os, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
head = bytes.fromhex("6440ffff0000000180000000" "80010000" "00000001")
until = time.monotonic() + float(sys.argv[2])
sent = 0
while time.monotonic() < until:
    for _ in range(100):
        s.sendto(head + os.urandom(260), (sys.argv[1], 4791))
    sent += 100
    time.sleep(0.005)
print(sent)
"""


def skip(reason):
    print(reason, file=sys.stderr)
    sys.exit(SKIP)


def want(condition, text):
    if not condition:
        raise Failure(text)


class Tests:
    def __init__(self, args, nets):
        self.args = args
        self.nets = nets
        self.report = shares.Report(args.only)
        self.agents = []

    def agent(self, host=0, opened=True, **env):
        env = dict(os.environ, LD_LIBRARY_PATH=self.args.lib, VERBATIM_LOG=self.args.log, **env)
        self.agents.append(Agent(self.args.agent, env, self.nets.enter[host]))
        return self.agents[-1].open() if opened else self.agents[-1]

    def case(self, name, run, *args):
        def within():
            try:
                run(*args)
            finally:
                agents, self.agents = self.agents, []
                for agent in agents:
                    agent.let_go()
                for agent in agents:
                    agent.end()
        self.report.case(name, within)

    def run(self):
        self.case("a flood by rings", self.flood_ring)  # what takes longest comes first
        self.case("a flood from another host", self.flood_wire)
        self.case("a flood of packets that are none", self.flood_garbage)
        for family, address in (("IPv4", hosts.IPV4), ("IPv6", hosts.IPV6)):
            self.case(f"rings: a request, its answers, {family}", self.exchange, address[0], address[0], 0, "ring")
            self.case(f"two hosts, {family}", self.exchange, *address, 1, "wire")
            self.case(f"VERBATIM_LINK=udp on one host, {family}", self.near_by_wire, address[0])
            self.case(f"every process has the port, each MAD finds its process, {family}", self.wrong_sockets, *address)
            self.case(f"who has the port has no connections, {family}", self.no_cm_holder, *address)
        self.case("nobody listens", self.nobody_listens)
        for host, where in ((0, "one host"), (1, "two hosts")):
            self.case(f"a request comes before its listener, {where}", self.before_listener, host)
        self.case("who has the port has no connections, and nobody has", self.nobody_at_all)
        self.case("who has the port joins the table, and its members stand still", self.joins_apart)
        self.case("the sender knows no id of the receiver: all hear it", self.for_all)
        self.case("ids of another process are forged", self.forged)
        self.case("no message of connections", self.not_cm)
        self.case("port 4791 in other hands", self.port_taken)
        self.case("port 4791 in other hands at first, and free later", self.port_freed)
        self.case("ports: bind, listen, automatic ones, end", self.ports)
        self.case("calls in the wrong state and with wrong arguments", self.refused)
        self.case("the table is full", self.table_full)
        self.case("a process is stopped while it changes the table", self.table_held)
        self.case("the only other process stands still: the table cannot be had", self.members_still)
        self.case("a listener is killed: its port is free, requests are answered", self.killed_listener)
        self.case("a listener is killed: another host's request is answered", self.killed_listener_far)
        self.case("a process ends: its number is not used again", self.numbers_rest)
        self.case("a receiver stands still", self.stands_still)
        self.case("more messages at once than a ring has room for", self.burst)
        self.case("a receiver stands still, and another's number is alike", self.alike_stands_still)
        self.case("fork: the child has no GSI until it opens its own", self.fork)
        self.case("deadlines and kicks", self.deadlines)
        self.case("last words before exit", self.last_words)
        self.case("another host's request is sent again: a process with the port stands still", self.others_still)
        self.case("two hosts, link-local addresses", self.link_local)
        self.case(f"{self.args.crowd} processes", self.crowd)

    def pair(self, host):
        """A listener on host 0 and a peer on `host`, which can reach each other."""
        server, client = self.agent(0), self.agent(host)
        if host:
            server.must("reach", "any")
            client.must("reach", "any")
        return server, client

    def talk(self, server, client, server_at, client_at, port, way):
        """A request and what follows, to both directions."""
        client.send(client_at, server_at, "REQ", client.id(), port=port)
        mad = server.get("REQ", client.id(), way, client)
        want(mad.source == gid(client_at) and mad.to == gid(server_at) and mad.ifindex, f"addresses: {mad}")
        want(mad.src_qpn == (1 if way == "wire" else client.number), f"source queue pair {mad.src_qpn:x}")
        server.send(server_at, client_at, "REP", server.id(), client.id())
        client.get("REP", server.id(), way, server)
        for kind, back in (("RTU", None), ("DREQ", "DREP"), ("MRA", "REJ")):
            client.send(client_at, server_at, kind, client.id(), server.id())
            server.get(kind, client.id(), way, client)
            if back:
                server.send(server_at, client_at, back, server.id(), client.id())
                client.get(back, server.id(), way, server)
        client.send(client_at, server_at, "SIDR_REQ", client.id(7), port=port)
        server.get("SIDR_REQ", client.id(7), way, client)
        server.send(server_at, client_at, "SIDR_REP", client.id(7))
        client.get("SIDR_REP", client.id(7), way, server)

    def exchange(self, server_at, client_at, host, way):
        server, client = self.pair(host)
        port = server.listen(7174, "0.0.0.0" if "." in server_at else "::")
        self.talk(server, client, server_at, client_at, port, way)
        server.none()
        client.none()

    def near_by_wire(self, address):
        server, client = self.agent(0, VERBATIM_LINK="udp"), self.agent(0, VERBATIM_LINK="udp")
        server.must("reach", "any")
        client.must("reach", "any")
        port = server.listen(7174, address)
        self.talk(server, client, address, address, port, "wire")

    def wrong_sockets(self, here, there):
        servers = [self.agent(0) for _ in range(5)]
        for server in servers:
            server.must("reach", "any")
        clients = [self.agent(1) for _ in range(3)]
        for client in clients:
            client.must("reach", "any")
        ports = [server.listen(7000 + i, here) for i, server in enumerate(servers)]
        for client in clients:
            for server, port in zip(servers, ports):
                self.talk(server, client, here, there, port, "wire")
        for agent in servers + clients:
            agent.none(0.01)

    def no_cm_holder(self, here, there):
        holder = self.agent(0, opened=False)
        holder.must("verbs", hosts.DEVICE)
        server, client = self.agent(0), self.agent(1)
        client.must("reach", "any")
        port = server.listen(7174, here)
        client.send(there, here, "REQ", client.id(), port=port)
        server.get("REQ", client.id(), "wire", client)
        client.send(there, here, "DREQ", client.id(), server.id())
        server.get("DREQ", client.id(), "wire", client)
        client.send(there, here, "DREQ", client.id(), 0x12340005)  # nobody's id
        server.get("DREQ", client.id(), "wire", client)
        want(not holder.reasons().get("MAD_FULL"), "the holder kept too much")

    def nobody_at_all(self):
        holder, client = self.agent(0, opened=False), self.agent(1)
        holder.must("verbs", hosts.DEVICE)
        client.must("reach", "any")
        client.send(hosts.IPV4[1], hosts.IPV4[0], "REQ", client.id(), port=7174)
        holder.reason("DROP_STRAY")
        server = self.agent(0)  # it comes later, and the client tries again
        port = server.listen(7174)
        for _ in range(40):
            client.send(hosts.IPV4[1], hosts.IPV4[0], "REQ", client.id(), port=port)
            if not server.mads.empty():
                break
            time.sleep(0.05)
        server.get("REQ", client.id(), "wire", client)

    def joins_apart(self):
        """Who passes packets on joins the table; its progress thread does not wait for members that stand still."""
        member, client = self.agent(0), self.agent(1)
        client.must("reach", "any")
        member.stop()
        want(any(self.goes_on_joining(client, member.id()) for _ in range(TRIES)), "the progress thread stands still")

    def goes_on_joining(self, client, nobody):
        """Whether a new process looks at a packet while it tries to join. At the end of that it tells that others stand still."""
        holder = self.agent(0, opened=False)
        holder.must("verbs", hosts.DEVICE)
        client.send(hosts.IPV4[1], hosts.IPV4[0], "REQ", client.id(), port=7174)
        time.sleep(0.1)  # it has begun
        client.send(hosts.IPV4[1], hosts.IPV4[0], "LAP", client.id(), nobody)
        goes_on = "PEER_STILL" not in holder.reason("CM_OTHER")
        holder.kill()
        return goes_on

    def nobody_listens(self):
        server, client = self.pair(1)
        client.send(hosts.IPV4[1], hosts.IPV4[0], "REQ", client.id(), port=7174)
        server.get("REQ", client.id(), "wire", client)
        server.send(hosts.IPV4[0], hosts.IPV4[0], "REQ", server.id(), port=7174)
        server.get("REQ", server.id())
        server.send(hosts.IPV4[0], hosts.IPV4[0], "DREQ", server.id(), 0x55550001)
        server.get("DREQ", server.id())

    def before_listener(self, host):
        """A request waits half a second for a listener where one is expected: the port is bound, or was listened on lately. It is
        sent once. On a busy machine the half second may be over first: it is to work in one of some tries."""
        server, client = self.pair(host)
        # Who hears of a request that nobody listens for: the first process that the carrier meets.
        nobody = client if host == 0 else server
        for was_left in (False, True):
            want(any(self.waits_for_listener(server, client, nobody, host, was_left, number) for number in range(20, 20 + TRIES)),
                 f"a request does not wait for a listener; the port was {'left' if was_left else 'bound'}")
        want(self.nobody_after(server, client, nobody, host, True) > 0.45, "a request has not waited for a listener")
        want(min(self.nobody_after(server, client, nobody, host, False) for _ in range(TRIES)) < 0.4,
             "a request waits although no listener is expected")

    def waits_for_listener(self, server, client, nobody, host, was_left, number):
        ends = (hosts.IPV4[host], hosts.IPV4[0])
        _, port, handle = server.must("bind", f"{TCP:x}", 0, ends[1]).split()
        if was_left:
            server.must("listen", handle)
            server.must("unbind", handle)
        client.send(*ends, "REQ", client.id(number), port=int(port))
        time.sleep(0.15)
        early = not server.mads.empty() or not client.mads.empty()
        if was_left:
            handle = server.must("bind", f"{TCP:x}", port, ends[1]).split()[2]
        server.must("listen", handle)
        came = self.found(server, client.id(number), 2)
        for agent in (server, client):  # who has heard of it too early
            while not agent.mads.empty():
                agent.mads.get()
        server.must("unbind", handle)
        return came and not early

    def nobody_after(self, server, client, nobody, host, expected):
        """After how many seconds nobody listens."""
        ends = (hosts.IPV4[host], hosts.IPV4[0])
        port = int(server.must("bind", f"{TCP:x}", 0, ends[1]).split()[1]) if expected else 9
        began = time.monotonic()
        client.send(*ends, "REQ", client.id(50 + expected), port=port)
        nobody.get("REQ", client.id(50 + expected))
        return time.monotonic() - began

    def for_all(self):
        agents = [self.agent(0) for _ in range(4)]
        client = self.agent(1)
        for agent in (agents[0], client):
            agent.must("reach", "any")
        client.send(hosts.IPV4[1], hosts.IPV4[0], "REJ", client.id(), 0)
        for agent in agents:
            agent.get("REJ", client.id(), "wire", client)
        time.sleep(0.05)
        agents[0].send(hosts.IPV4[0], hosts.IPV4[0], "REJ", agents[0].id(), 0)
        for agent in agents:
            agent.get("REJ", agents[0].id(), "ring", agents[0])

    def forged(self):
        server, client, other = (self.agent(0) for _ in range(3))
        client.send(hosts.IPV4[0], hosts.IPV4[0], "DREQ", other.id(), server.id())
        server.reason("DROP_FORGED")
        server.none(0.05)

    def not_cm(self):
        server, client = self.pair(1)
        client.send(hosts.IPV4[1], hosts.IPV4[0], "LAP", client.id(), server.id())
        server.reason("CM_OTHER")
        server.none(0.05)

    def port_taken(self):
        holder = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", sys.executable, "-c", HOLD, "AF_INET"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            holder.stdout.readline()
            server, client = self.agent(0), self.agent(0)
            want(server.ask("reach", hosts.IPV4[1]) == f"error {ERRNO_USED}", "the port could be had")
            want(server.reasons().get("PORT_TAKEN"), "the reason does not name the port")
            port = server.listen(7174)
            self.talk(server, client, hosts.IPV4[0], hosts.IPV4[0], port, "ring")
            want(client.ask("send", hosts.IPV4[0], hosts.IPV4[1], "REQ", 5, 0, f"{TCP << 16 | port:x}") ==
                 f"error {ERRNO_USED}", "a datagram left")
        finally:
            holder.stdin.close()
            holder.kill()
            holder.wait()
        server.must("reach", hosts.IPV4[1])

    def port_freed(self):
        """A listener that came when the port was taken hears other hosts some time after it is free, without another call."""
        holder = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", sys.executable, "-c", HOLD, "AF_INET"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            holder.stdout.readline()
            server, client = self.agent(0), self.agent(1)
            want(server.ask("reach", "any") == f"error {ERRNO_USED}", "the port could be had")
            port = server.listen(7174)
            client.must("reach", "any")
        finally:
            holder.stdin.close()
            holder.kill()
            holder.wait()
        until = time.monotonic() + PATIENCE
        while not self.found(server, client.id(), 0.1):
            want(time.monotonic() < until, "a listener does not get the port that has become free")
            client.send(hosts.IPV4[1], hosts.IPV4[0], "REQ", client.id(), port=port)

    def ports(self):
        one, two = self.agent(0), self.agent(0)
        one.listen(7174, hosts.IPV4[0])
        want(two.ask("bind", "106", 7174, hosts.IPV4[0]) == f"error {ERRNO_USED}", "the same address and port twice")
        want(two.ask("bind", "106", 7174, "0.0.0.0") == f"error {ERRNO_AVAIL}", "the wildcard beside an address")
        two.must("bind", "111", 7174, hosts.IPV4[0])
        two.must("bind", "106", 7174, hosts.IPV6[0])
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as kept:
            low, high = (int(word) for word in kept.read().split())
        seen = {int(agent.must("bind", "106", 0, hosts.IPV4[0]).split()[1]) for agent in (one, two) for _ in range(50)}
        want(len(seen) == 100 and all(low <= port <= high for port in seen), f"automatic ports: {sorted(seen)}")
        _, port, handle = one.must("bind", "106", 7200, hosts.IPV4[0], "reuse").split()
        _, _, other = two.must("bind", "106", 7200, hosts.IPV4[0], "reuse").split()
        want(one.ask("listen", handle) == f"error {ERRNO_USED}", "both listen")
        two.must("unbind", other)
        one.must("listen", handle)
        want(two.ask("listen", handle) == "error 2", "another process's binding")
        one.quit()
        two.must("bind", "106", 7174, hosts.IPV4[0])
        two.must("bind", "106", port, hosts.IPV4[0])

    def refused(self):
        agent = self.agent(0, opened=False)
        here, there = hosts.IPV4[0], hosts.IPV4[1]
        for words in (("reach", there), ("bind", "106", 0, here), ("listen", 1), ("send", here, here, "DREQ", 1, 2)):
            want(agent.ask(*words) == f"error {NOT_CONNECTED}", f"{words[0]} without a GSI")
        agent.must("unbind", 1)
        agent.open()
        agent.must("reach", "any")
        for words, error in ((("send", there, here, "DREQ", 1, 2), ERRNO_AVAIL),
                             (("send", here, hosts.IPV6[1], "DREQ", 1, 2), ERRNO_AVAIL),
                             (("bind", "107", 7174, here), INVALID), (("listen", "500000001"), NO_ENTRY)):
            want(agent.ask(*words) == f"error {error}", f"{words}: not refused with {error}")
        first = agent.must("open")
        want(agent.must("open") == first, "opened twice, and another one")

    def table_full(self):
        one, two = self.agent(0), self.agent(0)
        _, ports, error = one.must("fill", 40000, hosts.IPV4[0], patience=240).split()
        want(int(ports) == 32768 and int(error) == NO_MEMORY, f"{ports} ports, then {error}")
        want(two.ask("bind", "106", 7174, hosts.IPV4[0]) == f"error {NO_MEMORY}", "another one")
        one.kill()
        port = two.listen(7174)
        self.talk(two, self.agent(0), hosts.IPV4[0], hosts.IPV4[0], port, "ring")

    def table_held(self):
        """A process that stands still with the lock refuses binding in a bounded time, and holds up no message."""
        server, client, holder = (self.agent(0) for _ in range(3))
        port = server.listen(7174)
        holder.tell("hold", "106", 7175, hosts.IPV4[0])
        holder.stopped()
        began = time.monotonic()
        answer = client.ask("bind", "106", 7176, hosts.IPV4[0])
        want(answer == f"error {BUSY}", answer)
        want(time.monotonic() - began < 10, f"refused after {time.monotonic() - began:.1f} s")
        self.talk(server, client, hosts.IPV4[0], hosts.IPV4[0], port, "ring")
        holder.go_on()
        want(holder.answer().startswith("bound 7175"), "what was begun is not finished")
        holder.tell("hold", "106", 7177, hosts.IPV4[0])
        holder.stopped()
        holder.kill()
        client.must("bind", "106", 7500, hosts.IPV4[0])

    def members_still(self):
        member, other = self.agent(0), self.agent(0, opened=False)
        member.stop()
        began = time.monotonic()
        answer = other.ask("open")
        want(answer == f"error {TIMED_OUT}" and time.monotonic() - began < 10, answer)
        member.go_on()
        other.open()

    def killed_listener(self):
        listener, other, third = (self.agent(0) for _ in range(3))
        port = listener.listen(7174)
        self.talk(listener, other, hosts.IPV4[0], hosts.IPV4[0], port, "ring")
        listener.kill()
        third.send(hosts.IPV4[0], hosts.IPV4[0], "REQ", third.id(), port=port)
        third.get("REQ", third.id(), sender=third)
        other.send(hosts.IPV4[0], hosts.IPV4[0], "DREQ", other.id(), listener.id())
        other.get("DREQ", other.id(), sender=other)
        other.listen(port)
        third.send(hosts.IPV4[0], hosts.IPV4[0], "REQ", third.id(), port=port)
        other.get("REQ", third.id(), sender=third)

    def killed_listener_far(self):
        listener, other, client = self.agent(0), self.agent(0), self.agent(1)
        for agent in (listener, other, client):
            agent.must("reach", "any")
        port = listener.listen(7174)
        self.talk(listener, client, hosts.IPV4[0], hosts.IPV4[1], port, "wire")
        listener.kill()
        client.send(hosts.IPV4[1], hosts.IPV4[0], "REQ", client.id(), port=port)
        other.get("REQ", client.id(), "wire", client)
        client.send(hosts.IPV4[1], hosts.IPV4[0], "DREQ", client.id(), listener.id())
        other.get("DREQ", client.id(), "wire", client)

    def numbers_rest(self):
        keeper = self.agent(0)
        seen = {keeper.number}
        for i in range(40):
            agent = self.agent(0)
            want(agent.number not in seen and agent.number % 1024 == 0, f"number {agent.number:x} again")
            seen.add(agent.number)
            agent.kill() if i % 2 else agent.quit()

    def stands_still(self):
        still, server, client = (self.agent(0) for _ in range(3))
        ports = [still.listen(7174), server.listen(7175)]
        self.talk(still, client, hosts.IPV4[0], hosts.IPV4[0], ports[0], "ring")
        still.stop()
        try:
            client.must("repeat", 20000, 0, hosts.IPV4[0], hosts.IPV4[0], "REQ", f"{client.id():x}", 0,
                        f"{TCP << 16 | ports[0]:x}")  # it does not wait
            self.talk(server, client, hosts.IPV4[0], hosts.IPV4[0], ports[1], "ring")
            client.reason("MAD_FULL", "DROP_STRAY")  # on a slow machine the first ones have waited long enough before the last is sent
            fresh = self.agent(0)  # it was never in contact with it
            self.talk(server, fresh, hosts.IPV4[0], hosts.IPV4[0], ports[1], "ring")
            fresh.send(hosts.IPV4[0], hosts.IPV4[0], "REQ", fresh.id(), port=ports[0])
            self.talk(server, fresh, hosts.IPV4[0], hosts.IPV4[0], ports[1], "ring")
        finally:
            still.go_on()
        words = ("send", hosts.IPV4[0], hosts.IPV4[0], "DREQ", f"{client.id(77):x}", f"{still.id():x}")
        until = time.monotonic() + PATIENCE
        while client.ask(*words) != "ok":  # what waited for it goes first
            want(time.monotonic() < until, "it goes on, and cannot be reached")
            time.sleep(0.01)
        want(self.found(still, client.id(77), PATIENCE), "it goes on, and nothing arrives")

    def burst(self):
        """As many messages as thousands of connections send at once: none is lost, and the last one stays the last."""
        for port in range(7174, 7180):
            server, client = self.agent(0), self.agent(0)
            self.talk(server, client, hosts.IPV4[0], hosts.IPV4[0], server.listen(port), "ring")
            here = (hosts.IPV4[0], hosts.IPV4[0])
            server.stop()
            client.must("repeat", BURST, 0, *here, "RTU", f"{client.id(9):x}", f"{server.id(9):x}")
            server.go_on()
            client.send(*here, "DREQ", client.id(77), server.id(77))
            before = 0
            try:
                while server.mads.get(timeout=PATIENCE).type != "DREQ":
                    before += 1
            except queue.Empty:
                continue
            server.none()  # nor does one come after it
            if not client.reasons().get("DROP_STRAY"):  # else the machine stood still for seconds
                break
        else:
            raise Failure(f"the receiver never answers in time: {client.reasons()}")
        want(before == BURST, f"{before} of {BURST} messages before the last one; {client.reasons()}")

    def alike(self):
        """Two processes whose blocks of numbers have the same low bits. Blocks are drawn by chance: some twenty are enough."""
        by_low_bits = {}
        for _ in range(ALIKE + 1):
            agent = self.agent(0)
            other = by_low_bits.setdefault(agent.number // BLOCK % ALIKE, agent)
            if other is not agent:
                return other, agent
        raise Failure("no two numbers are alike")

    def alike_stands_still(self):
        """What waits for one process takes no room from another one."""
        still, server = self.alike()
        client = self.agent(0)
        ports = [still.listen(7174), server.listen(7175)]
        still.stop()
        client.must("repeat", 20000, 0, hosts.IPV4[0], hosts.IPV4[0], "REQ", f"{client.id():x}", 0,
                    f"{TCP << 16 | ports[0]:x}")
        self.talk(server, client, hosts.IPV4[0], hosts.IPV4[0], ports[1], "ring")

    def flooded(self, server, client, flooder, addresses, way):
        """An exchange beside a flood that `flooder` sends for a second."""
        ports = [server.listen(7174), server.listen(7175)]
        nobody = server.base >> 1 ^ 0x40000000
        for kind, remote, port in (("REQ", 0, 9), ("DREQ", nobody, None), ("DREQ", server.id(99), None)):
            service = [] if port is None else [f"{TCP << 16 | port:x}"]
            flooder.tell("repeat", FLOOD * FLOOD_SECONDS, FLOOD, *addresses, kind, f"{flooder.id():x}", f"{remote:x}", *service)
            lost = 0
            for number in range(20):  # what is lost is sent again, as the connection manager does
                for attempt in range(20):
                    client.send(addresses[0], addresses[1], "REQ", client.id(number + 100), port=ports[0])
                    if self.found(server, client.id(number + 100)):
                        break
                    lost += 1
                else:
                    raise Failure(f"no request arrives beside the flood of {kind}")
            answer = flooder.answer(60)
            print(f"# {kind}: {lost} of {20 + lost} were sent again; {FLOOD * FLOOD_SECONDS} {answer}")
        for agent in (client, flooder):
            self.passed(server, agent, addresses)
        while not server.mads.empty():
            server.mads.get()
        self.talk(server, client, addresses[1], addresses[0], ports[1], way)

    def passed(self, server, sender, addresses):
        """All that the sender has sent before has arrived or is lost: a message that it sends now has come. A request could overtake
        what is kept for the server; a message to an id does not."""
        for number in range(900, 1000):
            sender.send(addresses[0], addresses[1], "DREQ", sender.id(number), server.id(99))
            if self.found(server, sender.id(number)):
                return
        raise Failure("no message arrives after the flood")

    def found(self, server, local, patience=0.5):
        until = time.monotonic() + patience
        while time.monotonic() < until:
            try:
                if server.mads.get(timeout=0.1).local == local:
                    return True
            except queue.Empty:
                continue
        return False

    def flood_ring(self):
        server, client, flooder = (self.agent(0) for _ in range(3))
        self.flooded(server, client, flooder, (hosts.IPV4[0], hosts.IPV4[0]), "ring")

    def flood_wire(self):
        server, client, flooder = self.agent(0), self.agent(1), self.agent(1)
        for agent in (server, client, flooder):
            agent.must("reach", "any")
        self.flooded(server, client, flooder, (hosts.IPV4[1], hosts.IPV4[0]), "wire")

    def flood_garbage(self):
        server, client = self.pair(1)
        port = server.listen(7174)
        flood = subprocess.Popen([*self.nets.enter[1], sys.executable, "-c", GARBAGE, hosts.IPV4[0], "2"],
                                 stdout=subprocess.PIPE)
        try:
            server.reason("DROP_ICRC")
            for number in range(10):
                for _ in range(20):
                    client.send(hosts.IPV4[1], hosts.IPV4[0], "REQ", client.id(number), port=port)
                    if self.found(server, client.id(number)):
                        break
                else:
                    raise Failure("no request arrives beside the flood")
            print(f"# {int(flood.communicate(timeout=20)[0])} packets, {server.reasons()}")
        finally:
            flood.kill()
            flood.wait()

    def fork(self):
        # In the child nothing refers to what was the parent's.
        parent, other = self.agent(0, ASAN_OPTIONS="detect_leaks=0"), self.agent(0)
        port = parent.listen(7174)
        self.talk(parent, other, hosts.IPV4[0], hosts.IPV4[0], port, "ring")
        parent.tell("fork")
        want(parent.answer().startswith("forked"), "no child")
        answer = parent.ask("bind", "106", 7300, "0.0.0.0")
        want(answer == "error 107", f"the child has its parent's GSI: {answer}")
        number, base = (int(word, 16) for word in parent.must("open").split()[1:])  # the child's
        want(number != parent.number, "the child has its parent's number")
        want(parent.ask("bind", "106", 7174, "0.0.0.0") == f"error {ERRNO_AVAIL}", "the parent's port is free")
        other.send(hosts.IPV4[0], hosts.IPV4[0], "REQ", other.id(), port=port)
        parent.get("REQ", other.id(), sender=other)  # both print; the port is the parent's
        want(parent.count() == 0, "the child got its parent's MAD")
        other.send(hosts.IPV4[0], hosts.IPV4[0], "DREQ", other.id(), base + 9)
        parent.get("DREQ", other.id(), sender=other)
        parent.none()
        parent.must("echo")
        other.send(hosts.IPV4[0], hosts.IPV4[0], "DREQ", other.id(), base + 9)
        want(other.get("DREP", sender=other).local == base + 9, "not from the child")
        parent.tell("quit")
        want(parent.answer() == "child 0", "the child ended badly")
        parent.get("DREQ", other.id())  # the child printed it as well
        self.talk(parent, other, hosts.IPV4[0], hosts.IPV4[0], port, "ring")

    def deadlines(self):
        agent = self.agent(0)
        for milliseconds in (0, 5, 50):
            began = time.monotonic()
            agent.must("due", milliseconds)
            want(agent.answer() == "due", "no deadline")
            want(time.monotonic() - began >= milliseconds / 1000, "too early")
        # The thread is woken for a deadline that is earlier than the one it waits for, and for no other.
        agent.must("due", 3000)
        time.sleep(0.05)
        agent.tell("expect", 4000)
        want(agent.answer() == "served 0", "it was looked for a later deadline")
        agent.tell("expect", 1000)
        # On a busy machine the time can have come before the agent has asked a hundred times.
        due, served = sorted((agent.answer(), agent.answer()))
        want(due == "due", "no deadline")
        # Once; again only while that look is not over.
        want(1 <= int(served.split()[1]) <= 10, "it was looked for each of a hundred deadlines, or never")

    def last_words(self):
        """A process that ends waits a tenth of a second for contact, which can take longer on a busy machine."""
        for host in (0, 1):
            want(any(self.last_word_comes(host) for _ in range(TRIES)), "the last word of a process does not come")

    def last_word_comes(self, host):
        server, client = self.pair(host)
        client.send(hosts.IPV4[host], hosts.IPV4[0], "DREQ", client.id(), server.id())
        client.quit()
        return self.found(server, client.id(), KEPT)

    def others_still(self):
        """Processes that hold the port stand still, and get some of the requests. One that is sent again comes to
        another process."""
        server, client = self.pair(1)
        still = [self.agent(0, opened=False) for _ in range(2)]
        for agent in still:
            agent.must("verbs", hosts.DEVICE)
            agent.stop()
        port = server.listen(7174)
        for number in range(20):
            for _ in range(40):
                client.send(hosts.IPV4[1], hosts.IPV4[0], "REQ", client.id(number), port=port)
                if self.found(server, client.id(number), 0.1):
                    break
            else:
                raise Failure("a request arrives never")

    def link_local(self):
        addresses = [self.nets.link_local(host) for host in (0, 1)]
        server, client = self.pair(1)
        port = server.listen(7174, "::")
        self.talk(server, client, *addresses, port, "wire")

    def crowd(self):
        server = self.agent(0)
        port = server.listen(7174)
        server.must("echo")
        agents = [self.agent(0, opened=False) for _ in range(self.args.crowd)]
        for agent in agents:
            agent.tell("open")
        for agent in agents:
            answer = agent.answer(60)
            for _ in range(TRIES):  # on a busy machine who has the table's lock may wait long for a processor
                if answer in (f"error {BUSY}", f"error {TIMED_OUT}"):
                    answer = agent.ask("open")
            want(answer.startswith("opened"), answer)
            agent.number, agent.base = (int(word, 16) for word in answer.split()[1:])
        want(len({agent.number for agent in agents}) == len(agents), "a number twice")
        for attempt in range(5):  # on a busy machine contact takes longer than a datagram waits
            for agent in agents:
                agent.send(hosts.IPV4[0], hosts.IPV4[0], "REQ", agent.id(attempt), port=port)
            agents = [agent for agent in agents if not self.answered(agent, "DREP")]
        want(not agents, f"{len(agents)} processes have no answer")

    def answered(self, agent, kind):
        """Whether one such MAD comes within the time for which a carrier keeps one."""
        try:
            return agent.mads.get(timeout=KEPT).type == kind
        except queue.Empty:
            return False


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    parser = argparse.ArgumentParser()
    parser.add_argument("--lib", required=True, type=os.path.abspath)
    parser.add_argument("--agent", required=True, type=os.path.abspath)
    parser.add_argument("--only")
    parser.add_argument("--log", default="warn")
    parser.add_argument("--crowd", type=int, default=200, help="how many processes there are at once in one case")
    parser.add_argument("--shares", type=int, default=1, help="so many pairs of hosts at once, each working off its share")
    args = parser.parse_args()
    for program in ("setpriv", "unshare", "nsenter"):
        if not shutil.which(program):
            skip(f"{program} is not installed")
    if args.shares > 1:
        return shares.run_shared(args.shares)
    hosts.enter(skip)
    nets = hosts.Hosts(skip)
    try:
        tests = Tests(args, nets)
        tests.run()
    finally:
        nets.close()
    return tests.report.end()


if __name__ == "__main__":
    sys.exit(main())
