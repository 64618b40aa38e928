# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Several processes of one host behind one port: each packet finds its process, whichever socket the kernel chose; each
datagram of a group finds every member; who waits costs nothing."""

import os
import re
import signal
import subprocess
import time

import cases
import hosts
from idle import idle_server
from pairs import Failure, free_port, tail
from programs import PATIENT, STOCK_BUFFER

SERVERS = 3
# A program that names a place which no group has; its socket is gone at once, the program stays. Ends with its parent.
UNSTEER = """
import ctypes, select, socket, struct, sys
code = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0xffffffff))
program = struct.pack("@HP", 1, ctypes.addressof(code))
while not select.select([sys.stdin], [], [], 0.002)[0]:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.bind(("", 4791))
    s.setsockopt(socket.SOL_SOCKET, 51, program)
    s.close()
"""
STILL = 6


class Several:
    def __init__(self, tests):
        self.tests = tests
        self.report = tests.report

    def start_servers(self, runner, argv, running, deadline):
        servers = []
        for i in range(SERVERS):
            port = free_port()
            log = [os.path.join(runner.dir, f"{side}{i}.out") for side in ("server", "client")]
            running.append(runner.start(self.tests.nets.launch[0] + argv + ["-p", str(port)], log[0]))
            servers.append((running[-1], log, port))
        for server, log, port in servers:
            if not runner.wait_listening(server, port, deadline):
                raise Failure(f"a server never listened:\n{tail(log[0])}")
        return servers

    def at_once(self, argv, check, **env):
        with self.tests.runner(VERBATIM_LOG="info", **env) as runner:
            running = []
            try:
                deadline = time.monotonic() + runner.timeout
                servers = self.start_servers(runner, argv, running, deadline)
                for _, log, port in servers:
                    client = self.tests.nets.launch[1] + argv + ["-p", str(port), hosts.IPV4[0]]
                    running.append(runner.start(client, log[1]))
                faults = wait_all(running, deadline)
                pairs = [[tail(path) for path in log] for _, log, _ in servers]
                if faults:
                    raise Failure("\n".join([*faults, *(text for pair in pairs for text in pair)]))
                for pair in pairs:
                    check(pair)
                return sum(int(n) for pair in pairs for text in pair for n in re.findall(r"(\d+) strays", text))
            finally:
                for process in running:
                    runner.end(process)

    def servers(self):
        """What is sent to each process arrives, while the others begin and end."""
        for family in ("IPv4", "IPv6"):
            index = str(self.tests.index[family])
            for kind in ("rc", "srq", "ud"):
                argv = [f"ibv_{kind}_pingpong", "-d", hosts.DEVICE, "-g", index, "-e", "-n", "500"]
                self.tests.case(f"{family}: {SERVERS} servers at once, ibv_{kind}_pingpong -e",
                                lambda argv=argv: self.at_once(argv, cases.pingpong_check))
            for verb, env in (("write", {}), ("send", {"VERBATIM_UDP_BUFFER": str(STOCK_BUFFER)})):
                argv = [f"ib_{verb}_bw", "-d", hosts.DEVICE, "-F", *PATIENT, "-x", index, "-s", "65536", "-n", "100"]
                label = ", receive buffer " + env["VERBATIM_UDP_BUFFER"] if env else ""
                self.report.case(f"{family}: {SERVERS} servers at once, ib_{verb}_bw{label}",
                                 lambda argv=argv, env=env: self.at_once(argv, cases.perftest_check([65536]), **env))

    def bystanders(self):
        """Some processes of the host stand still, each with a datagram queue pair and so with a socket of the port: the connections of
        another process do not notice, and none of its packets goes a detour. One of them dies standing: the places of sockets change."""
        def case(family, index, argv, check):
            with self.tests.runner(VERBATIM_LOG="info", timeout=60) as runner:
                program = runner.program(self.tests.args.mcast)
                group = "239.1.2.9" if family == "IPv4" else "ff05::1:2:9"
                still, logs = [], []
                try:
                    for i in range(STILL):
                        logs.append(os.path.join(runner.dir, f"still{i}"))
                        still.append(runner.start(self.tests.nets.launch[0] + [program, hosts.DEVICE, group, index, "stand"], logs[-1]))
                    deadline = time.monotonic() + 20
                    for process, log in zip(still, logs):
                        while "ready" not in tail(log):
                            if time.monotonic() > deadline or process.poll() is not None:
                                raise Failure(f"a bystander has no group:\n{tail(log)}")
                            time.sleep(0.02)
                        process.send_signal(signal.SIGSTOP)
                    for killed in (None, 0, 1):
                        if killed is not None:
                            still[killed].kill()
                            still[killed].wait()
                        outputs = runner.pair([*argv, "-x", index], hosts.IPV4[0])
                        check(outputs)
                        detours = [int(n) for text in outputs for n in re.findall(r"(\d+) strays", text)]
                        if any(detours) or not detours:
                            raise Failure(f"packets that took a detour: {detours}\n" + "\n".join(outputs))
                finally:
                    for process in still:
                        runner.end(process)
        for family in ("IPv4", "IPv6"):
            argv = ["ib_send_bw", "-d", hosts.DEVICE, "-F", "-q", "16", "-s", "8192", "-n", "200", *PATIENT]
            self.report.case(f"{family}: 16 connections beside {STILL} processes that stand still",
                             lambda family=family, argv=argv: case(family, str(self.tests.index[family]), argv, cases.perftest_check([8192])))

    def xrc(self):
        """Requests from another host for queues of several processes; the queue pair's process goes, the queue pair stays."""
        def case(part, rounds):
            with self.tests.runner(VB_TEST_DEVICE=hosts.DEVICE) as runner:
                # With the right to enter the other host, where its senders are.
                runner.single([runner.program(self.tests.args.xrc), part, str(rounds), self.tests.nets.netns(1)])
        for part, rounds in (("shared", 2), ("creator", 4), ("queue", 2)):
            self.report.case(f"XRC domains of several processes: {part}", lambda part=part, rounds=rounds: case(part, rounds))

    def hand_over(self):
        """Somebody of the same user puts an end to steering again and again: which socket a flow falls to is then the kernel's
        choice, a new one for each set of servers."""
        argv = ["ibv_rc_pingpong", "-d", hosts.DEVICE, "-g", str(self.tests.index["IPv4"]), "-e", "-n", "100"]

        def case():
            rival = subprocess.Popen([*self.tests.nets.launch[0], "/usr/bin/python3", "-c", UNSTEER], stdin=subprocess.PIPE)
            try:
                for _ in range(8):
                    if self.at_once(argv, cases.pingpong_check):
                        return
            finally:
                rival.kill()
                rival.wait()
                rival.stdin.close()
            raise Failure("no packet had to be handed over: the test showed nothing")
        self.tests.case("packets are handed over between processes", case)

    def multicast(self, group, family):
        """Two processes on one host, one of them with two members and one of another Q_Key, and one on the other host: each member
        gets each datagram once, the sender's own process too."""
        def case():
            with self.tests.runner() as runner:
                common = [runner.program(self.tests.args.mcast), hosts.DEVICE, group, str(self.tests.index[family])]
                logs = [os.path.join(runner.dir, name) for name in ("a", "b", "c")]
                ends = [runner.start(self.tests.nets.launch[host] + common + ["receive"], log)
                        for host, log in ((0, logs[0]), (0, logs[1]), (1, logs[2]))]
                try:
                    deadline = time.monotonic() + 10
                    while not all("ready" in tail(log) for log in logs):
                        if time.monotonic() > deadline or any(end.poll() is not None for end in ends):
                            raise Failure("not all became members:\n" + "\n".join(tail(log) for log in logs))
                        time.sleep(0.02)
                    logs.append(os.path.join(runner.dir, "sender"))
                    ends.append(runner.start(self.tests.nets.launch[0] + common + ["send"], logs[-1]))
                    faults = wait_all(ends, deadline + 10)
                    if faults:
                        raise Failure("\n".join(faults + [tail(path) for path in logs]))
                finally:
                    for end in ends:
                        runner.end(end)
        self.report.case(f"multicast {family}: every member of every process and host", case)

    def multicast_apart(self, group, family):
        """A sender that asked not to hear itself (IBV_QP_CREATE_BLOCK_SELF_MCAST_LB), and another member in its process."""
        def case():
            with self.tests.runner() as runner:
                log = os.path.join(runner.dir, "apart")
                end = runner.start(self.tests.nets.launch[0] + [runner.program(self.tests.args.mcast), hosts.DEVICE, group,
                                                               str(self.tests.index[family]), "apart"], log)
                try:
                    faults = wait_all([end], time.monotonic() + 15)
                    if faults:
                        raise Failure(f"{faults[0]}\n{tail(log)}")
                finally:
                    runner.end(end)
        self.report.case(f"multicast {family}: a sender that does not hear itself", case)

    def idle(self):
        def group():
            with self.tests.runner() as runner:
                program = runner.program(self.tests.args.mcast)
                log = os.path.join(runner.dir, "idle")
                end = runner.start(self.tests.nets.launch[0] + [program, hosts.DEVICE, "ff05::99", str(self.tests.index["IPv6"]),
                                                               "idle"], log)
                try:
                    faults = wait_all([end], time.monotonic() + 10)
                    if faults:
                        raise Failure(f"{faults[0]}\n{tail(log)}")
                finally:
                    runner.end(end)

        def connected(argv):
            with self.tests.runner() as runner:
                used = idle_server(runner, [*argv, "-d", hosts.DEVICE, "-F", "-x", str(self.tests.index["IPv4"])], 1.5)
                if used > 0.02:
                    raise Failure(f"{used:.2f} s of processor time in 1.5 s of waiting")

        self.report.case("an idle member of a group uses no processor", group)
        for argv in (["ib_write_bw"], ["ib_send_bw", "-e"]):  # the first waits for its client's word, the second for events
            self.report.case(f"an idle connected server uses no processor: {' '.join(argv)}",
                             lambda argv=argv: connected(argv))


def wait_all(processes, deadline):
    faults = []
    for process in processes:
        try:
            code = process.wait(max(0.1, deadline - time.monotonic()))
            if code != 0:
                faults.append(f"process {process.args[-4:]} exited with {code}")
        except subprocess.TimeoutExpired:
            faults.append(f"process {process.args[-4:]} did not end")
    return faults
