# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The two sides of the wire: the lab's machine, a Linux kernel with rdma_rxe, and this one, in a network namespace.

Everything started here is ended by its pid, and the namespace removed, whatever happens to the driver in between."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

from cm_pairs import LISTENS
from pairs import Failure, listening, tail

HERE = os.path.dirname(os.path.abspath(__file__))
GUEST_ADDRESS = "10.99.0.2"
OUR_ADDRESS = "10.99.0.1"
OUR_DEVICE = "vb_rxetap0"  # the lab's name for the interface
GUEST_DEVICE = "rxe0"
BOOT_S = 240
LIFE_S = 7200  # of the machine, should this program be killed and the guest not notice


ORDINARY = ["--reuid=65532", "--regid=65532", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all",
            "--no-new-privs"]


class NoLab(Exception):
    """The lab cannot be started; the text says why."""


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as handle:
        return handle.read()


class GuestProgram:
    """A program in the guest, with the interface of OurProgram."""

    side = "kernel"

    def __init__(self, lab, argv, port=None, cm_port=None):
        self.argv = argv
        self.base = os.path.join(lab.out, f"{lab.next_id()}")
        self.log = self.base + ".log"
        with open(self.base + ".new", "w", encoding="utf-8") as handle:
            json.dump({"argv": argv, "port": port, "cm_port": cm_port}, handle)
        os.rename(self.base + ".new", self.base + ".job")

    def poll(self):
        try:
            return int(text_of(self.base + ".code"))
        except OSError:
            return None

    def listening(self):
        return os.path.exists(self.base + ".listens")

    def end(self):
        if self.poll() is None:
            with open(self.base + ".kill", "w", encoding="utf-8"):
                pass
            deadline = time.monotonic() + 20
            while self.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)


class OurProgram:
    """A program on our library, in the namespace."""

    side = "verbatim"

    def __init__(self, lab, argv, port=None, cm_port=None):
        self.argv = argv
        self.port, self.cm_port = port, cm_port
        env = lab.env if cm_port is None else {"VERBATIM_LOG": "info", **lab.env}  # the log tells when it listens
        self.log = os.path.join(lab.dir, f"ours-{lab.next_id()}.log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{lab.namespace}", "setpriv", "--pdeathsig", "KILL", *lab.user, *argv],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd=lab.dir)

    def poll(self):
        return self.process.poll()

    def listening(self):
        if self.cm_port is not None:
            return str(self.cm_port) in LISTENS.findall(text_of(self.log))
        return listening(self.process.pid, self.port)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Lab:
    """Use as a context manager: boots the machine, and leaves nothing behind. `folder`: where rxe-vm lies."""

    def __init__(self, folder, libdir, ordinary=False, env=None):
        self.folder = folder
        self.user = ORDINARY if ordinary else []
        self.namespace = f"vbinterop{os.getpid()}"
        self.dir = tempfile.mkdtemp(prefix="verbatim-interop-")
        os.chmod(self.dir, 0o755)
        self.out = os.path.join(self.dir, "out")
        os.mkdir(self.out)
        self.machine = None
        self.count = 0
        self.port = 18500
        self.env = {key: value for key, value in os.environ.items() if key not in ("LD_LIBRARY_PATH", "LD_PRELOAD")}
        self.env["LD_LIBRARY_PATH"] = libdir
        self.env.update(env or {})

    def next_id(self):
        self.count += 1
        return self.count

    def next_port(self):
        """Each run has its own: a connection of the last one may linger."""
        self.port += 1
        return self.port

    def __enter__(self):
        try:
            self.boot()
        except BaseException:
            self.__exit__()
            raise
        return self

    def boot(self):
        command = f"exec bash {HERE}/guest.sh /out"
        argv = [os.path.join(self.folder, "rxe-vm"), "--net", "--netns", self.namespace, "--mtu", "4500",
                "--out", self.out, "--timeout", str(LIFE_S), "--", command]
        log = os.path.join(self.dir, "machine.log")
        with open(log, "wb") as out:
            self.machine = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                            start_new_session=True)
        deadline = time.monotonic() + BOOT_S
        while not os.path.exists(os.path.join(self.out, "ready")):
            if self.machine.poll() is not None:
                raise NoLab(f"the lab's machine ended with {self.machine.returncode}:\n{tail(log)}")
            if time.monotonic() > deadline:
                raise NoLab(f"the lab's machine was not ready after {BOOT_S} s:\n{tail(log)}")
            time.sleep(0.1)

    def __exit__(self, *_):
        if self.machine:
            with open(os.path.join(self.out, "quit"), "w", encoding="utf-8"):
                pass
            try:
                self.machine.wait(40)
            except subprocess.TimeoutExpired:
                os.killpg(self.machine.pid, signal.SIGTERM)  # a session that was made for it alone
                try:
                    self.machine.wait(10)
                except subprocess.TimeoutExpired:
                    os.killpg(self.machine.pid, signal.SIGKILL)
                    self.machine.wait()
        if os.path.exists(f"/run/netns/{self.namespace}"):
            subprocess.run(["ip", "netns", "del", self.namespace], check=False)
        shutil.rmtree(self.dir, ignore_errors=True)

    def run(self, side, argv, timeout=60):
        """One program to its end; its output."""
        program = side(self, argv)
        deadline = time.monotonic() + timeout
        try:
            while program.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)
        finally:
            program.end()
        if program.poll() != 0:
            raise Failure(f"{program.side}: {' '.join(argv)}: {program.poll()}\n{tail(program.log)}")
        return text_of(program.log)

    def pair(self, server, client, port, timeout):
        """server, client: (class, argv). Both must end with 0 in time; returns both outputs."""
        programs, faults = [], []
        deadline = time.monotonic() + timeout
        try:
            programs.append(server[0](self, server[1], port))
            faults = self.wait_listening(programs[0], deadline)
            if not faults:
                programs.append(client[0](self, client[1]))
            faults += self.wait_all(programs, deadline)
        finally:
            for program in programs:
                program.end()
        return self.outputs(programs, faults)

    @staticmethod
    def outputs(programs, faults):
        """What the programs printed, if there are no faults."""
        if faults:
            raise Failure("; ".join(faults) + "\n" + "".join(
                f"-- {program.side}: {' '.join(program.argv)}\n{tail(program.log, 40)}" for program in programs))
        return [text_of(program.log) for program in programs]

    @staticmethod
    def wait_listening(server, deadline):
        """Returns the faults."""
        while not server.listening():
            if server.poll() is not None or time.monotonic() > deadline:
                return ["the server never listened"]
            time.sleep(0.01)
        return []

    @staticmethod
    def wait_all(programs, deadline):
        running, faults = list(programs), []
        while running:
            for program in list(running):
                code = program.poll()
                if code is None:
                    continue
                running.remove(program)
                if code != 0:
                    faults.append(f"the {program.side} side ended with {code}")
                    deadline = min(deadline, time.monotonic() + 5)
            if running and time.monotonic() > deadline:
                return faults + [f"the {program.side} side did not end" for program in running]
            time.sleep(0.02)
        return faults
