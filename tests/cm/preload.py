#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: preload.py --lib DIR [--only REGEX] [--debug]
Unmodified programs of sockets under librspreload.so: servers and clients on one host and on two (network namespaces). That their
connections are rsockets, and not the TCP that they fall back to, is told by the log of the connection manager. Prints one TAP
line a case; exits 1 when one failed, 77 (reason on the last line of standard error) when nothing could be run."""

import argparse
import filecmp
import os
import shutil
import signal
import sys
import time

SKIP = 77
HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(TESTS, "udp"), os.path.join(TESTS, "apps")]

import hosts  # noqa: E402
import shares  # noqa: E402
from cm_pairs import CmRunner, a_port  # noqa: E402
from pairs import Failure, listening  # noqa: E402

FILE_BYTES = 3_000_017
# The workers stay who they are: processes of two users do not share the port between hosts. Nginx empties its environment but for
# what it is told to keep.
NGINX = """
user root; daemon off; {processes}; pid {dir}/pid; error_log {dir}/error; worker_rlimit_core 0; env VERBATIM_TRUST;
events {{ worker_connections 64; }}
http {{ access_log off; sendfile on; client_body_temp_path {dir}; proxy_temp_path {dir}; fastcgi_temp_path {dir};
  uwsgi_temp_path {dir}; scgi_temp_path {dir}; server {{ listen {host}:{port}; root {dir}; }} }}
"""


def skip(reason):
    print(reason, file=sys.stderr)
    sys.exit(SKIP)


SEMAPHORE = "/dev/shm/sem.rsocket_fork"  # rdma-core's library takes turns by it, and leaves it


# A server with workers, which would outlive it when it is killed, is the first process of a namespace of its own. Ports are shared
# with processes outside only where these are told to trust the user.
ALONE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]


class TcpFirst(CmRunner):
    """For fork mode: the server listens by TCP, and by the connection manager for each connection once."""

    by_tcp = False

    def wait_listening(self, server, port, deadline):
        return self.wait_tcp(server, port, deadline) if self.by_tcp else super().wait_listening(server, port, deadline)

    def wait_tcp(self, server, port, deadline):
        while time.monotonic() < deadline and server.poll() is None:
            if listening(server.pid, port):
                return True
            time.sleep(0.01)
        return False


class Preload:
    def __init__(self, args, nets):
        self.args, self.nets = args, nets

    def runner(self, where, fork=False, env=None):
        launch = self.nets.launch
        pins = [launch[0], launch[0] if where == "one host" else launch[1]]
        runner = TcpFirst(self.args.lib, timeout=60, debug=self.args.debug, pins=pins, env=env)
        runner.by_tcp = fork
        return runner

    def under(self, runner, line, fork=False):
        """The command, preloaded."""
        library = os.path.join(runner.env["LD_LIBRARY_PATH"], "rsocket", "librspreload.so")
        mode = ["RDMAV_FORK_SAFE=1"] if fork else []
        return ["env", f"LD_PRELOAD={library}", *mode, *line.split()]

    def serve(self, where, server, clients, fork=False, ends=False):
        """Returns the outputs; a place {dir} in the commands is the runner's directory."""
        with self.runner(where, fork) as runner:
            return self.serve_in(runner, server, clients, fork, ends)

    def serve_in(self, runner, server, clients, fork=False, ends=False):
        port = a_port()
        words = {"host": hosts.IPV4[0], "port": port, "dir": runner.dir}
        server = self.under(runner, server.format(**words), fork)
        clients = [self.under(runner, client.format(**words), fork) for client in clients]
        outputs = runner.sides(server, clients, port) if ends else runner.served(server, clients, port)
        for output in outputs:
            if "claimed queue pair numbers" not in output:
                raise Failure(f"{' '.join(server)}: no connection of it was an rsocket\n{output}")
        return outputs

    def iperf3(self, where):
        for options in ("", "-R", "-P 3"):
            output = self.serve(where, "iperf3 -s -1 -B {host} -p {port}", [f"iperf3 -c {{host}} -p {{port}} -n 20M {options}"],
                                ends=True)
            if "iperf Done" not in output[1]:
                raise Failure(output[1])

    def redis(self, where):
        outputs = self.serve(where, "redis-server --bind {host} --port {port} --save '' --protected-mode no --dir {dir}",
                             ["redis-benchmark -h {host} -p {port} -n 500 -c 5 -q -t ping,set,get,lpush",
                              "redis-cli -h {host} -p {port} set key a-value", "redis-cli -h {host} -p {port} get key"])
        if "a-value" not in outputs[3]:
            raise Failure(outputs[3])

    def nginx(self, where, fork=False):
        if os.path.exists(SEMAPHORE):
            os.unlink(SEMAPHORE)
        with self.runner(where, fork, {"VERBATIM_TRUST": "uid"} if fork else None) as runner:
            source, copies = os.path.join(runner.dir, "file"), [os.path.join(runner.dir, f"copy{n}") for n in range(3)]
            with open(source, "wb") as handle:
                handle.write(os.urandom(FILE_BYTES))
            os.chmod(runner.dir, 0o777)
            processes = "worker_processes 2" if fork else "master_process off"
            port = a_port()
            config = os.path.join(runner.dir, "nginx.conf")
            with open(config, "w", encoding="ascii") as handle:
                handle.write(NGINX.format(processes=processes, dir=runner.dir, host=hosts.IPV4[0], port=port))
            clients = [self.under(runner, f"curl -sS -o {copy} http://{hosts.IPV4[0]}:{port}/file", fork) for copy in copies]
            server = self.under(runner, f"nginx -e {runner.dir}/error -c {config}", fork)
            outputs = runner.served([*ALONE, *server] if fork else server, clients, port)
            for copy in copies:
                if not filecmp.cmp(source, copy, shallow=False):
                    raise Failure(f"nginx: {copy} differs from the file")
            for output in outputs[1:]:
                if "claimed queue pair numbers" not in output:
                    raise Failure(f"curl's connection was no rsocket\n{output}")
            if fork and os.path.exists(SEMAPHORE):
                raise Failure(f"{SEMAPHORE} is left behind")

    def forking_nginx(self, where):
        self.nginx(where, fork=True)

    def rstream(self, where):
        self.serve(where, "rstream -T s -T v -b {host} -p {port} -S all -C 3 -I 1",
                   ["rstream -T s -T v -s {host} -p {port} -S all -C 3 -I 1"], ends=True)

    def rstream_forks(self, where):
        """With -T f the server uses plain sockets, and a process of its own for the connection."""
        line = "rstream -T f -p {port} -S 4096 -C 20 -I 2"
        output = self.serve(where, f"{line} -b {{host}}", [f"{line} -s {{host}}"], fork=True, ends=True)[1]
        if "4k" not in output:
            raise Failure(output)

    def all(self, report):
        for where in ("one host", "two hosts"):
            for program, name, run in (("iperf3", "iperf3", self.iperf3), ("redis-server", "redis-server, redis-benchmark", self.redis),
                                       ("nginx", "nginx, curl", self.nginx),
                                       ("nginx", "nginx, curl, fork mode", self.forking_nginx),
                                       ("rstream", "rstream -T s", self.rstream), ("rstream", "rstream -T f", self.rstream_forks)):
                if shutil.which(program):
                    report.case(f"{where}: {name}", lambda run=run, where=where: run(where))


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that being told to end clears up
    parser = argparse.ArgumentParser()
    parser.add_argument("--lib", required=True, type=os.path.abspath)
    parser.add_argument("--only")
    parser.add_argument("--debug", action="store_true")
    args = parser.parse_args()
    if not any(shutil.which(program) for program in ("iperf3", "redis-server", "nginx", "rstream")):
        skip("none of iperf3, redis-server, nginx, rstream is installed")
    hosts.enter(skip)
    report = shares.Report(args.only)
    nets = hosts.Hosts(skip)
    try:
        Preload(args, nets).all(report)
    finally:
        nets.close()
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
