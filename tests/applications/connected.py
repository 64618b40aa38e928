# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Libraries that connect by the connection manager: UCX by socket addresses (its io_demo), and librpma."""

import os
import re
import shutil
import signal
import subprocess
import time

from pairs import Failure
from shares import Skip

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 30
# UCX knows connection managers by TCP and by RDMA. Its log tells which one made each endpoint.
BY_RDMA = {"UCX_SOCKADDR_TLS_PRIORITY": "rdmacm", "UCX_LOG_LEVEL": "debug", "UCX_FENCE_MODE": "weak"}
NAMED = {"UCX_TLS": "rc_verbs,ud_verbs,self"}
MADE = r"rdmacm_cm_ep.c:\d+ +UCX +DEBUG \[cep .* (client|server).*created an endpoint on rdmacm"
CLIENTS = 3


class Connected:
    def __init__(self, applications):
        self.applications = applications
        self.ports = iter(range(20000 + os.getpid() % 9000, 30000))

    def logged(self, name, argv, host, env=None):
        log = open(os.path.join(self.applications.place.dir, name), "w+b")
        return self.applications.start(argv, host=host, env=env, stdout=log), log

    def text(self, log):
        log.seek(0)
        return log.read().decode("utf-8", "replace")

    def ended(self, process, log, what):
        """What it printed; a failure when it does not end, or not with success."""
        try:
            code = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure(f"{what}: still running after {PATIENCE} s\n{self.text(log)[-3000:]}") from None
        if code:
            raise Failure(f"{what}: exit status {code}\n{self.text(log)[-3000:]}")
        return self.text(log)

    def with_server(self, server, clients, says, two, env=None):
        """The server, and when its log says that it listens the clients, all at once; returns the outputs, and the server's log."""
        started = [self.logged("server.log", server, 0, env)]
        try:
            deadline = time.monotonic() + PATIENCE
            while not re.search(says, self.text(started[0][1])):
                if started[0][0].poll() is not None or time.monotonic() > deadline:
                    raise Failure(f"{server[0]} does not listen:\n{self.text(started[0][1])[-3000:]}")
                time.sleep(0.02)
            started += [self.logged(f"client{number}.log", argv, int(two), env) for number, argv in enumerate(clients)]
            outputs = [self.ended(process, log, clients[0][0]) for process, log in started[1:]]
            yield outputs, started[0]
        finally:
            for process, log in started:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                log.close()

    def io_demo(self, two, address, options, env):
        if not shutil.which("io_demo"):
            raise Skip("io_demo is not installed (package ucx-utils)")
        line = ["io_demo", "-q", "-d", "16:65536", "-p", str(next(self.ports)), *options]
        for outputs, server in self.with_server(line, [[*line, "-i", "300", address]] * CLIENTS,
                                                r"started listener|[Ll]istening|Waiting for connections", two, {**BY_RDMA, **env}):
            for number, text in enumerate([*outputs, self.text(server[1])]):
                ends = set(re.findall(MADE, text))
                if ends != {"client" if number < CLIENTS else "server"}:
                    raise Failure(f"endpoints of the connection manager: {ends or 'none'}\n{text[-3000:]}")
                if re.search(r"corrupt|mismatch|\b(ERROR|FATAL)\b|Assertion", text):
                    raise Failure(f"io_demo complains:\n{text[-3000:]}")
            for text in outputs:
                if "Client exit with status 'OK'" not in text:
                    raise Failure(f"io_demo: its client did not do it all\n{text[-3000:]}")

    def rpma_check(self):
        compiler, out = shutil.which("cc") or shutil.which("gcc"), os.path.join(self.applications.place.dir, "rpma_check")
        if not os.path.exists("/usr/include/librpma.h") or not compiler:
            raise Skip("librpma-dev or a compiler is not installed")
        if not os.path.exists(out):
            subprocess.run([compiler, "-O1", "-o", out, os.path.join(HERE, "rpma_check.c"), "-lrpma", "-libverbs"], check=True)
        return out

    def rpma(self, two, address, env):
        program, port = self.rpma_check(), str(next(self.ports))
        client = [program, "call", address, port]
        for outputs, server in self.with_server([program, "serve", address, port], [client], rf"listening on TCP port {port}\b", two,
                                                {"VERBATIM_LOG": "info", **env}):
            for text in (outputs[0], self.ended(*server, "the server")):
                if "rpma_check: right" not in text:
                    raise Failure(text)

    def cases(self, where, two, address):
        case = self.applications.report.case
        for name, options, env in (("rc_verbs", [], NAMED), ("rc_verbs, active messages", ["-A"], NAMED),
                                   ("defaults, reads and writes", ["-o", "read,write"], {})):
            case(f"{where}: UCX io_demo, by rdmacm, {name}", lambda options=options, env=env: self.io_demo(two, address, options, env))
        case(f"{where}: librpma", lambda: self.rpma(two, address, {}))
        if two:
            # Of 12,000 packets. One in 25 is the last one before a pause: if it is lost, the peer's timer ends the pause,
            # after 4.2 s.
            lossy = {"VERBATIM_FAULT": "drop=0.1%,reorder=1%,dup=1%,seed=5"}
            case(f"{where}: librpma, packets are lost", lambda: self.rpma(two, address, lossy))
