# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A router between the two hosts: a third network namespace that forwards between two networks. Packets cross it whatever hop limit
the program asks for where it does not mean one (the pingpongs ask for 1)."""

import ipaddress
import subprocess
import time

import cases
import hosts
from pairs import Failure

INTERFACE = "vbrt0"
DEVICE = f"vb_{INTERFACE}"
# By host: its address, the router's, the network.
NETWORKS = {"IPv4": (("203.0.113.2", "203.0.113.1", "203.0.113.0/25"), ("203.0.113.130", "203.0.113.129", "203.0.113.128/25")),
            "IPv6": (("2001:db8:a::2", "2001:db8:a::1", "2001:db8:a::/64"), ("2001:db8:b::2", "2001:db8:b::1", "2001:db8:b::/64"))}


class Router:
    def __init__(self, nets):
        self.nets = nets
        self.holder = None
        self.ends = []

    def ip(self, enter, *words):
        run = subprocess.run([*enter, hosts.tool("ip"), *words], capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise Failure(f"ip {' '.join(words)}: {run.stderr.strip()}")

    def __enter__(self):
        self.holder = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "cat"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.holder.stdin.write(b"\n")
        self.holder.stdin.flush()
        if not self.holder.stdout.readline():
            raise Failure("a third network namespace cannot be made here")
        enter = ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net"]
        self.ends = [end for host in (0, 1) for end in ((self.nets.enter[host], INTERFACE), (enter, f"to{host}"))]
        for host in (0, 1):
            self.ip(self.nets.enter[host], "link", "add", INTERFACE, "type", "veth", "peer", "name", f"to{host}", "netns",
                    str(self.holder.pid))
            self.ip(enter, "link", "set", f"to{host}", "up")
            self.ip(self.nets.enter[host], "link", "set", INTERFACE, "up")
        for setting in ("net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"):
            subprocess.run([*enter, "sh", "-c", f"echo 1 > /proc/sys/{setting}"], check=True)
        for family in NETWORKS.values():
            for host, (own, gateway, network) in enumerate(family):
                prefix, nodad = network.split("/")[1], ["nodad"] if ":" in own else []
                self.ip(self.nets.enter[host], "addr", "add", f"{own}/{prefix}", "dev", INTERFACE, *nodad)
                self.ip(enter, "addr", "add", f"{gateway}/{prefix}", "dev", f"to{host}", *nodad)
                self.ip(self.nets.enter[host], "route", "add", family[1 - host][2], "via", gateway)
        self.wait_ready()
        return self

    def wait_ready(self):
        """A host asks for its neighbours from an address of its own, a router from its link-local one. There is none from the moment the
        carrier is told until the kernel has looked for a second or two whether it is taken; what is forwarded before is dropped."""
        deadline = time.monotonic() + 20
        for enter, interface in self.ends:
            while not subprocess.run([*enter, hosts.tool("ip"), "-6", "-o", "addr", "show", "dev", interface, "scope", "link", "-tentative"],
                                     capture_output=True, check=True).stdout:
                if time.monotonic() > deadline:
                    raise Failure(f"{interface} has no link-local address after 20 s")
                time.sleep(0.05)

    def __exit__(self, *_):
        for host in (0, 1):
            subprocess.run([*self.nets.enter[host], hosts.tool("ip"), "link", "del", INTERFACE], capture_output=True, check=False)
        self.holder.stdin.close()
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()

    def index_of(self, host, address):
        wanted = ipaddress.ip_address(address if ":" in address else f"::ffff:{address}")
        out = subprocess.run([*self.nets.enter[host], "ibv_devinfo", "-v", "-d", DEVICE], capture_output=True, text=True,
                             check=True).stdout
        for line in out.splitlines():
            number, found, rest = line.partition("]:")
            if found and "GID[" in number and ipaddress.ip_address(rest.split(",")[0].strip()) == wanted:
                return number.split("[")[1].strip()
        raise Failure(f"{address} is in no GID of host {host}:\n{out}")


def across(tests):
    """ibv_rc_pingpong and ibv_ud_pingpong ask for a hop limit of 1; perftest for 255."""
    programs = ([f"ibv_{kind}_pingpong", "-d", DEVICE, "-s", "1024", "-n", "100"] for kind in ("rc", "uc", "ud"))

    def case(argv, family):
        with Router(tests.nets) as router, tests.runner() as runner:
            indexes = {router.index_of(host, NETWORKS[family][host][0]) for host in (0, 1)}
            if len(indexes) != 1:
                raise Failure(f"the hosts have their addresses at different indices: {indexes}")
            cases.pingpong_check(runner.pair([*argv, "-g", indexes.pop()], hosts.IPV4[0]))

    for argv in programs:
        for family in NETWORKS:
            tests.case(f"across a router, {family}: {argv[0]}, which asks for a hop limit of 1",
                       lambda argv=argv, family=family: case(argv, family))
