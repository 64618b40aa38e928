# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What connects through the connection manager, against the kernel's (ib_cm, rdma_ucm and Debian's librdmacm): rows of tests/cm,
one side here and one in the lab's machine."""

import itertools
import os
import re
import shutil
import time

import lab as lab_module
import table
from lab import GuestProgram, text_of
from matrix import FAMILIES, ROLES, TIMEOUT_S
from pairs import Failure, tail

ADDRESSES = {"IPv4": (lab_module.OUR_ADDRESS, lab_module.GUEST_ADDRESS), "IPv6": ("fd00:6f63::1", "fd00:6f63::2")}
FIXED_PORT = 7174  # of programs that are given none
MTU = 4096  # the largest that the link's MTU allows, which is what the connection manager takes
MULTICAST = "230.1.2.3"
DEVICE = "/dev/infiniband/rdma_cm"

# Of tests/cm's table: emulation is slow, and each row is here to see other messages, not to see them often.
ROWS = (r"rping( -q| -S 65000 -C 30)?", r"rping -P, ten clients", r"ucmatose( -c 8| -P ib| -m| -t 32| -c 3 -C 50 -S 5000)?", r"udaddy( .*)?",
        r"rdma_client", r"ib_(send|write|read|atomic)_(lat|bw) -R", r"ib_send_(bw|lat) -R (-c UD|-e|-b)", r"ib_write_bw -R -q 32",
        r"rstream( -T v| -T a -T v| -T n -T v| -k 1| -T f| -B 65536 -T v| -i 0 -T v)?", r"rstream -T r", r"riostream( -T v)?", r"udpong.*")


class Connection:
    """A case as run.py wants it. Its fields are those of matrix.Case."""

    lossy = False
    mtu = MTU

    def __init__(self, entry, family, role):
        self.program, self.entry, self.family, self.role = entry.name, entry, family, role

    def name(self):
        return f"{self.program}, {self.family}, MTU {self.mtu}, {self.role}"

    def sides(self, ours):
        """Classes of the server and of the client, and the server's address. ours: the class of verbatim's side."""
        server = GuestProgram if self.role == "client" else ours
        client = ours if self.role == "client" else GuestProgram
        return server, client, ADDRESSES[self.family][server is GuestProgram]

    def run(self, lab, ours):
        server, client, address = self.sides(ours)
        port = lab.next_port() if "{port}" in " ".join(self.entry.server) else FIXED_PORT
        argv = [[word.format(address=address, port=port) for word in words] for words in (self.entry.server, self.entry.client)]
        deadline = time.monotonic() + TIMEOUT_S
        programs, faults = [], []
        try:
            programs.append(server(lab, argv[0], cm_port=port))
            faults = lab.wait_listening(programs[0], deadline)
            for _ in range(self.entry.clients if not faults else 0):
                programs.append(client(lab, argv[1]))
                faults += lab.wait_all(programs[-1:] if not self.entry.ends else programs, deadline)
        finally:
            for program in programs:
                program.end()
        outputs = lab.outputs(programs, faults)
        table.checked(self.entry, outputs)


class Multicast(Connection):
    """mckey: both join, and the sender waits by itself until the other has."""

    def __init__(self, role):
        self.program, self.family, self.role = "mckey", "IPv4", role

    def run(self, lab, ours):
        receiver, sender, address = self.sides(ours)
        other = ADDRESSES[self.family][sender is GuestProgram]
        common = ["mckey", "-m", MULTICAST, "-C", "20", "-S", "200"]
        programs = []
        try:
            programs = [receiver(lab, [*common, "-b", address])]
            programs.append(sender(lab, [*common, "-b", other, "-s"]))
            faults = lab.wait_all(programs, time.monotonic() + TIMEOUT_S)
        finally:
            for program in programs:
                program.end()
        for text in lab.outputs(programs, faults):
            if "test complete" not in text or "return status 0" not in text:
                raise Failure(f"mckey: it did not complete\n{text}")


def available(lab):
    """None, or why the machine's kernel serves no connections."""
    if not shutil.which("ucmatose"):
        return "rdmacm-utils is not installed"
    if lab.run(GuestProgram, ["sh", "-c", f"test -e {DEVICE} && echo yes || echo no"]).strip() != "yes":
        return f"the lab's kernel has no {DEVICE}: its module rdma_ucm cannot be loaded"
    return None


def cases():
    for family, role in itertools.product(FAMILIES, ROLES):
        for entry in table.all_rows():
            if any(re.fullmatch(pattern, entry.name) for pattern in ROWS) and shutil.which(entry.server[0]) and family in entry.families:
                yield Connection(entry, family, role)
    for role in ROLES:
        yield Multicast(role)
