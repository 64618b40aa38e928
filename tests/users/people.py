# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs of several users on two hosts: who they are, how they are started, and what is seen of their traffic."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import hosts
from pairs import Failure, listening
from pairs import tail as whole_tail

ALICE, BOB, CAROL, MALLORY = 64001, 64002, 64003, 64004  # the first three are in the group, and agree
TEAM = 64101
PATIENCE = 40  # seconds; a loaded machine may need most of them
PACKETS = 40   # so many have passed: the traffic flows
ETH_P_ALL, OUTGOING = 3, 4  # linux/if_ether.h, linux/if_packet.h
UDP, PORT = 17, 4791
LONG = 100000000
PATIENT = "ib_send_lat"
LONG_PATIENT = 2000000


def tail(path, lines=2000):
    """The end of a log, without the receives that were flushed when the queue pair failed."""
    return "".join(line for line in whole_tail(path, lines).splitlines(True) if "FLUSHED: " not in line)


def queue_pair(packet):
    """The number of the queue pair that an IP packet is for (IBA 9.2, BTH), or None."""
    header, protocol = (40, packet[6]) if packet[0] >> 4 == 6 else ((packet[0] & 15) * 4, packet[9])
    if protocol != UDP or len(packet) < header + 16 or int.from_bytes(packet[header + 2:header + 4], "big") != PORT:
        return None
    return int.from_bytes(packet[header + 13:header + 16], "big")


class Person:
    """A program that was started; ended with `end`."""

    def __init__(self, people, host, uid, argv, domain, **env):
        self.log = os.path.join(people.dir, f"log-{len(people.all)}")
        self.numbers = []
        group = "--clear-groups" if uid == MALLORY else f"--groups={TEAM}"
        words = dict(os.environ, LD_LIBRARY_PATH=people.lib, VERBATIM_LOG="debug", HOME=people.dir)
        words.pop("VERBATIM_DOMAIN", None)
        words.update(env)
        if domain:
            words["VERBATIM_DOMAIN"] = domain
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([*people.nets.enter[host], "setpriv", f"--reuid={uid}", f"--regid={uid}", group,
                                             "--inh-caps=-all", "--pdeathsig", "KILL", *argv],
                                            env=words, stdin=subprocess.PIPE, stdout=log, stderr=log)
        self.pid = self.process.pid
        people.all.append(self)

    def signal(self, number):
        os.kill(self.pid, number)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()

    def wait(self, seconds=PATIENCE):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"process {self.pid} does not end:\n{tail(self.log)}") from None

    def has(self, number):
        """Whether it is the number of a queue pair of this process, which says its numbers when it begins."""
        if not self.numbers:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                said = re.findall(r"claimed queue pair numbers 0x([0-9a-f]+) to 0x([0-9a-f]+)\n", log.read(1 << 16))
            self.numbers = [(int(first, 16), int(last, 16)) for first, last in said]
        return any(first <= number <= last for first, last in self.numbers)

    def says(self, text, seconds=PATIENCE):
        """Waits until the log has the text."""
        deadline = time.monotonic() + seconds
        while text not in tail(self.log, 2000):
            if time.monotonic() > deadline or (self.process.poll() is not None and text not in tail(self.log, 2000)):
                raise Failure(f"{text!r} is not said:\n{tail(self.log)}")
            time.sleep(0.01)


class People:
    """What the cases of one run share. As a context: one case, whose programs are ended with it."""

    def __init__(self, nets, lib):
        self.nets = nets
        self.dir = tempfile.mkdtemp(prefix="verbatim-users-")
        self.lib = os.path.join(self.dir, "lib")
        self.all = []
        self.port = 18600
        self.index = {"IPv4": nets.index_of(0, hosts.IPV4[0]), "IPv6": nets.index_of(0, hosts.IPV6[0])}
        os.chmod(self.dir, 0o755)
        os.mkdir(self.lib)
        for name in os.listdir(lib):
            if ".so" in name and not os.path.isdir(os.path.join(lib, name)):
                shutil.copy(os.path.join(lib, name), self.lib, follow_symlinks=False)
        self.domain = os.path.join(self.dir, "domain")
        os.mkdir(self.domain)
        os.chown(self.domain, 0, TEAM)
        os.chmod(self.domain, 0o750)

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for person in self.all:
            person.end()
        self.all = []

    def program(self, path):
        """A copy that every user may run."""
        return shutil.copy(path, self.dir)

    def start(self, host, uid, argv, domain=None, **env):
        return Person(self, host, uid, argv, domain, **env)

    def server(self, uid, program="ibv_rc_pingpong", family="IPv4", n=100, domain=True, host=0):
        """A server whose client is to be started: (process, argv of the client). PATIENT waits for long before it gives up, as it
        must while neighbours change and the machine is loaded."""
        self.port += 1
        index = str(self.index[family])
        argv = [program, "-d", hosts.DEVICE, "-p", str(self.port), "-n", str(min(n, LONG_PATIENT) if program == PATIENT else n)]
        if program == PATIENT:
            argv += ["-x", index, "-F", "-s", "1024", "-u", "19"]
        else:
            argv += ["-g", index]
        if program == "ibv_rc_pingpong":
            argv.append("-c")
        server = self.start(host, uid, argv, self.domain if domain is True else domain)
        deadline = time.monotonic() + PATIENCE
        while not listening(server.pid, self.port):
            if server.process.poll() is not None:
                break
            if time.monotonic() > deadline:
                raise Failure(f"the server does not listen:\n{tail(server.log)}")
            time.sleep(0.01)
        return server, [*argv, hosts.IPV4[0]]

    def pair(self, uid, **more):
        """A server of this user on host 0 and a client on host 1, both running."""
        server, argv = self.server(uid, **more)
        return server, self.start(1, ALICE, argv)

    def whole(self, pair):
        """Both ends have ended well, with the right data."""
        for end in pair:
            if end.wait() != 0:
                raise Failure("\n".join(tail(each.log) for each in pair))

    def flows(self, uid, **more):
        """A pair that goes on until it is ended, and whose traffic has begun."""
        pair = self.pair(uid, n=LONG, **more)
        self.flowing(pair)
        return pair

    def flowing(self, pair, packets=PACKETS):
        """The pair goes on, whoever else speaks: so many packets come to host 0 for the server."""
        with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL)) as wire:
            wire.bind((hosts.INTERFACE, ETH_P_ALL))
            wire.settimeout(0.1)
            deadline = time.monotonic() + PATIENCE
            while packets > 0:
                if time.monotonic() > deadline or any(end.process.poll() is not None for end in pair):
                    raise Failure("no more packets pass:\n" + "\n".join(tail(end.log) for end in pair))
                packets -= self.next_is_for(wire, pair[0])

    @staticmethod
    def next_is_for(wire, server):
        """Whether the next packet, if there is one soon, comes in and is for a queue pair of this process."""
        try:
            packet, where = wire.recvfrom(128)
        except TimeoutError:
            return False
        number = queue_pair(packet) if where[2] != OUTGOING and len(packet) >= 20 else None
        return number is not None and server.has(number)

    def refused(self, server, argv, *wanted):
        """RTR of the server fails, and its log says all of `wanted`."""
        client = self.start(1, ALICE, argv)
        code = server.wait()
        client.end()
        said = tail(server.log, 400)
        missing = [text for text in wanted if text not in said]
        if code == 0 or missing:
            raise Failure(f"exit status {code}; not said: {missing}\n{said}")


def python(text):
    return ["/usr/bin/python3", "-c", text]


def skip(reason):
    print(reason, file=sys.stderr)
    sys.exit(77)
