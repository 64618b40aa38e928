#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: run.py --lib DIR --mcast PROGRAM [--ordinary] [--only REGEX] [--debug]
The link between hosts: unmodified programs in two network namespaces, and what goes wrong there. Prints one TAP line a case;
exits 1 when one failed, 77 (reason on the last line of standard error) when nothing could be run."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

SKIP = 77
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "apps")]

import cases  # noqa: E402
import hosts  # noqa: E402
from pairs import Failure, Runner, free_port, tail  # noqa: E402

PINGPONG = ["-d", hosts.DEVICE, "-n", "200"]
PERFTEST = ["-d", hosts.DEVICE, "-F"]


def skip(reason):
    print(reason, file=sys.stderr)
    sys.exit(SKIP)


class Report:
    def __init__(self, only):
        self.only = only
        self.count = self.failed = 0

    def case(self, name, run):
        if self.only and not re.search(self.only, name):
            return
        self.count += 1
        began = time.monotonic()
        try:
            run()
            print(f"ok {self.count} - {name}")
        except Failure as fault:
            self.failed += 1
            print(f"not ok {self.count} - {name}")
            print("".join(f"#   {line}\n" for line in str(fault).splitlines()), end="")
        print(f"# {time.monotonic() - began:.2f} s")
        sys.stdout.flush()


class Tests:
    def __init__(self, args, nets, report):
        self.args = args
        self.nets = nets
        self.report = report
        self.index = {"IPv4": nets.index_of(0, hosts.IPV4[0]), "IPv6": nets.index_of(0, hosts.IPV6[0])}
        if self.index["IPv6"] != nets.index_of(1, hosts.IPV6[1]):
            raise RuntimeError("the two hosts have their addresses at different indices")

    def runner(self, timeout=40, **env):
        env.setdefault("VERBATIM_LOG", "warn")
        return Runner(self.args.lib, timeout=timeout, env=env, debug=self.args.debug, pins=self.nets.enter)

    def pair(self, name, argv, check, **env):
        def case():
            with self.runner(**env) as runner:
                check(runner_pair(runner, argv))
        self.report.case(name, case)

    def pingpongs(self, label, kinds=("rc", "uc", "ud", "srq"), modes=([], ["-e"], ["-c"]), families=("IPv4", "IPv6"), more=(),
                  **env):
        for family in families:
            for kind in kinds:
                for mode in modes:
                    # A datagram is one packet: its size takes the place of a path MTU.
                    size = more if kind != "ud" else ["-s", more[1]]
                    argv = [f"ibv_{kind}_pingpong", *PINGPONG, "-g", str(self.index[family]), *mode, *size]
                    self.pair(f"{label}{family}: ibv_{kind}_pingpong {' '.join([*mode, *size])}", argv,
                              cases.pingpong_check, **env)

    def perftests(self, label, mtu, families=("IPv4", "IPv6"), **env):
        for family in families:
            for verb, kind, options, size in (
                    ("send", "lat", ["-s", "64"], 64), ("send", "bw", ["-s", "65536"], 65536),
                    ("write", "lat", ["-s", "64"], 64), ("write", "bw", ["-s", "1048576"], 1048576),
                    ("read", "lat", ["-s", "64"], 64), ("read", "bw", ["-s", "1048576"], 1048576),
                    ("atomic", "lat", [], 8), ("atomic", "bw", [], 8),
                    ("send", "bw", ["-s", "1024", "-c", "UD", "-e"], 1024), ("write", "bw", ["-s", "65536", "-q", "8"], 65536)):
                argv = [f"ib_{verb}_{kind}", *PERFTEST, "-x", str(self.index[family]), "-n", "50", *options]
                if "UD" not in options:
                    argv += ["-m", str(mtu)]
                self.pair(f"{label}{family}: ib_{verb}_{kind} {' '.join(options)} -m {mtu}", argv,
                          cases.perftest_check([size]), **env)

    def faults(self):
        for fault in ("drop=10%", "dup=10%", "reorder=10%", "corrupt=10%", "drop=3%,dup=3%,reorder=3%,corrupt=3%"):
            env = {"VERBATIM_FAULT": f"{fault},seed=11"}
            argv = ["ibv_rc_pingpong", "-d", hosts.DEVICE, "-g", str(self.index["IPv4"]), "-c", "-n", "20"]
            self.report.case(f"{fault}: ibv_rc_pingpong -c", lambda argv=argv, env=env: self.lossy_pingpong(argv, env))
            for verb in ("write", "read"):
                argv = [f"ib_{verb}_bw", *PERFTEST, "-s", "262144", "-n", "10", "-m", "1024"]
                self.pair(f"{fault}: ib_{verb}_bw", argv, cases.perftest_check([262144]), **env)

    def lossy_pingpong(self, argv, env):
        """The side that ends first takes its queue pair with it. Should its very last acknowledgement get lost, nobody repeats
        it, and the other side's last SEND fails, on any adapter; everything before must have arrived whole."""
        with self.runner(**env) as runner:
            try:
                cases.pingpong_check(runner_pair(runner, argv))
            except Failure as fault:
                text = str(fault)
                if ("transport retries exceeded (12) for wr_id 2" not in text or "iters in" not in text
                        or "invalid data" in text):
                    raise

    def several(self, count, argv, check, **env):
        """Servers that run at once on one host: each packet finds its process, whichever socket the kernel chose."""
        with self.runner(VERBATIM_LOG="info", **env) as runner:
            running = []
            try:
                for i in range(count):
                    port = free_port()
                    log = [os.path.join(runner.dir, f"{side}{i}.out") for side in ("server", "client")]
                    server = runner.start(self.nets.enter[0] + argv + ["-p", str(port)], log[0])
                    running.append((server, log, port))
                deadline = time.monotonic() + runner.timeout
                for server, log, port in running:
                    if not runner.wait_listening(server, port, deadline):
                        raise Failure(f"a server never listened:\n{tail(log[0])}")
                clients = [runner.start(self.nets.enter[1] + argv + ["-p", str(port), hosts.IPV4[0]], log[1])
                           for _, log, port in running]
                faults = runner_wait([server for server, _, _ in running] + clients, deadline)
                outputs = [tail(path) for _, log, _ in running for path in log]
                if faults:
                    raise Failure("\n".join([*faults, *outputs]))
                check(outputs)
            finally:
                for process in [server for server, _, _ in running] + locals().get("clients", []):
                    runner.end(process)

    def hand_over(self):
        strays = [0]

        def check(outputs):
            cases.pingpong_check(outputs)
            strays[0] += sum(int(n) for text in outputs for n in re.findall(r"(\d+) strays", text))

        for family in ("IPv4", "IPv6"):
            for kind in ("rc", "srq"):  # not datagrams: those that a process held when it ended may be lost
                argv = [f"ibv_{kind}_pingpong", "-d", hosts.DEVICE, "-g", str(self.index[family]), "-e", "-n", "500"]
                self.report.case(f"{family}: three servers at once, ibv_{kind}_pingpong -e",
                                 lambda argv=argv: self.several(3, argv, check))

        def some():
            if not strays[0]:
                raise Failure("no packet had to be handed over: the test showed nothing")
        self.report.case("packets were handed over between processes", some)

    def port_taken(self):
        """Somebody else has the port: shared memory goes on, and the refusal names the holder."""
        code = ("import socket,sys; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.bind(('',4791)); print('held',flush=True);"
                "sys.stdin.read()")

        def held(run):
            def case():
                with subprocess.Popen(["/usr/bin/python3", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
                    try:
                        holder.stdout.readline()
                        run(holder.pid)
                    finally:
                        holder.stdin.close()
                        holder.kill()
            return case

        argv = ["ibv_rc_pingpong", *PINGPONG, "-g", str(self.index["IPv4"])]

        def shared(_):
            with Runner(self.args.lib, timeout=20, debug=self.args.debug) as runner:
                cases.pingpong_check(runner.pair(argv))

        def refused(pid):
            with self.runner(timeout=10, VERBATIM_LOG="debug") as runner:
                try:
                    runner_pair(runner, argv)
                except Failure as fault:
                    text = str(fault)
                    if "Failed to modify QP to RTR" not in text or f"PORT_TAKEN: udp port 4791 (IPv4) is held by process {pid} " not in text:
                        raise Failure(f"the holder is not named:\n{text}") from None
                    return
            raise Failure("the exchange worked without the port")

        self.report.case("port taken: shared memory goes on", held(shared))
        self.report.case("port taken: RTR towards another host fails and names the holder", held(refused))

    def mtu_refused(self):
        def case():
            with self.runner(timeout=10, VERBATIM_LOG="debug") as runner:
                try:
                    runner_pair(runner, ["ibv_rc_pingpong", *PINGPONG, "-g", str(self.index["IPv4"]), "-m", "4096"])
                except Failure as fault:
                    if "Failed to modify QP to RTR" not in str(fault) or "carries 1500" not in str(fault):
                        raise Failure(f"not refused for its MTU:\n{fault}") from None
                    return
            raise Failure("path MTU 4096 was accepted on an interface of 1500")
        self.report.case("path MTU 4096 on an interface of 1500 is refused", case)

    def multicast(self, group, family):
        """Two processes on one host, one of them with two members and one of another Q_Key, and one on the other host: each member
        gets each datagram once, the sender's own process too."""
        def case():
            with self.runner(timeout=20) as runner:
                program = runner.program(self.args.mcast)
                common = [program, hosts.DEVICE, group, str(self.index[family])]
                logs = [os.path.join(runner.dir, name) for name in ("a", "b", "c")]
                ends = [runner.start(self.nets.enter[host] + common + ["receive"], log)
                        for host, log in ((0, logs[0]), (0, logs[1]), (1, logs[2]))]
                try:
                    deadline = time.monotonic() + 10
                    while not all("ready" in tail(log) for log in logs):
                        if time.monotonic() > deadline:
                            raise Failure("not all became members:\n" + "\n".join(tail(log) for log in logs))
                        time.sleep(0.02)
                    log = os.path.join(runner.dir, "sender")
                    ends.append(runner.start(self.nets.enter[0] + common + ["send"], log))
                    faults = runner_wait(ends, deadline + 10)
                    if faults:
                        raise Failure("\n".join(faults + [tail(path) for path in [*logs, log]]))
                finally:
                    for end in ends:
                        runner.end(end)
        self.report.case(f"multicast {family}: every member of every process and host", case)

    def idle(self):
        """Queue pairs that wait for packets cost nothing: the server of a pingpong whose client never comes further than RTS."""
        def case():
            with self.runner(timeout=20) as runner:
                program = runner.program(self.args.mcast)
                log = os.path.join(runner.dir, "idle")
                end = runner.start(self.nets.enter[0] + [program, hosts.DEVICE, "ff05::99", str(self.index["IPv6"]), "idle"], log)
                try:
                    faults = runner_wait([end], time.monotonic() + 10)
                    if faults:
                        raise Failure(f"{faults[0]}\n{tail(log)}")
                finally:
                    runner.end(end)
        self.report.case("an idle process uses no processor", case)


def runner_pair(runner, argv):
    return runner.pair(argv, hosts.IPV4[0])


def runner_wait(processes, deadline):
    faults = []
    for process in processes:
        try:
            code = process.wait(max(0.1, deadline - time.monotonic()))
            if code != 0:
                faults.append(f"process {process.args[-4:]} exited with {code}")
        except subprocess.TimeoutExpired:
            faults.append(f"process {process.args[-4:]} did not end")
    return faults


def become_ordinary(args):
    """Once more as an ordinary user, with copies of what that user may not read."""
    place = tempfile.mkdtemp(prefix="verbatim-udp-")
    try:
        os.chmod(place, 0o755)
        for name in ("apps", "udp"):
            shutil.copytree(os.path.join(os.path.dirname(HERE), name), os.path.join(place, name))
        lib = os.path.join(place, "lib")
        os.mkdir(lib)
        for name in os.listdir(args.lib):
            if ".so" in name and not os.path.isdir(os.path.join(args.lib, name)):
                shutil.copy(os.path.join(args.lib, name), lib, follow_symlinks=False)
        mcast = shutil.copy(args.mcast, place)
        for top, dirs, files in os.walk(place):
            for name in dirs + files:
                path = os.path.join(top, name)
                if not os.path.islink(path):
                    os.chmod(path, os.stat(path).st_mode | 0o755)
        argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--pdeathsig", "KILL",
                "/usr/bin/python3", os.path.join(place, "udp", "run.py"), "--lib", lib, "--mcast", mcast, "--ordinary"]
        argv += ["--only", args.only] if args.only else []
        env = {key: value for key, value in os.environ.items() if key != hosts.MARK}
        return subprocess.run(argv, env=env, cwd=place, check=False).returncode
    finally:
        shutil.rmtree(place, ignore_errors=True)


def run_all(tests, ordinary):
    tests.nets.set_mtu(1500)
    brief = {"modes": ([], ["-e"])} if ordinary else {}
    tests.pingpongs("MTU 1500, ", more=["-m", "1024"], **brief)
    tests.mtu_refused()
    tests.nets.set_mtu(9000)
    tests.pingpongs("MTU 9000, ", kinds=("rc", "ud"), modes=([],), more=["-s", "2048"])
    tests.perftests("", 4096)
    tests.perftests("receive buffer 212992, ", 4096, families=("IPv4",), VERBATIM_UDP_BUFFER="212992")
    tests.hand_over()
    tests.port_taken()
    tests.multicast("239.1.2.3", "IPv4")
    tests.multicast("ff05::1:2:3", "IPv6")
    tests.idle()
    if not ordinary:
        tests.perftests("MTU 9000, path MTU 1024, ", 1024, families=("IPv6",))
        tests.faults()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lib", required=True)
    parser.add_argument("--mcast", required=True)
    parser.add_argument("--ordinary", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--debug", action="store_true")
    args = parser.parse_args()

    for program in ("setpriv", "unshare", "nsenter", "ibv_rc_pingpong", "ib_send_lat"):
        if not shutil.which(program):
            skip(f"{program} is not installed")
    if args.ordinary and os.geteuid() == 0 and os.environ.get(hosts.MARK) != "1":
        return become_ordinary(args)
    hosts.enter(skip)
    os.environ["LD_LIBRARY_PATH"] = os.path.abspath(args.lib)
    nets = hosts.Hosts(skip)
    try:
        report = Report(args.only)
        run_all(Tests(args, nets, report), args.ordinary)
    finally:
        nets.close()
    print(f"1..{report.count}")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
