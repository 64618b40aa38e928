# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What goes wrong between hosts: packets lost, doubled, out of order and damaged; the port held by somebody else; an interface
whose packets are too small."""

import os
import shutil
import subprocess
import sys
import time

import cases
import hosts
from pairs import Failure, tail
from several import wait_all
from shares import Skip
from users import ORDINARY

PORT = 4791
HOLD = (f"import socket,sys; s=socket.socket(getattr(socket,sys.argv[1]),socket.SOCK_DGRAM);"
        f"s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEPORT,int(sys.argv[2])); s.bind(('',{PORT}));"
        f"print('held',flush=True); sys.stdin.read()")
DRIVER = "vbkernel0"


def known_here(user):
    """An ordinary user's own user namespace has one user, and there it is root."""
    with open("/proc/self/uid_map", encoding="ascii") as table:
        return any(int(first) <= user < int(first) + int(count) for first, _, count in map(str.split, table))


class Holder:
    """Somebody who has the port on host 0."""

    def __init__(self, launch, family="AF_INET", reuse=False, user=None):
        change = [] if user is None else [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        argv = ["setpriv", "--pdeathsig", "KILL", *change, *launch, "/usr/bin/python3", "-c", HOLD, family, str(int(reuse))]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid

    def __enter__(self):
        if not self.process.stdout.readline():
            self.__exit__()
            raise Failure("the port could not be held")
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Driver:
    """A kernel driver that has the port on host 0: vxlan can be given any. rdma_rxe takes it in the same way."""

    def __init__(self, nets):
        self.nets = nets

    def __enter__(self):
        argv = [hosts.tool("ip"), "link", "add", DRIVER, "type", "vxlan", "id", "7", "dstport", str(PORT), "local", hosts.IPV4[0],
                "remote", hosts.IPV4[1], "dev", hosts.INTERFACE]
        made = subprocess.run(argv, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise Skip(f"no driver of this kernel takes a UDP port on demand: vxlan: {made.stderr.strip()}")
        self.nets.ip(0, "link", "set", DRIVER, "up")
        return self

    def __exit__(self, *_):
        self.nets.ip(0, "link", "del", DRIVER)


class Trouble:
    def __init__(self, tests):
        self.tests = tests
        self.launch = tests.nets.launch[0]  # a process of more rights could not be looked into
        self.report = tests.report

    def faults(self):
        for fault in ("drop=10%", "dup=10%", "reorder=10%", "corrupt=10%", "drop=3%,dup=3%,reorder=3%,corrupt=3%", "reorder=100%"):
            env = {"VERBATIM_FAULT": f"{fault},seed=11"}
            # Of what is lost much is waited for: less is sent.
            size = 262144 if fault.startswith(("dup", "reorder")) else 65536
            for family in ("IPv4", "IPv6"):
                argv = ["ibv_rc_pingpong", "-d", hosts.DEVICE, "-g", str(self.tests.index[family]), "-c", "-n", "20"]
                self.report.case(f"{fault}, {family}: ibv_rc_pingpong -c",
                                 lambda argv=argv, env=env: self.lossy_pingpong(argv, env))
            # Each packet of a message that is held back has those behind it sent again.
            for verb in ("write", "read", "send") if "100%" not in fault else ():
                argv = [f"ib_{verb}_bw", "-d", hosts.DEVICE, "-F", "-s", str(size), "-n", "5", "-m", "1024", "-u", "16"]  # 2 s for all tries
                self.tests.pair(f"{fault}: ib_{verb}_bw", argv, cases.perftest_check([size]), **env)

    def lossy_pingpong(self, argv, env):
        """The side that ends first takes its queue pair with it. Should its very last acknowledgement get lost and those that repeat it
        that repeat it, too, the other side's last SEND fails; everything before must have arrived whole."""
        with self.tests.runner(**env) as runner:
            try:
                cases.pingpong_check(runner.pair(argv, hosts.IPV4[0]))
            except Failure as fault:
                text = str(fault)
                if ("transport retries exceeded (12) for wr_id 2" not in text or "iters in" not in text
                        or "invalid data" in text):
                    raise

    def pingpong(self, family, *more):
        return ["ibv_rc_pingpong", "-d", hosts.DEVICE, "-n", "200", "-g", str(self.tests.index[family]), *more]

    def reached(self, family):
        with self.tests.runner() as runner:
            cases.pingpong_check(runner.pair(self.pingpong(family), hosts.IPV4[0]))

    def shared_memory(self, family):
        with self.tests.runner() as runner:
            runner.pins = [self.tests.nets.launch[0]] * 2
            cases.pingpong_check(runner.pair(self.pingpong(family)))

    def refused(self, argv, wanted):
        """RTR towards the other host fails, and the log says `wanted`."""
        with self.tests.runner(VERBATIM_LOG="debug") as runner:
            try:
                runner.pair(argv, hosts.IPV4[0])
            except Failure as fault:
                text = str(fault)
                if "Failed to modify QP to RTR" not in text or wanted not in text:
                    raise Failure(f"not refused with {wanted!r}:\n{text}") from None
                return
        raise Failure("the exchange worked")

    def held(self, family, holder):
        wanted = f"PORT_TAKEN: udp port {PORT} ({family}) is held by process {holder.pid} "
        self.refused(self.pingpong(family), wanted)
        self.shared_memory(family)

    def port_taken(self):
        """Shared memory goes on, and the refusal names the holder."""
        def same_user(family, name):
            with Holder(self.launch, name) as holder:
                self.held(family, holder)

        def other_family():
            with Holder(self.launch):
                self.reached("IPv6")

        def other_user():
            if os.geteuid() != 0 or self.tests.args.ordinary or not known_here(ORDINARY):
                raise Skip("only root can be two users")
            # That this one shares its port too makes no difference: the kernel shares among one user's sockets alone.
            with Holder(self.launch, reuse=True, user=ORDINARY) as holder:
                self.refused(self.pingpong("IPv4"), f"process {holder.pid} (python3) of user {ORDINARY}")
                self.shared_memory("IPv4")

        def driver():
            with Driver(self.tests.nets):
                self.refused(self.pingpong("IPv4"), f"PORT_TAKEN: udp port {PORT} (IPv4) is held by user 0: a driver of the kernel")
                self.shared_memory("IPv4")
            self.reached("IPv4")

        for family, name in (("IPv4", "AF_INET"), ("IPv6", "AF_INET6")):
            self.report.case(f"port taken ({family}): refused by the holder's name, shared memory goes on",
                             lambda family=family, name=name: same_user(family, name))
        self.report.case("port taken (IPv4): IPv6 goes on", other_family)
        self.report.case("port taken by another user", other_user)
        self.report.case("port taken by a driver of the kernel, then given back", driver)

    def two_namespaces(self, program, family, **env):
        """A program that enters the other host by itself."""
        self.alone(program, family, self.tests.nets.netns(1), **env)

    def alone(self, program, family, *words, **env):
        with self.tests.runner(timeout=60, VB_TEST_DEVICE=hosts.DEVICE, **env) as runner:
            log = os.path.join(runner.dir, "log")
            argv = [runner.program(program), str(self.tests.index[family]), *words]
            end = runner.start(argv, log)  # with the right to enter the other host
            try:
                faults = wait_all([end], time.monotonic() + 60)
                if faults:
                    raise Failure(f"{faults[0]}\n{tail(log)}")
            finally:
                runner.end(end)

    def reply_first(self):
        """An acknowledgement that let a reply go first is not forgotten, whatever the program does."""
        for family in ("IPv4", "IPv6"):
            self.report.case(f"{family}: a reply before its acknowledgement",
                             lambda family=family: self.two_namespaces(self.tests.args.reply, family))

    def memory(self):
        """What is newer than READ and WRITE, also on a bad network."""
        for family, env in (("IPv4", {}), ("IPv6", {}), ("IPv4", {"VERBATIM_FAULT": "drop=5%,dup=2%,reorder=2%,seed=11"})):
            self.report.case(f"{family}: windows, ATOMIC_WRITE, FLUSH{', with loss' if env else ''}",
                             lambda family=family, env=env: self.two_namespaces(self.tests.args.memory, family, **env))

    def numbers_taken(self):
        """The program closes the sockets and uses their numbers: others are opened, and its own are left alone."""
        for family in ("IPv4", "IPv6"):
            self.report.case(f"{family}: descriptors closed and used by the program",
                             lambda family=family: self.two_namespaces(self.tests.args.reused, family))

    def strays(self):
        """Packets that are not this process's, and whose process stands still."""
        for family in ("IPv4", "IPv6"):
            self.report.case(f"{family}: packets of a process that stands still hold up nobody",
                             lambda family=family: self.two_namespaces(self.tests.args.strays, family))

    def join(self):
        """Without a loopback interface no probe arrives, so the search for the own socket takes its whole time."""
        def case(family, peer):
            self.tests.nets.ip(0, "link", "set", "lo", "down")
            try:
                self.alone(self.tests.args.join, family, peer)
            finally:
                self.tests.nets.ip(0, "link", "set", "lo", "up")
        for family, peer in (("IPv4", f"::ffff:{hosts.IPV4[1]}"), ("IPv6", hosts.IPV6[1])):
            self.report.case(f"{family}: messages go on while steering is joined",
                             lambda family=family, peer=peer: case(family, peer))

    def mtu_told(self):
        """What query_port tells as active MTU, RTR takes, at the limits of each size."""
        def case(family, interface, path):
            self.tests.nets.set_mtu(interface)
            with self.tests.runner() as runner:
                runner.pins = [self.launch] * 2
                told = runner.single([*self.launch, "ibv_devinfo", "-d", hosts.DEVICE])
                if f"active_mtu:\t\t{path} " not in told:
                    raise Failure(f"active MTU of {interface} bytes is not {path}:\n{told}")
            with self.tests.runner() as runner:
                cases.pingpong_check(runner.pair(self.pingpong(family, "-m", str(path)), hosts.IPV4[0]))
        for interface, path in ((2110, 1024), (2135, 1024), (2136, 2048), (4158, 2048), (4183, 2048), (4184, 4096)):
            for family in ("IPv4", "IPv6"):
                self.report.case(f"{family}: active MTU of an interface of {interface} bytes",
                                 lambda family=family, interface=interface, path=path: case(family, interface, path))

    def mtu_refused(self):
        self.report.case("path MTU 4096 on an interface of 1500 is refused",
                         lambda: self.refused(self.pingpong("IPv4", "-m", "4096"), "carries 1500"))
