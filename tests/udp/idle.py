# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a connected server costs while its client says nothing: perftest's client is stopped once data has flowed."""

import os
import signal
import time

import hosts
from pairs import Failure, free_port, tail

FLOWED = 1 << 20  # bytes after which the two are taken for connected
TICK = os.sysconf("SC_CLK_TCK")


def processor_seconds(pid):
    """User and system time of all threads."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as handle:
        fields = handle.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def received_bytes(pid):
    with open(f"/proc/{pid}/net/dev", encoding="ascii") as handle:
        for line in handle:
            name, _, rest = line.partition(":")
            if name.strip() == hosts.INTERFACE:
                return int(rest.split()[0])
    return 0


def wait_flow(server, log, deadline):
    begun = received_bytes(server.pid)
    while received_bytes(server.pid) - begun < FLOWED:
        if server.poll() is not None or time.monotonic() > deadline:
            raise Failure(f"no data came:\n{tail(log)}")
        time.sleep(0.01)


def idle_server(runner, argv, seconds):
    """Processor time of the server of `argv` (a perftest program) over so many seconds of its client's silence."""
    port = free_port()
    argv = argv + ["-n", "1000000", "-p", str(port)]  # far more than it gets to
    logs = [os.path.join(runner.dir, side) for side in ("server.out", "client.out")]
    deadline = time.monotonic() + runner.timeout
    running = [runner.start(runner.pins[0] + argv, logs[0])]
    try:
        if not runner.wait_listening(running[0], port, deadline):
            raise Failure(f"the server never listened:\n{tail(logs[0])}")
        running.append(runner.start(runner.pins[1] + argv + [hosts.IPV4[0]], logs[1]))
        wait_flow(running[0], logs[0], deadline)
        running[1].send_signal(signal.SIGSTOP)
        time.sleep(0.5)  # what was on its way, and the progress thread's last look
        before = processor_seconds(running[0].pid)
        time.sleep(seconds)
        used = processor_seconds(running[0].pid) - before
        if running[0].poll() is not None:
            raise Failure(f"the server ended:\n{tail(logs[0])}")
        return used
    finally:
        for process in running:
            runner.end(process)
