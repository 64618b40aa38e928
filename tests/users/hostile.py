# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Users that lie: one who is not in the domain gains nothing and holds up nobody, and one who is in it draws nobody's packets to
itself by what it says."""

import re

from pairs import Failure
from people import ALICE, BOB, CAROL, MALLORY, PATIENT, python, tail

NAMES = """
import os, socket, sys
def listen(name, backlog=16):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.bind(chr(0) + name)
    s.listen(backlog)
    return s
def read(prefix):
    for line in open("/proc/net/unix"):
        name = line.rstrip("\\n").rpartition(" ")[2]
        if name.startswith("@" + prefix):
            yield name[1:]
def call(name):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(10)
    s.connect(chr(0) + name)
    return s
def ask(uid):
    for name in read(f"verbatim/{uid}/port4/"):
        data, fds, _, _ = socket.recv_fds(call(name), 1024, 8)
        return data, [socket.socket(fileno=fd) for fd in fds]
    raise SystemExit("nobody gives")
def stay():
    print("ready", flush=True)
    sys.stdin.read()
"""

# Names that look like those of one who gives.
SQUATTER = NAMES + """
kept = [listen(f"verbatim/{int(sys.argv[1])}/port4/{n:08x}", 0) for n in range(400)]
stay()
"""

# A member: the socket receives, and sends nothing in the giver's name.
TAKER = NAMES + """
import errno
data, fds = ask(int(sys.argv[1]))
assert len(fds) == 1, data
got = fds[0]
assert got.family == socket.AF_INET and got.type == socket.SOCK_DGRAM and got.getsockname() == ("0.0.0.0", 4791), got
for connect in (False, True):
    try:
        if connect:
            got.connect(("198.51.100.2", 9))
        got.sendto(b"x", ("198.51.100.2", 9)) if not connect else got.send(b"x")
        raise SystemExit("it sends")
    except OSError as fault:
        assert fault.errno == errno.EPIPE, fault
print("mute", flush=True)
"""

# A member: takes all the sockets that it gets, and reads none.
HOARDER = NAMES + """
import resource, time
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
kept = []
why = b""
until = time.monotonic() + 60
while b"too many sockets already" not in why and time.monotonic() < until:
    data, fds = ask(int(sys.argv[1]))
    kept += fds
    why = data
    if not fds:
        time.sleep(0.01)
assert 100 < len(kept) < 200, len(kept)
stay()
"""

# Is told why, and gets no socket.
ASKER = NAMES + """
data, fds = ask(int(sys.argv[1]))
assert not fds, fds
assert b"VERBATIM_DOMAIN" in data, data
print("refused", flush=True)
"""

# Calls whoever gives, without end.
CALLER = NAMES + """
names = [chr(0) + name for name in read(f"verbatim/{int(sys.argv[1])}/port4/")]
print("ready", flush=True)
while names:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
    try:
        s.connect(names[0])
    except BlockingIOError:
        pass
    s.close()
"""

# Has the port and gives what is no socket of it.
GIVER = NAMES + """
import struct, time
port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
port.bind(("", 4791))
names = listen(f"verbatim/{os.getuid()}/port4/00000001")
def control(kind=0, version=None):
    return struct.pack("<IIIIIIIIQQ80s", 0x7662636f, VERSION if version is None else version, TYPE, 0, 0, 0, 0, 0, 0, 0, b"")
udp, tcp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket()
six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
gone = port.dup()
far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
far.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
far.bind(("127.0.0.1", 4791))
null = open("/dev/null")
what = {"nothing": [], "null": [null], "unbound": [udp], "tcp": [tcp], "six": [six], "bound": [far], "many": [far] * 5}
print("ready", flush=True)
kept = []
while True:
    s, _ = names.accept()
    kept.append(s)
    if sys.argv[1] == "silence":
        continue
    if sys.argv[1] == "late":
        until = time.monotonic() + 4
        while time.monotonic() < until:
            pass
    if sys.argv[1] == "hang up":
        s.close()
        continue
    if sys.argv[1] == "garbage":
        s.send(b"x" * 60000)
        continue
    data = control(version=77) if sys.argv[1] == "version" else control()
    socket.send_fds(s, [data], [f.fileno() for f in what.get(sys.argv[1], [port])])
"""

# Says that another user's block is its own, at a place of the socket that it has or would have.
CLAIMER = NAMES + """
uid, place, victim = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
got = ask(uid)[1] if len(sys.argv) > 4 else []
names = [name for name in read(f"verbatim/{uid}/to/") if victim in name]
assert names, victim
blocks = names[0].rpartition("/")[2]
kept = [listen(f"verbatim/{os.getuid()}/to/{n:08x}.1/{place}.-1/{blocks}", 128) for n in range(1, 40)]
stay()
"""


class Hostile:
    def __init__(self, everybody, report):
        self.people = everybody
        self.report = report

    def case(self, name, run, *args):
        def within():
            with self.people:
                run(*args)
        self.report.case(name, within)

    def run(self):
        self.case("who does not agree is given nothing, and who agrees a socket that is mute", self.asks)
        for who, uid in (("a stranger", MALLORY), ("a member", CAROL)):
            self.case(f"{who} makes the names of one who gives", self.squats, uid)
        self.case("a stranger calls without end", self.calls)
        for what, wanted in (("silence", "it does not answer in time"), ("hang up", "its answer cannot be read"),
                             ("garbage", "another version"), ("version", "another version"), ("nothing", "gives no socket"),
                             ("null", "it is no UDP socket"), ("unbound", "it is not bound"), ("tcp", "it is no UDP socket"),
                             ("six", "it is no UDP socket"), ("bound", "it is not bound"), ("many", "gives no socket")):
            self.case(f"who has the port gives {what}", self.gives, what, wanted)
        self.case("who has the port is at work, and gives it late", self.gives_late)
        self.case("a member takes all sockets that it gets", self.hoards)
        self.case("a stranger claims another's numbers", self.claims, MALLORY)
        self.case("a member claims another's numbers", self.claims, CAROL, "asks")

    def start(self, uid, text, *args):
        person = self.people.start(0, uid, [*python(text), *map(str, args)])
        return person

    def asks(self):
        holder = self.people.flows(ALICE)
        asker = self.start(MALLORY, ASKER, ALICE)
        if asker.wait() != 0:
            raise Failure(tail(asker.log))
        taker = self.start(BOB, TAKER, ALICE)
        if taker.wait() != 0:
            raise Failure(tail(taker.log))
        self.people.flowing(holder)

    def squats(self, uid):
        holder = self.people.flows(ALICE)
        self.start(uid, SQUATTER, ALICE).says("ready")
        self.people.whole(self.people.pair(BOB))
        self.people.flowing(holder)

    def calls(self):
        holder = self.people.flows(ALICE)
        for _ in range(2):
            self.start(MALLORY, CALLER, ALICE).says("ready")
        self.people.whole(self.people.pair(BOB))
        self.people.flowing(holder)

    def hoards(self):
        holder = self.people.flows(ALICE)
        self.start(CAROL, HOARDER, ALICE).says("ready", 90)
        self.people.flowing(holder)
        self.people.whole(self.people.pair(ALICE))
        self.people.whole(self.people.pair(BOB, program=PATIENT))
        self.people.flowing(holder)

    def giver(self, what):
        """Alice has the port, and gives this; returns Bob's server and the argv of its client."""
        with open(self.control_header(), encoding="utf-8") as header:
            text = header.read()
        version = re.search(r"VB_CONTROL_VERSION (\d+)", text).group(1)
        kinds = re.findall(r"^\tVB_CONTROL_(\w+)(?: = 1)?,", text.partition("enum vb_control_type")[2].partition("};")[0], re.M)
        giver = GIVER.replace("VERSION if", f"{version} if").replace("TYPE,", f"{kinds.index('PORT') + 1},")
        self.start(ALICE, giver, what).says("ready")
        return self.people.server(BOB)

    def gives(self, what, wanted):
        self.people.refused(*self.giver(what), "PORT_TAKEN", wanted)

    def gives_late(self):
        """Later than one that sleeps is waited for."""
        server, argv = self.giver("late")
        self.people.whole((server, self.people.start(1, ALICE, argv)))

    @staticmethod
    def control_header():
        import os
        here = os.path.dirname(os.path.abspath(__file__))
        return os.path.join(os.path.dirname(os.path.dirname(here)), "src", "host", "control.h")

    def claims(self, uid, *more):
        holder, bob = self.people.flows(ALICE), self.people.flows(BOB)
        for end in bob[::-1]:
            end.end()
        said = re.search(r"claimed queue pair numbers 0x([0-9a-f]+)", tail(holder[0].log, 2000)).group(1)
        digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"
        block = int(said, 16) >> 10
        name = "".join(digits[block >> shift & 63] for shift in (0, 6, 12))
        self.start(uid, CLAIMER, ALICE, 1, name, *more).says("ready")
        self.people.flowing(holder, 400)
        self.people.whole(self.people.pair(ALICE))
        self.people.whole(self.people.pair(BOB))
        self.people.flowing(holder, 400)
