# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""One run's surroundings: cores, libraries, the two hosts, and how programs are started."""

import os
import shutil
import subprocess
import sys

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(BENCH)
sys.path[:0] = [os.path.join(ROOT, "tests", folder) for folder in ("udp", "apps", "cm")]

import hosts  # noqa: E402
from cm_pairs import CmRunner, a_port, cmtime_has_threads  # noqa: E402, F401
from pairs import Failure, Runner, free_port  # noqa: E402

JUMBO, ETHERNET = 9000, 1500
TIMEOUT = 60


class Library:
    """A build of the library to be measured."""

    def __init__(self, folder):
        folder = os.path.abspath(folder)
        if os.path.exists(os.path.join(folder, "lib", "libibverbs.so.1")):
            folder = os.path.join(folder, "lib")
        self.folder = folder
        self.verbatim = os.path.join(os.path.dirname(folder), "verbatim")
        if not os.path.exists(os.path.join(folder, "libibverbs.so.1")):
            raise SystemExit(f"{folder}: no libibverbs.so.1 in it; run make first")


class Session:
    """build: where the programs of bench/ are. server, client: cores."""

    def __init__(self, build, server, client):
        self.build = build
        self.cores = (server, client)
        self.pins = [["taskset", "-c", str(core)] for core in self.cores]
        self.nets = None
        self.no_nets = "the run was started without network namespaces"
        self.mtu = None

    def make_hosts(self):
        self.nets = hosts.Hosts(self.refuse_hosts)
        self.mtu = JUMBO

    def refuse_hosts(self, reason):
        self.no_nets = reason
        raise Failure(reason)

    def close(self):
        if self.nets:
            self.nets.close()

    def set_mtu(self, mtu):
        if not self.nets:
            raise Failure(self.no_nets)
        if mtu != self.mtu:
            self.nets.set_mtu(mtu)
            self.mtu = mtu

    def program(self, name):
        path = os.path.join(self.build, "bench", name)
        if not os.path.exists(path):
            raise Failure(f"{name} is not built")
        return path

    @staticmethod
    def need(name):
        if not shutil.which(name):
            raise Failure(f"{name} is not installed")

    def pair(self, argv, library=None, far=False, address=None, client=None, env=None, together=False):
        """A server and its client; both outputs. far: on two hosts; together: on one core. library: None for programs that do not
        use it."""
        pins = [self.pins[0]] * 2 if together else self.pins
        if far:
            self.set_mtu(self.mtu or JUMBO)
            pins = [host + pin for host, pin in zip(self.nets.enter, pins)]
        with self.runner(library, env, pins) as runner:
            return runner.pair(argv, address or (hosts.IPV4[0] if far else "127.0.0.1"), client)

    def ports(self, server, option, client):
        """A pair whose programs say the port by other options than -p: `server OPTION PORT` and `client... PORT ADDRESS`."""
        port = free_port()
        with self.runner(None, None, self.pins) as runner:
            return runner.sides([*server, option, str(port)], [[*client, str(port), "127.0.0.1"]], port)[1]

    def runner(self, library, env, pins):
        runner = Runner(library.folder if library else self.any_library(), timeout=TIMEOUT, env=env, pins=pins)
        # Where `verbatim run` shows its files, which nobody else may enter.
        runner.env["VERBATIM_RUNTIME_DIR"] = os.path.join(runner.dir, "run")
        os.mkdir(runner.env["VERBATIM_RUNTIME_DIR"], 0o700)
        if not library:
            for name in ("LD_LIBRARY_PATH", "VERBATIM_DEVICES"):
                runner.env.pop(name)
        return runner

    def any_library(self):
        return os.path.join(self.build, "lib")

    def run(self, argv, library=None, env=None):
        """One program to its end; its standard output."""
        env = {**os.environ, **(env or {})}
        if library:
            env.update(LD_LIBRARY_PATH=library.folder, VERBATIM_DEVICES="*")
        try:
            run = subprocess.run(["setpriv", "--pdeathsig", "KILL", *argv], env=env, stdin=subprocess.DEVNULL, capture_output=True,
                                 text=True, timeout=TIMEOUT, check=False)
        except subprocess.TimeoutExpired:
            raise Failure(f"{os.path.basename(argv[0])}: still running after {TIMEOUT} s") from None
        if run.returncode != 0:
            raise Failure(f"{os.path.basename(argv[0])}: exit status {run.returncode}: {last_line(run.stderr or run.stdout)}")
        return run.stdout


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"
