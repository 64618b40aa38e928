# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What connects through the connection manager, against the kernel's (ib_cm, rdma_ucm and Debian's librdmacm): rows of
tests/cm, one side here and one in the lab's machine, and scenes of the meet program."""

import itertools
import os
import re
import shutil
import signal
import subprocess
import time

import lab as lab_module
import table
from lab import GuestProgram
from matrix import FAMILIES, ROLES, TIMEOUT_S
from pairs import Failure

ADDRESSES = {"IPv4": (lab_module.OUR_ADDRESS, lab_module.GUEST_ADDRESS), "IPv6": ("fd00:6f63::1", "fd00:6f63::2")}
FIXED_PORT = 7174  # of programs that are given none
MTU = 4096  # the largest that the link's MTU allows, which is what the connection manager takes
MULTICAST = "230.1.2.3"
DEVICE = "/dev/infiniband/rdma_cm"

# Of tests/cm's table: emulation is slow, and each row is here to see other messages, not to see them often.
ROWS = (r"rping( -q| -S 65000 -C 30)?", r"rping -P, ten clients", r"udaddy( .*)?",
        r"ucmatose( -c 8| -P ib| -m| -t 32| -c 3 -C 50 -S 5000)?",
        r"rdma_client", r"ib_((send|read|write)_(lat|bw)|atomic_bw) -R",
        r"ib_send_(bw|lat) -R (-c UD|-e|-b)", r"ib_read_bw -R -q 8", r"ib_write_bw -R -q 32")
# perftest 4.5: its server listens anew for each connection, and its client, refused in between, goes on with freed
# memory. Such an attempt says nothing.
REFUSED_BETWEEN = r"RDMA_CM_EVENT_(REJECTED; error: 8|UNREACHABLE; error: 1)\."
ATTEMPTS = 8


STREAMS = ("-S 64 -C 40", "-S 65536 -C 10 -T v", "-S 65536 -C 10 -T a -T v", "-S 65536 -C 10 -T n",
           "-S 65536 -C 10 -T b", "-S 1048576 -C 2 -T v", "-S 4096 -C 10 -k 1", "-S 4096 -C 10 -i 0",
           "-S 65536 -C 10 -B 65536")
MAPPED_STREAMS = ("-S 4096 -C 10", "-S 65536 -C 5 -T v")


def rsockets():
    """tests/cm runs them with their own sizes and counts, which would take minutes here."""
    for program, rows in (("rstream", STREAMS), ("riostream", MAPPED_STREAMS)):
        for options in rows:
            line = f"{program} -p {{port}} -I 5 {options}"
            yield table.row(f"{program} {options}", f"{line} -b {{address}}", f"{line} -s {{address}}",
                            says=("", r"^\S+ +\S+ +\S+"))


def rows():
    for entry in table.all_rows():
        if any(re.fullmatch(pattern, entry.name) for pattern in ROWS):
            yield entry
    yield from rsockets()


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
        for attempt in range(ATTEMPTS):
            try:
                self.attempt(lab, ours)
                return
            except Failure as fault:
                again = self.program.startswith("ib_") and re.search(REFUSED_BETWEEN, str(fault))
                if not again or attempt == ATTEMPTS - 1:
                    raise

    def attempt(self, lab, ours):
        server, client, address = self.sides(ours)
        port = lab.next_port() if "{port}" in " ".join(self.entry.server) else FIXED_PORT
        argv = [[word.format(address=address, port=port) for word in words]
                for words in (self.entry.server, self.entry.client)]
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


def stock_library():
    """Where the system's librdmacm lies; None where it is not installed."""
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"librdmacm\.so\.1 .*=> (/\S+)", listed)
    return os.path.dirname(found[1]) if found else None


class Scene(Connection):
    """A scene of the meet program. dier: "ours" or "theirs", the side that ends by SIGKILL. helper: another process of
    verbatim's side, which listens on another port and knows nothing of the connection."""

    def __init__(self, program, scene, family, role, dier=None, helper=False):
        self.path, self.scene, self.dier, self.helper = program, scene, dier, helper
        self.family, self.role = family, role
        self.program = f"meet {scene}" + (f", {dier} killed" if dier else "") + (", another process" if helper else "")

    def run(self, lab, ours):
        server, client, address = self.sides(ours)
        port, deadline = lab.next_port(), time.monotonic() + TIMEOUT_S
        stock = ["env", f"LD_LIBRARY_PATH={stock_library()}"]  # the program's own path names verbatim's
        library = [stock if side is GuestProgram else [] for side in (server, client)]
        argv = [self.path, "-t", self.scene, "-p", str(port)]
        dying = None if not self.dier else int((self.dier == "ours") == (self.role == "client"))  # 0: the server
        kill = [["-k"] if number == dying else [] for number in (0, 1)]
        programs, helpers, faults = [], [], []
        try:
            if self.helper:
                other, port = port, lab.next_port()
                helper = [self.path, "-t", "active", "-p", str(other), "-b", ADDRESSES[self.family][0]]
                helpers = [ours(lab, helper, cm_port=other)]
                argv[-1] = str(port)
                faults = lab.wait_listening(helpers[0], deadline)
            if not faults and not self.scene.endswith("absent"):
                programs = [server(lab, [*library[0], *argv, *kill[0], "-b", address], cm_port=port)]
                faults = lab.wait_listening(programs[0], deadline)
            if not faults:
                programs.append(client(lab, [*library[1], *argv, *kill[1], address]))
                faults = self.ended(lab, programs, dying, deadline)
        finally:
            for program in programs + helpers:
                program.end()
        lab.outputs(programs + helpers, faults)

    @staticmethod
    def ended(lab, programs, dying, deadline):
        faults = lab.wait_all([program for number, program in enumerate(programs) if number != dying], deadline)
        if dying is None:
            return faults
        lab.wait_all([programs[dying]], deadline)
        if programs[dying].poll() != -signal.SIGKILL:
            faults.append(f"the {programs[dying].side} side ended with {programs[dying].poll()}, not by SIGKILL")
        return faults


def scenes(program, family, role):
    for scene in ("active", "passive", "both", "reject", "datagram", "datagram-reject"):
        yield Scene(program, scene, family, role)
    for scene in ("absent", "datagram-absent"):
        # Of our side, some process must be there to say that there is no listener.
        yield Scene(program, scene, family, role, helper=role == "server")
    yield Scene(program, "killed", family, role, "theirs")
    yield Scene(program, "lost", family, role, "ours", helper=True)
    yield Scene(program, "lost-alone", family, role, "ours")


def available(lab):
    """None, or why the machine's kernel serves no connections."""
    if not shutil.which("ucmatose") or not stock_library():
        return "rdmacm-utils is not installed"
    if lab.run(GuestProgram, ["sh", "-c", f"test -e {DEVICE} && echo yes || echo no"]).strip() != "yes":
        return f"the lab's kernel has no {DEVICE}: its module rdma_ucm cannot be loaded"
    return None


def cases(program):
    """program: where meet lies."""
    for family, role in itertools.product(FAMILIES, ROLES):
        for entry in rows():
            if role == "server" and "-T a" in entry.name:
                continue  # the slow client always sees the end together with the last data, and takes it for a failure
            if shutil.which(entry.server[0]) and family in entry.families:
                yield Connection(entry, family, role)
        yield from scenes(program, family, role)
    for role in ROLES:
        yield Multicast(role)
