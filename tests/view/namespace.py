#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: namespace.py --lib DIR --verbatim PROGRAM [--only REGEX]
Promise: `verbatim run --view=namespace` shows the files of the devices to every program, static ones and those of Go too, and changes
nothing else: process, user, groups, rights, terminal, signals, descriptors, the machine's own files. Where the machine forbids it the
reason is said and the program runs with the preloaded view. Prints one TAP line a case; exits 1 when one failed, 77 where no
namespace can be made."""

import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

sys.dont_write_bytecode = True

from compile import READER, compile_c  # noqa: E402
from place import Failure, Skip, free_port, run_cases, skip  # noqa: E402

PATIENCE = 30  # seconds
VIEW = "--view=namespace"
STATE = "/sys/class/infiniband/*/ports/1/state"
RAW = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    char text[64] = "nothing\n";
    long fd = syscall(SYS_openat, AT_FDCWD, argv[argc - 1], O_RDONLY);
    if (fd >= 0 && read((int)fd, text, sizeof(text) - 1) < 0)
        return 1;
    fputs(text, stdout);
    return 0;
}
"""
# What a program can learn about itself; the same lines with and without the namespace.
SELF = r"""
id; echo "uid $UID $EUID"; umask; pwd; tty <&0
grep -E '^(Umask|Uid|Gid|Cap|NoNewPrivs|Seccomp|SigBlk|SigIgn|CoreDumping|THP)' /proc/self/status
ulimit -a; ls /proc/self/fd | wc -l; readlink /proc/self/exe; cat /proc/self/comm; env | grep -v -E '^(_|LD_|VERBATIM|ASAN)' | sort
for f in net pid ipc uts cgroup time; do readlink /proc/self/ns/$f; done
hostname; cat /sys/class/net/lo/address /sys/devices/system/cpu/online; ls /sys/class/net
for f in null zero full random urandom tty ptmx; do stat -L -c '%n %F %a %t:%T' /dev/$f 2>&1; done
echo x > /dev/null; head -c 4 /dev/zero | wc -c; test -d /dev/pts && ls -d /dev/pts /dev/shm; readlink /dev/stdin /dev/fd
true
"""


def differ(what, one, other):
    lines = [f"-{a}\n+{b}" for a, b in zip(one.splitlines(), other.splitlines()) if a != b]
    if one != other:
        raise Failure(f"{what}, inside and outside:\n" + ("\n".join(lines) or f"{one}\n{other}"))


class Namespace:
    def __init__(self, place):
        self.place = place
        self.run = place.verbatim_run

    def shown(self):
        program = compile_c(self.place, "static", READER, "-static")
        raw = compile_c(self.place, "raw", RAW)
        file = self.run(VIEW, "sh", "-c", f"echo {STATE}")[0].split()[0]
        for argv in ([program, file], [raw, file], ["cat", file]):
            out, err = self.run(VIEW, *argv)
            if (out, err) != ("4: ACTIVE\n", ""):
                raise Failure(f"{argv}: {out!r} {err!r}")
        out = self.run(VIEW, "sh", "-c", "ls /sys/class /sys/devices /dev; stat -L -c %F /dev/infiniband/*; readlink -f /sys/class/infiniband/*")[0]
        for line in ("infiniband", "infiniband_verbs", "net", "character special file"):
            if line not in out.splitlines():
                raise Failure(f"no {line}:\n{out}")
        if not re.search(r"^/sys/devices/pci76\w\w:00/[^/]+/infiniband/vb_\w+$", out, re.M):
            raise Failure(out)

    def identity(self):
        script = self.place.file("self", "#!/bin/bash\n" + SELF)
        for cwd in ("/", "/sys/class/net", self.place.dir):
            outside = self.run("--view=none", script, cwd=cwd)[0]
            differ(f"in {cwd}", self.run(VIEW, script, cwd=cwd)[0], outside)

    def sealed(self):
        """An ordinary user's program has no rights over the mounts, and no more rights than before over anything."""
        if not self.place.uid:
            raise Skip("root may change mounts anywhere")
        out = self.run(VIEW, "sh", "-c", "umount /sys/class; umount -l /dev; touch /sys/class/x /dev/x; mount -t tmpfs none /mnt; "
                                         "cat /etc/shadow; chown 0 /tmp; true")[0]
        if out:
            raise Failure(out)
        kept = self.run(VIEW, "sh", "-c", f"umount /sys/class; cat {STATE}; ls /sys/class/x /dev/x", code=None)[0]
        if not kept.startswith("4: ACTIVE\n") or "/x\n" in kept:
            raise Failure(kept)

    def process(self):
        process = self.place.start([self.place.verbatim, "run", VIEW, "sh", "-c", "echo $$; exec sleep 60"])
        pid = int(process.stdout.readline())
        if not self.place.ordinary and pid != process.pid:
            raise Failure(f"process id {pid}, started as {process.pid}")
        os.kill(pid, signal.SIGTERM)
        process.communicate(timeout=30)
        if process.returncode != -signal.SIGTERM:
            raise Failure(f"ended by {process.returncode}, not by the signal")
        self.run(VIEW, "sh", "-c", "exit 7", code=7)
        self.run(VIEW, "/none", code=127)
        self.run(VIEW, "/etc/passwd", code=126)

    def terminal(self):
        """Job control: a shell on a terminal stops a job by the key for it, continues it, and ends it by the other key."""
        main, other = pty.openpty()
        # The shell is the leader of a session that has the terminal.
        shell = self.place.start(["setsid", "--ctty", "--wait", self.place.verbatim, "run", "-q", VIEW, "bash", "--norc", "-im"],
                                 stdin=other, stdout=other, stderr=other, env={"PS1": "ready> ", "TERM": "dumb"})
        os.close(other)
        try:
            self.expect_on(main, "ready> ")
            os.write(main, b"tty; sleep 600\n")
            self.expect_on(main, "/dev/pts/")
            self.await_running(main, "sleep")
            os.write(main, b"\x1a")
            self.expect_on(main, "Stopped")
            os.write(main, b"fg; echo all-$((40 + 2))\n")
            self.expect_on(main, "sleep 600\r\n")
            self.await_running(main, "sleep")
            os.write(main, b"\x03")
            self.expect_on(main, "ready> ")
            os.write(main, b"exit 3\n")
            try:
                if shell.wait(30) != 3:
                    raise Failure(f"exit status {shell.returncode}")
            except subprocess.TimeoutExpired:
                raise Failure("the shell does not end") from None
        finally:
            shell.kill()
            shell.wait()
            os.close(main)

    def await_running(self, terminal, name):
        """Until a program of that name has the terminal, and is not stopped."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with open(f"/proc/{os.tcgetpgrp(terminal)}/stat", encoding="utf-8", errors="replace") as handle:
                    found, _, rest = handle.read().partition("(")[2].rpartition(") ")
            except OSError:  # a group whose leader has ended
                found, rest = "", ""
            if found == name and rest[0] != "T":
                return
            if time.monotonic() > deadline:
                raise Failure(f"{found} has the terminal, not {name}")
            time.sleep(0.01)

    def expect_on(self, terminal, words):
        text, deadline = "", time.monotonic() + PATIENCE
        os.set_blocking(terminal, False)
        while words not in text:
            try:
                text += os.read(terminal, 4096).decode("utf-8", "replace")
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Failure(f"the terminal does not say {words!r}:\n{text}") from None
                time.sleep(0.01)
            except OSError:
                raise Failure(f"the terminal was closed before {words!r}:\n{text}") from None

    def follows(self):
        """The files are those of the view, not a copy."""
        out = self.run(VIEW, "sh", "-c", "cd /sys/class/infiniband/*/ && d=$(pwd -P) && stat -c %i $d/node_guid; stat -c %i "
                                         "$VERBATIM_VIEW$d/node_guid")[0].split()
        if len(out) != 2 or out[0] != out[1]:
            raise Failure(f"inodes {out}")

    def transfer(self):
        """Two programs, each in a view of its own, and one in a view with one by preload."""
        for how in (VIEW, "--view=preload"):
            port = str(free_port())
            argv = ["ibv_rc_pingpong", "-g", "0", "-c", "-n", "200", "-p", port]
            server = self.place.start([self.place.verbatim, "run", VIEW, *argv])
            try:
                deadline = time.monotonic() + 30
                while True:
                    with socket.socket(socket.AF_INET6) as probe:
                        if probe.connect_ex(("::1", 1)) != 0 and self.listens(port):
                            break
                    if time.monotonic() > deadline or server.poll() is not None:
                        raise Failure(f"the server does not listen: {server.communicate(timeout=5)}")
                    time.sleep(0.02)
                self.run(how, *argv, "127.0.0.1")
                out, err = server.communicate(timeout=30)
                if server.returncode != 0:
                    raise Failure(f"{how}: {out}{err}")
            finally:
                server.kill()
                server.wait()

    @staticmethod
    def listens(port):
        for table in ("tcp", "tcp6"):
            with open(f"/proc/net/{table}", encoding="ascii") as rows:
                for row in list(rows)[1:]:
                    fields = row.split()
                    if fields[3] == "0A" and fields[1].endswith(f":{int(port):04X}"):
                        return True
        return False

    def exporter(self):
        """A program of Go."""
        program = shutil.which("prometheus-node-exporter")
        if not program:
            raise Skip("prometheus-node-exporter is not installed")
        port = free_port()
        process = self.place.start([self.place.verbatim, "run", VIEW, program, "--collector.disable-defaults", "--collector.infiniband",
                                    f"--web.listen-address=127.0.0.1:{port}"])
        try:
            text, deadline = "", time.monotonic() + PATIENCE
            while "node_infiniband" not in text:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                        text = answer.read().decode()
                except OSError:
                    time.sleep(0.05)
                if time.monotonic() > deadline:
                    raise Failure(f"no device in what it tells:\n{text[-2000:]}")
            if not re.search(r'^node_scrape_collector_success\{collector="infiniband"\} 1$', text, re.M):
                raise Failure(text)
            if not re.search(r'^node_infiniband_state_id\{device="vb_\w+",port="1"\} 4$', text, re.M):
                raise Failure(text)
        finally:
            process.terminate()
            process.communicate()

    def nested(self):
        """A view in a view, and a run with the preload inside of one."""
        for how in (VIEW, "--view=preload"):
            out, err = self.run(VIEW, self.place.verbatim, "run", how, "sh", "-c", f"id -u; cat {STATE} | head -n 1")
            if (out, err) != (f"{self.place.uid}\n4: ACTIVE\n", ""):
                raise Failure(f"{how}: {out}{err}")

    def left(self):
        """After the last program nothing is there."""
        self.place.wait_gone()
        if os.path.isdir(self.place.runtime) and os.listdir(self.place.runtime):
            raise Failure(f"left: {os.listdir(self.place.runtime)}")
        with open("/proc/self/mountinfo", encoding="ascii", errors="replace") as mounts:
            if re.search(r" /sys/(class|devices) .* - tmpfs verbatim", mounts.read()):
                raise Failure("a mount is left in this namespace")


CASES = [
    ("programs of every kind see the files", Namespace.shown), ("a process is as it was", Namespace.identity),
    ("the mounts are sealed", Namespace.sealed), ("process id, signals, exit status", Namespace.process),
    ("job control", Namespace.terminal), ("the files are the view's own", Namespace.follows), ("two views talk", Namespace.transfer),
    ("node exporter", Namespace.exporter), ("a view in a view", Namespace.nested), ("nothing is left", Namespace.left),
]


def main():
    if subprocess.run(["unshare", "--user", "--mount", "true"], capture_output=True, check=False).returncode != 0:
        skip("user and mount namespaces may not be made here (unshare is refused)")
    return run_cases(__doc__, [], lambda place, _: Namespace(place), CASES, lambda *_: True)


sys.exit(main())
