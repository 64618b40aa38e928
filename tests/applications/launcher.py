# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What ssh is for a real pair of hosts: an MPI launcher calls the agent, which asks this test to start a command on the other host."""

import json
import os
import socket
import subprocess
import threading

AGENT = """#!/bin/sh
# Called by an MPI launcher as: agent HOST COMMAND...
exec /usr/bin/python3 -c '
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(json.dumps(sys.argv[2:]).encode() + b"\\n")
sys.exit(int(s.makefile().readline() or 255))' {socket} "$@"
"""


class Launcher:
    """start(host number, shell command) starts a process. Use as a context manager; `agent` is the path to give to a launcher."""

    def __init__(self, place, start, addresses):
        self.start = start
        self.hosts = {address: number for number, address in enumerate(addresses)}
        path = os.path.join(place.dir, "launcher")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.path = path
        os.chmod(path, 0o666)
        self.listener.listen(8)
        self.agent = place.file("agent", AGENT.format(socket=path))
        self.started = []
        threading.Thread(target=self.serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        os.unlink(self.path)
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()

    def serve(self):
        while True:
            try:
                caller, _ = self.listener.accept()
            except OSError:  # closed: the test is over
                return
            threading.Thread(target=self.call, args=(caller,), daemon=True).start()

    def call(self, caller):
        with caller, caller.makefile("rw") as stream:
            words = json.loads(stream.readline())
            while words and words[0].startswith("-"):  # options of ssh
                words.pop(0)
            process = self.start(self.hosts[words[0]], " ".join(words[1:]))
            self.started.append(process)
            stream.write(f"{process.wait() & 255}\n")
            stream.flush()


def shell(prefix, command, env, log):
    return subprocess.Popen([*prefix, "/bin/sh", "-c", command], env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
