#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: guest.py DIR
Runs inside the lab's machine: does what the driver asks through files in DIR, which both see.

    ID.job      from the driver, JSON: argv; port if it is a server; cm_port if that is one of the connection manager
    ID.log      what the program prints
    ID.listens  the program listens on its port
    ID.kill     from the driver: end the program
    ID.code     exit status; the job is over
    quit        from the driver: end
Ends by itself when the driver asked for nothing for a while: it may have been killed."""

import json
import os
import re
import subprocess
import sys
import time

IDLE_S = 180
TCP_LISTEN = "0A"


def listening(port):
    for table in ("tcp", "tcp6"):
        with open(f"/proc/net/{table}", encoding="ascii") as rows:
            for row in list(rows)[1:]:
                fields = row.split()
                if fields[3] == TCP_LISTEN and int(fields[1].rsplit(":", 1)[1], 16) == port:
                    return True
    return False


def cm_listening(port):
    """Whether a connection manager's id listens on the port."""
    shown = subprocess.run(["rdma", "resource", "show", "cm_id"], capture_output=True, text=True, check=False).stdout
    return re.search(rf"state LISTEN .*src-addr \S+:{port}\s", shown) is not None


def publish(path, text):
    with open(path + ".new", "w", encoding="utf-8") as handle:
        handle.write(text)
    os.rename(path + ".new", path)


class Job:
    def __init__(self, base):
        self.base = base
        with open(base + ".job", encoding="utf-8") as handle:
            asked = json.load(handle)
        self.port, self.cm_port = asked.get("port"), asked.get("cm_port")
        with open(base + ".log", "wb") as log:
            self.process = subprocess.Popen(asked["argv"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def over(self):
        """Looks after the job once; True when it has ended."""
        code = self.process.poll()
        if code is None and os.path.exists(self.base + ".kill"):
            self.process.kill()
            code = self.process.wait()
        if code is not None:
            publish(self.base + ".code", str(code))
            return True
        if self.port and listening(self.port) or self.cm_port and cm_listening(self.cm_port):
            publish(self.base + ".listens", "")
            self.port = self.cm_port = None
        return False


def main():
    folder = sys.argv[1]
    seen, jobs = set(), []
    asked = time.monotonic()
    publish(os.path.join(folder, "ready"), "")
    while jobs or time.monotonic() - asked < IDLE_S:
        names = os.listdir(folder)
        if "quit" in names:
            break
        for name in names:
            if name.endswith(".job") and name not in seen:
                seen.add(name)
                asked = time.monotonic()
                jobs.append(Job(os.path.join(folder, name[:-len(".job")])))
        running = [job for job in jobs if not job.over()]
        if len(running) < len(jobs):
            asked = time.monotonic()
        jobs = running
        time.sleep(0.03)
    for job in jobs:
        job.process.kill()
        job.process.wait()


main()
