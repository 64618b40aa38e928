# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs an unmodified program, or a server and a client of it, on the library: as whom, in which order, until when.

Every process started here is waited for; what does not end in time is killed by its pid. Should the driver itself be
killed, the kernel ends its children (PR_SET_PDEATHSIG, through setpriv).
"""

import contextlib
import fcntl
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ORDINARY = 65532
LEAVING_SECONDS = 20  # for programs that are ending
TCP_LISTEN = "0A"


class Failure(Exception):
    """A program did not do what it should; the text says what, with the end of its output."""


def free_port():
    """A TCP port that nobody listens on now. The kernel hands them out in turn, so two callers get two ports."""
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
        probe.bind(("::", 0))
        return probe.getsockname()[1]


def listening(pid, port):
    """Whether something listens on the port in the network namespace of the process."""
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{table}", encoding="ascii") as rows:
                for row in list(rows)[1:]:
                    fields = row.split()
                    if fields[3] == TCP_LISTEN and int(fields[1].rsplit(":", 1)[1], 16) == port:
                        return True
        except OSError:
            pass
    return False


def must_be_silent(argv, outputs):
    """An application that succeeded is told of no failure (VERBATIM_REPORT). A test program, which is started by its path, may
    make requests fail on purpose."""
    if os.sep in argv[0]:
        return
    told = [line for output in outputs for line in output.splitlines() if re.match(r"verbatim\[\d+\]: ", line)]
    if told:
        raise Failure("\n".join([f"{' '.join(argv)}: it worked, and failures are reported:", *told]))


def tail(path, lines=60):
    with open(path, encoding="utf-8", errors="replace") as handle:
        return "".join(handle.readlines()[-lines:])


QUICK_CLOCK = "VB_TEST_QUICK_CLOCK"  # the path of quick_clock.c's library, if perftest's programs are to have it
PERFTEST = [f"ib_{verb}_{kind}" for verb in ("send", "write", "read", "atomic") for kind in ("lat", "bw")]
XRC_FILES = tuple(f"/tmp/xrc_domain{name}" for name in ("", "_client", "_server"))


def xrc_files_remove():
    for name in XRC_FILES:
        with contextlib.suppress(OSError):
            os.unlink(name)


@contextlib.contextmanager
def xrc_files(argv):
    """The programs name their XRC domains by files in /tmp that they make and leave behind, and that belong to whoever came
    first. So a test removes them, before and after; while it runs no other test may: processes that open the file before and
    after that open two domains. The lock is one of the directory, which leaves nothing behind."""
    if "XRC" not in argv and not any("xsrq" in word for word in argv):
        yield
        return
    folder = os.open("/tmp", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        xrc_files_remove()
        yield
    finally:
        xrc_files_remove()
        os.close(folder)


def views_below(folder):
    """The views of `verbatim run` in runtime directories below the folder. One goes soon after its last program; its keeper must
    not find its folder gone before, which it would make again."""
    found = []
    for _, folders, _ in os.walk(folder):
        found += [name for name in folders if re.fullmatch(r"view-\d+|\.gone-\d+", name)]
        folders[:] = [name for name in folders if name not in found]
    return found


class Runner:
    """Starts programs on the library in `libdir`; with ordinary=True as uid and gid 65532 without groups and
    capabilities, which needs root; pins: what to put before a pair's two commands. Use as a context manager: it owns a directory for output files."""

    def __init__(self, libdir, ordinary=False, timeout=90, env=None, debug=False, pins=((), ())):
        self.timeout = timeout
        self.debug = debug
        self.ordinary = ordinary
        self.pins = [list(pin) for pin in pins]
        self.dir = tempfile.mkdtemp(prefix="verbatim-")
        os.chmod(self.dir, 0o755)
        self.prefix = ["setpriv", "--pdeathsig", "KILL"]
        if ordinary:
            self.prefix += [f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", "--bounding-set=-all",
                            "--inh-caps=-all", "--no-new-privs"]
        self.env = {key: value for key, value in os.environ.items() if key not in ("LD_LIBRARY_PATH", "LD_PRELOAD")}
        self.env["LD_LIBRARY_PATH"] = self.reachable(os.path.abspath(libdir))
        self.env.setdefault("VERBATIM_DEVICES", "*")  # cases name their device
        # What works has nothing to report. No journals: an ordinary user has no place for them here.
        self.env.update(VERBATIM_REPORT="1", VERBATIM_RUNTIME_DIR="/proc/none")
        self.env.update(env or {})
        self.quick_clock = os.environ.get(QUICK_CLOCK)
        if self.quick_clock:
            self.quick_clock = self.program(self.quick_clock)

    def __enter__(self):
        # So that being told to end (by a test driver's time limit) cleans up as an error would.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        return self

    def __exit__(self, *_):
        deadline = time.monotonic() + LEAVING_SECONDS
        while views_below(self.dir) and time.monotonic() < deadline:
            time.sleep(0.02)
        shutil.rmtree(self.dir, ignore_errors=True)
        while os.path.exists(self.dir) and time.monotonic() < deadline:  # a program that is ending still writes there
            time.sleep(0.05)
            shutil.rmtree(self.dir, ignore_errors=True)
        if os.path.exists(self.dir):
            print(f"# {self.dir} is left with {sorted(os.listdir(self.dir))}", flush=True)

    def reachable(self, libdir):
        """The directory itself, or a copy of its libraries where the ordinary user may read them."""
        library = os.path.join(libdir, "libibverbs.so.1")
        if not os.path.exists(library):
            raise Failure(f"{library} does not exist; run make first")
        probe = subprocess.run(self.prefix + ["test", "-r", library], check=False)
        if probe.returncode == 0:
            return libdir
        copy = os.path.join(self.dir, "lib")
        os.mkdir(copy)
        for name in os.listdir(libdir):
            if ".so" in name and not os.path.isdir(os.path.join(libdir, name)) and not name.endswith(".symbols"):
                shutil.copy(os.path.join(libdir, name), copy, follow_symlinks=False)
        return copy

    def program(self, path):
        """A built program, copied beside the libraries where the ordinary user cannot reach it."""
        if subprocess.run(self.prefix + ["test", "-x", path], check=False).returncode == 0:
            return path
        return shutil.copy(path, self.dir)

    def start(self, argv, log):
        with open(log, "wb") as out:
            return self.start_on(argv, out)

    def start_on(self, argv, out):
        return subprocess.Popen(self.prefix + argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                env=self.environment(argv), cwd=self.dir)

    def environment(self, argv):
        """perftest's programs get the clock that goes faster (quick_clock.c), if there is one."""
        if not self.quick_clock or not any(word in PERFTEST for word in argv):
            return self.env
        return dict(self.env, LD_PRELOAD=":".join(filter(None, [self.env.get("LD_PRELOAD"), self.quick_clock])))

    def stacks(self, process):
        """Where a program hangs, for the person who reads the failure."""
        if not self.debug or not shutil.which("gdb"):
            return ""
        out = subprocess.run(["gdb", "-p", str(process.pid), "-batch", "-ex", "thread apply all bt 12"],
                             capture_output=True, text=True, timeout=60, check=False).stdout
        return f"\n-- stacks of {process.pid} --\n{out}"

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.wait()

    def single(self, argv):
        """Runs one program to its end; returns its output."""
        log = os.path.join(self.dir, "single.out")
        process = self.start(argv, log)
        try:
            code = process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            text = f"{' '.join(argv)}: still running after {self.timeout} s{self.stacks(process)}\n{tail(log)}"
            raise Failure(text) from None
        finally:
            self.end(process)
        if code != 0:
            raise Failure(f"{' '.join(argv)}: {describe(code)}\n{tail(log)}")
        with open(log, encoding="utf-8", errors="replace") as handle:
            output = handle.read()
        must_be_silent(argv, [output])
        return output

    def wait_listening(self, server, port, deadline):
        while not listening(server.pid, port):
            if server.poll() is not None or time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True

    def pair(self, argv, address="127.0.0.1", client=None):
        """Runs `argv -p PORT` as server and `argv -p PORT address` as client, two processes; returns both outputs. client: what
        the other side runs instead, but for `-p PORT`, where it is no such program."""
        port = free_port()
        client = (client or argv) + ["-p", str(port)] + ([] if client else [address])
        return self.sides(argv + ["-p", str(port)], [client], port)

    def crowd(self, argv, clients, address="127.0.0.1"):
        """A server (`argv -c CLIENTS`) and so many clients of it at once; returns all outputs, the server's first."""
        port = free_port()
        client = [*argv, "-p", str(port), address]
        return self.sides([*argv, "-c", str(clients), "-p", str(port)], [client] * clients, port)

    def sides(self, argv, clients, port):
        with xrc_files(argv):
            return self.sides_together(argv, clients, port)

    def sides_together(self, argv, clients, port):
        logs = [os.path.join(self.dir, "server.out")]
        logs += [os.path.join(self.dir, f"client{number}.out") for number in range(len(clients))]
        deadline = time.monotonic() + self.timeout
        processes = [self.start(self.pins[0] + argv, logs[0])]
        faults = []
        try:
            if self.wait_listening(processes[0], port, deadline):
                processes += [self.start(self.pins[1] + client, log) for client, log in zip(clients, logs[1:])]
            else:
                faults.append("the server never listened")
            faults += self.wait_all(processes, deadline)
        finally:
            for process in processes:
                self.end(process)
        if faults:
            outputs = "".join(f"-- {os.path.basename(log)} --\n{tail(log)}" for log in logs if os.path.exists(log))
            raise Failure(f"{' '.join(argv)}: {'; '.join(faults)}\n{outputs}")
        outputs = []
        for log in logs:
            with open(log, encoding="utf-8", errors="replace") as handle:
                outputs.append(handle.read())
        must_be_silent(argv, outputs)
        return outputs

    def wait_all(self, processes, deadline):
        """The faults of all sides. One side's failure ends the wait for the others soon after."""
        names = {process.pid: "a client" if number else "server" for number, process in enumerate(processes)}
        known = [process for process in processes if process.returncode is not None]  # it has been waited for
        running = {os.pidfd_open(process.pid): process for process in processes if process not in known}
        faults = [f"{names[process.pid]} {describe(process.returncode)}" for process in known if process.returncode]
        if faults:
            deadline = min(deadline, time.monotonic() + 2)
        try:
            while running:
                ended = select.select(list(running), [], [], max(0, deadline - time.monotonic()))[0]
                if not ended:
                    return faults + [f"{names[process.pid]} did not end{self.stacks(process)}" for process in running.values()]
                for handle in ended:
                    os.close(handle)
                    process = running.pop(handle)
                    if process.wait() != 0:
                        faults.append(f"{names[process.pid]} {describe(process.returncode)}")
                        deadline = min(deadline, time.monotonic() + 2)
            return faults
        finally:
            for handle in running:
                os.close(handle)


def describe(code):
    return f"was killed by signal {-code}" if code < 0 else f"exited with {code}"
