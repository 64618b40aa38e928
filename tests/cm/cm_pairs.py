# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A server and a client that meet by the connection manager. A port of it is no port of a socket: the server's log tells when it
listens, so the server runs with VERBATIM_LOG=info."""

import contextlib
import os
import random
import re
import signal
import subprocess
import time

from pairs import Failure, Runner, describe, tail

LISTENS = re.compile(r"listening on (?:TCP|UDP|IB|IPOIB) port (\d+)")
FIRST_PORT, LAST_PORT = 20000, 30000  # outside of net.ipv4.ip_local_port_range, from which programs get free ones


def a_port():
    """Two cases in one namespace at a time would need luck; each case has a namespace, or runs alone in it."""
    return random.randrange(FIRST_PORT, LAST_PORT)


def cmtime_has_threads():
    """As in Debian 13. It prints another table, its server ends by itself, and both know no IPv6 address."""
    with contextlib.suppress(FileNotFoundError):
        usage = subprocess.run(["cmtime", "-?"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return b"num_threads" in usage.stdout
    return False


class CmRunner(Runner):
    """Runner.sides() for servers that listen by the connection manager. They are known by their log ("log"), or by a port of a
    socket ("tcp", "udp")."""

    def __init__(self, *args, env=None, known_by="log", **kwargs):
        self.known_by = known_by
        super().__init__(*args, env={"VERBATIM_LOG": "info", **(env or {})}, **kwargs)

    def wait_listening(self, server, port, deadline):
        if self.known_by == "tcp":
            return super().wait_listening(server, port, deadline)
        if self.known_by == "udp":
            return self.wait_bound(server, port, deadline)
        log = os.path.join(self.dir, "server.out")
        while time.monotonic() < deadline:
            with open(log, encoding="utf-8", errors="replace") as handle:
                if str(port) in LISTENS.findall(handle.read()):
                    return True
            if server.poll() is not None:
                return False
            time.sleep(0.01)
        return False

    def wait_bound(self, server, port, deadline):
        """Whether a socket of UDP gets the port in time."""
        while time.monotonic() < deadline and server.poll() is None:
            for table in ("udp", "udp6"):
                with contextlib.suppress(OSError), open(f"/proc/{server.pid}/net/{table}", encoding="ascii") as rows:
                    if any(row.split()[1].endswith(f":{port:04X}") for row in list(rows)[1:]):
                        return True
            time.sleep(0.01)
        return False

    def together(self, commands):
        """Programs that do not wait for one another at their start. Returns their outputs."""
        logs = [os.path.join(self.dir, f"{number}.out") for number in range(len(commands))]
        pins = [self.pins[min(number, 1)] for number in range(len(commands))]
        deadline = time.monotonic() + self.timeout
        processes, faults = [], []
        try:
            processes = [self.start(pin + argv, log) for pin, argv, log in zip(pins, commands, logs)]
            faults = self.wait_all(processes, deadline)
        finally:
            for process in processes:
                self.end(process)
        return self.outputs(commands[0], faults, logs)

    def served(self, server, clients, port):
        """As sides(), but the server serves for ever and is told to end after the clients, one after the other."""
        logs = [os.path.join(self.dir, "server.out")]
        deadline = time.monotonic() + self.timeout
        process = self.start(self.pins[0] + server, logs[0])
        faults = []
        try:
            if not self.wait_listening(process, port, deadline):
                faults.append("the server never listened")
            for number, client in enumerate(clients if not faults else []):
                logs.append(os.path.join(self.dir, f"client{number}.out"))
                faults += self.one_client(client, logs[-1], deadline)
            if process.poll() is not None:
                faults.append(f"the server ended: {describe(process.returncode)}")
            else:
                process.send_signal(signal.SIGTERM)
        finally:
            self.end(process)
        return self.outputs(server, faults, logs)

    def one_client(self, argv, log, deadline):
        process = self.start(self.pins[1] + argv, log)
        try:
            return self.wait_all([process], deadline)
        finally:
            self.end(process)

    def outputs(self, argv, faults, logs):
        if faults:
            text = "".join(f"-- {os.path.basename(log)} --\n{tail(log)}" for log in logs if os.path.exists(log))
            raise Failure(f"{' '.join(argv)}: {'; '.join(faults)}\n{text}")
        texts = []
        for log in logs:
            with open(log, encoding="utf-8", errors="replace") as handle:
                texts.append(handle.read())
        return texts
