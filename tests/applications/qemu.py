# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""QEMU with the guest of guest.py, and its migration by RDMA from one process to another."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import guest
from pairs import Failure
from shares import Skip

PROGRAM = "qemu-system-x86_64"
PATIENCE = 60
MEBIBYTE = 1 << 20


class Machine:
    """A QEMU process, told what to do by QMP."""

    number = 0

    def __init__(self, applications, host, memory, env=None, paused=False):
        Machine.number += 1
        self.place, self.memory = applications.place, memory
        # A socket's path has room for a hundred characters, and the guest's dump lies where its user may write.
        self.folder = os.path.join(self.place.runtime, f"qemu{Machine.number}")
        os.mkdir(self.folder)
        os.chown(self.folder, self.place.uid, -1)
        rom = self.place.file(f"firmware{memory}", guest.firmware(memory), 0o644)
        path = os.path.join(self.folder, "qmp")
        argv = [PROGRAM, "-machine", "pc,accel=tcg", "-m", f"{memory // MEBIBYTE}M", "-bios", rom, "-nodefaults", "-no-user-config",
                "-display", "none", "-vga", "none", "-qmp", f"unix:{path},server=on,wait=off"]
        self.log = open(os.path.join(self.folder, "log"), "w+b")
        self.process = applications.start(argv + (["-incoming", "defer"] if paused else []), host=host, env=env, stdout=self.log)
        self.stream = None
        try:
            self.stream = self.connected(path)
            self.answer()  # the greeting
            self.ask("qmp_capabilities")
        except BaseException:
            self.close()
            raise

    def said(self):
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")[-3000:]

    def connected(self, path):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                s = socket.socket(socket.AF_UNIX)
                s.settimeout(PATIENCE)
                s.connect(path)
                return s.makefile("rw", encoding="utf-8")
            except OSError:
                time.sleep(0.01)
        raise Failure(f"{PROGRAM} did not start:\n{self.said()}")

    def answer(self):
        while True:
            line = self.stream.readline()
            if not line:
                raise Failure(f"{PROGRAM} ended:\n{self.said()}")
            message = json.loads(line)
            if "event" not in message:
                return message

    def ask(self, command, **arguments):
        self.stream.write(json.dumps({"execute": command, "arguments": {key.replace("_", "-"): value for key, value in arguments.items()}}))
        self.stream.flush()
        message = self.answer()
        if "error" in message:
            raise Failure(f"{command}: {message['error']}\n{self.said()}")
        return message.get("return")

    def capability(self, name, state=True):
        self.ask("migrate-set-capabilities", capabilities=[{"capability": name, "state": state}])

    def dump(self):
        """The guest's memory."""
        path = os.path.join(self.folder, "dump")
        self.ask("pmemsave", val=0, size=self.memory, filename=path)
        with open(path, "rb") as handle:
            return handle.read()

    def counter(self):
        """How many rounds the guest has made, while it runs."""
        text = self.ask("human-monitor-command", command_line=f"xp /1wx {guest.COUNTER_AT}")
        return int(re.search(r": (0x[0-9a-f]+)", text).group(1), 16)

    def wait_counter(self, above):
        self.wait(lambda: self.counter() > above, f"the guest counts no further than {above}")

    def wait(self, true, text):
        deadline = time.monotonic() + PATIENCE
        while not true():
            if time.monotonic() > deadline:
                raise Failure(f"{text}\n{self.said()}")
            time.sleep(0.02)

    def migrated(self):
        """Waits for the end of the migration that this process sends; returns its status."""
        state = {}

        def ended():
            state.update(self.ask("query-migrate"))
            return state.get("status") in ("completed", "failed", "cancelled")

        try:
            self.wait(ended, "the migration does not end")
        except Failure as fault:
            raise Failure(f"{fault}\n{state}") from None
        return state

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def close(self):
        self.kill()
        if self.stream:
            self.stream.close()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def has_rdma():
    """Whether this build of QEMU was made with migration by RDMA."""
    linked = subprocess.run(["ldd", shutil.which(PROGRAM)], capture_output=True, text=True, check=False).stdout
    return "librdmacm" in linked


class Migration:
    def __init__(self, applications):
        self.applications = applications

    def pair(self, two, memory, pinned, address, env):
        """A source that has counted, and a target that listens; returns both and the address."""
        if not shutil.which(PROGRAM):
            raise Skip(f"{PROGRAM} is not installed")
        if not has_rdma():
            raise Skip(f"this {PROGRAM} has no migration by RDMA")
        source = Machine(self.applications, int(two), memory, env)
        try:
            target = Machine(self.applications, 0, memory, env, paused=True)
        except BaseException:
            source.close()
            raise
        try:
            for machine in (source, target):
                machine.capability("rdma-pin-all", pinned)
            uri = f"rdma:{address}:{20000 + os.getpid() % 10000}"
            target.ask("migrate-incoming", uri=uri)
            source.wait_counter(2)
        except BaseException:
            source.close()
            target.close()
            raise
        return source, target, uri

    def move(self, two, memory, pinned, address, env=None, downtime=300):
        """downtime: for how many milliseconds the guest may be stopped; QEMU sends its pages again until it takes no longer."""
        source, target, uri = self.pair(two, memory, pinned, address, env)
        try:
            source.ask("migrate-set-parameters", downtime_limit=downtime)
            target.ask("stop")  # it is to stay as it has come
            source.ask("migrate", uri=uri)
            state = source.migrated()
            if state["status"] != "completed":
                raise Failure(f"migration {state}\nsource: {source.said()}\ntarget: {target.said()}")
            target.wait(lambda: target.ask("query-status")["status"] == "paused", "the target does not get its guest")
            sent, came = source.dump(), target.dump()
            wrong = guest.fault(sent) or guest.fault(came)
            if wrong or sent != came:
                first = next((at for at in range(0, memory, 4096) if sent[at:at + 4096] != came[at:at + 4096]), None)
                raise Failure(f"the guest's memory: {wrong}; first page that differs: {first}")
            number = guest.counter(came)
            target.ask("cont")
            target.wait_counter(number + 2)
            target.ask("stop")
            wrong = guest.fault(target.dump())
            if wrong:
                raise Failure(f"the guest's memory after it went on: {wrong}")
            ram = state["ram"]
            print(f"# {ram['transferred']} bytes in {state['total-time']} ms, guest stopped for {state['downtime']} ms, "
                  f"{ram['dirty-sync-count']} rounds")
        finally:
            source.close()
            target.close()

    def target_dies(self, two, memory, address):
        """The guest goes on at the source."""
        source, target, uri = self.pair(two, memory, False, address, None)
        try:
            source.ask("migrate-set-parameters", max_bandwidth=MEBIBYTE)  # it would be over too soon
            source.ask("migrate", uri=uri)
            source.wait(lambda: source.ask("query-migrate").get("status") == "active", "the migration does not begin")
            target.kill()
            state = source.migrated()
            if state["status"] != "failed":
                raise Failure(f"migration to a process that was killed: {state}")
            source.wait_counter(source.counter() + 2)
            source.ask("stop")
            wrong = guest.fault(source.dump())
            if wrong:
                raise Failure(f"the guest's memory: {wrong}")
        finally:
            source.close()
            target.close()

    def cases(self, where, two, address):
        name = f"{where}: QEMU migrates a guest"
        for memory, pinned in ((64, False), (128, True)):
            self.applications.report.case(f"{name}, {memory} MiB{', rdma-pin-all' if pinned else ''}", lambda memory=memory, pinned=pinned:
                                          self.move(two, memory * MEBIBYTE, pinned, address))
        if two:
            # A last packet that is lost takes the timeout that the connection manager gives queue pairs, 2 s.
            lossy = {"VERBATIM_FAULT": "drop=0.1%,reorder=1%,seed=7"}
            self.applications.report.case(f"{name}, packets are lost", lambda: self.move(two, 64 * MEBIBYTE, False, address, lossy, 20000))
        self.applications.report.case(f"{name}, the target is killed meanwhile", lambda: self.target_dies(two, 64 * MEBIBYTE, address))
