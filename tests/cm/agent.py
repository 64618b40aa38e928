# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A process with a GSI (gsi_agent.c), as a test drives it: commands, answers, and the MADs that come."""

import queue
import signal
import subprocess
import threading
import time
from ipaddress import ip_address

from pairs import Failure

PATIENCE = 20
ENDS = 120  # seconds: on a busy machine a sanitizer looks for leaks for long, and who is killed counts for nothing (scripts/reached)
KEPT = 2.5  # longer than a carrier keeps what it cannot bring: on a busy machine contact can take longer
QUIET = 0.3  # for so long nothing may come
TCP = 0x106


def gid(address):
    """As the agent prints it."""
    address = ip_address(address)
    return f"::ffff:{address}" if address.version == 4 else str(address)


class Mad:
    """A MAD that has come."""

    def __init__(self, words):
        self.type, self.way, self.source, self.to = words[0], words[3], words[5], words[6]
        self.local, self.remote, self.src_qpn = int(words[1], 16), int(words[2], 16), int(words[4], 16)
        self.ifindex = int(words[7])

    def __str__(self):
        return f"{self.type} {self.local:x}->{self.remote:x} by {self.way} from {self.source}"


class Agent:
    repeated = set()  # types and ids of all that was sent again, which may come twice

    def __init__(self, program, env, launch=()):
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *launch, program], env=env, text=True,
                                        bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        self.answers, self.mads = queue.Queue(), queue.Queue()
        self.number = self.base = 0
        self.sent = None  # the words of the last send
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            words = line.split()
            if words and words[0] == "mad":
                self.mads.put(Mad(words[1:]))
            else:
                self.answers.put(line.strip())
        self.answers.put("ended")

    def answer(self, patience=PATIENCE):
        try:
            return self.answers.get(timeout=patience)
        except queue.Empty:
            raise Failure(f"process {self.pid} does not answer") from None

    def ask(self, *words, patience=PATIENCE):
        self.tell(*words)
        return self.answer(patience)

    def tell(self, *words):
        self.process.stdin.write(" ".join(str(word) for word in words) + "\n")

    def must(self, *words, patience=PATIENCE):
        answer = self.ask(*words, patience=patience)
        if answer.split()[0] in ("error", "ended", "what?"):
            raise Failure(f"{' '.join(str(word) for word in words)}: {answer}")
        return answer

    def open(self):
        self.number, self.base = (int(word, 16) for word in self.must("open").split()[1:])
        return self

    def listen(self, port, address="0.0.0.0", space=TCP, *more):
        """Returns the port."""
        _, port, handle = self.must("bind", f"{space:x}", port, address, *more).split()
        self.must("listen", handle)
        return int(port)

    def id(self, number=5):
        return self.base + number

    def send(self, source, to, kind, local, remote=0, port=None, space=TCP):
        service = [] if port is None else [f"{space << 16 | port:x}", to]
        self.sent = ("send", source, to, kind, f"{local:x}", f"{remote:x}", *service)
        self.must(*self.sent)

    def get(self, kind, local=None, way=None, sender=None):
        """The next MAD, which must be this one. Its sender sends it again while it does not come, as the connection manager does."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                mad = self.mads.get(timeout=KEPT)
            except queue.Empty:
                if time.monotonic() > until:
                    raise Failure(f"{kind} did not come to process {self.pid}; {self.ask('reasons')}") from None
                if sender:
                    sender.must(*sender.sent)
                    self.repeated.add((kind, local))
                continue
            if mad.type == kind and local in (None, mad.local) and way in (None, mad.way):
                return mad
            if (mad.type, mad.local) not in self.repeated:
                raise Failure(f"process {self.pid}: {mad}, wanted {kind} {local} by {way}")

    def none(self, patience=QUIET):
        until = time.monotonic() + patience
        while True:
            try:
                mad = self.mads.get(timeout=max(0, until - time.monotonic()))
            except queue.Empty:
                return
            if (mad.type, mad.local) not in self.repeated:
                raise Failure(f"process {self.pid} got {mad}")

    def reasons(self):
        return {name: int(times) for name, times in (word.split("=") for word in self.must("reasons").split()[1:])}

    def reason(self, *names):
        """Waits until something was dropped for one of these reasons. Returns the counts of all."""
        until = time.monotonic() + PATIENCE
        while True:
            found = self.reasons()
            if any(found.get(name) for name in names):
                return found
            if time.monotonic() > until:
                raise Failure(f"nothing was dropped as {' or '.join(names)}: {found}")
            time.sleep(0.01)

    def count(self):
        return int(self.must("count").split()[1])

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)
        self.stopped()

    def stopped(self):
        """Waits until it stands still."""
        until = time.monotonic() + PATIENCE
        while open(f"/proc/{self.pid}/stat", encoding="ascii").read().rsplit(")", 1)[1].split()[0] != "T":
            if time.monotonic() > until:
                raise Failure(f"process {self.pid} does not stand still")
            time.sleep(0.001)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def let_go(self):
        """It is to end by itself, so that sanitizers have their say."""
        if self.process.poll() is None:
            self.go_on()
            self.process.stdin.close()

    def end(self):
        try:
            status = self.process.wait(timeout=ENDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure(f"process {self.pid} does not end") from None
        if status not in (0, -signal.SIGKILL):
            raise Failure(f"process {self.pid} ended with {status}")

    def quit(self):
        self.tell("quit")
        status = self.process.wait(timeout=ENDS)
        if status:
            raise Failure(f"process {self.pid} ended with {status}")
