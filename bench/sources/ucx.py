# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""ucx_perftest, unmodified: UCX over its own shared memory and TCP, and over the library (rc_verbs). All tests of one transport
run as one batch of one pair of processes."""

import os
import re
import tempfile

from kit.figure import Source
from kit.session import Failure, hosts

MIB_S = (1 << 20) / 1e9  # UCX's megabytes are powers of two
SAMPLE_BYTES = 1 << 30


def tests_of(spec):
    """("am_lat", SIZE) -> UCX's name of the test."""
    kind, measure = spec[0].split("_")
    if kind == "get":
        return "ucp_get"
    if kind == "tag":
        return f"tag_{'lat' if measure == 'lat' else 'bw'}"
    return f"ucp_{kind}_{'lat' if measure == 'lat' else 'bw'}"


def count(spec, slow):
    """Iterations: enough for a tenth of a second or so."""
    size = spec[1]
    most = 50000 if spec[0].endswith("lat") else 300000
    return max(40, min(most, SAMPLE_BYTES // size) // (10 if slow else 1))


def results(text):
    """{name: columns} of the lines of a batch's output: what begins with a name and goes on with seven numbers or more."""
    found = {}
    for line in text.splitlines():
        name, *fields = re.split(r"[,\s]+", line.strip())
        if name and len(fields) >= 7 and all(re.fullmatch(r"[0-9.]+", field) for field in fields[:7]):
            found[name] = [float(field) for field in fields[:7]]
    return found


class Ucx(Source):
    """Specs: ("tag_lat", SIZE), ("am_rate", SIZE), ("put_bw", SIZE) and the like."""

    batch = True
    slow = together = False
    warm_up = 200

    def unit(self, spec):
        return {"lat": "us", "rate": "M/s", "bw": "GB/s"}[spec[0].split("_")[1]]

    def environment(self):
        raise NotImplementedError

    def count(self, spec):
        return count(spec, self.slow)

    def command(self, library):
        return ["ucx_perftest"]

    def run(self, session, library, specs):
        session.need("ucx_perftest")
        with tempfile.TemporaryDirectory(prefix="verbatim-") as folder:
            os.chmod(folder, 0o755)
            batch = os.path.join(folder, "batch")
            with open(batch, "w", encoding="ascii") as handle:
                for number, spec in enumerate(specs):
                    handle.write(f"t{number} -t {tests_of(spec)} -s {spec[1]} -n {self.count(spec)} -w {self.warm_up}\n")
            argv = [*self.command(library), *self.no_job(session), "-b", batch, "-f", "-v"]
            text = session.pair(argv, library if self.own else None, env=self.environment(), together=self.together)[1]
        lines = results(text)
        missing = [spec for number, spec in enumerate(specs) if f"t{number}" not in lines]
        if missing:
            raise Failure(f"ucx_perftest gave no result for {' '.join(str(word) for word in missing[0])}: {text.strip()[-200:]}")
        return {spec: self.value(spec, lines[f"t{number}"]) for number, spec in enumerate(specs)}

    @staticmethod
    def no_job(session):
        """Where it was built with MPI it takes itself for a rank of a job unless told otherwise."""
        del session
        return NO_JOB.get()

    @staticmethod
    def value(spec, columns):
        """Columns: iterations; latency typical, average, overall; MiB/s average, overall; messages/s average (, overall)."""
        measure = spec[0].split("_")[1]
        if measure == "lat":
            return columns[1]
        if measure == "bw":
            return columns[5] * MIB_S
        return columns[-1] / 1e6


class NoJob:
    def __init__(self):
        self.known = None

    def get(self):
        if self.known is None:
            import subprocess
            usage = subprocess.run(["ucx_perftest", "-h"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            self.known = ["-P", "0"] if "MPI mode" in usage.stdout + usage.stderr else []
        return self.known


NO_JOB = NoJob()


class Shm(Ucx):
    name = "UCX shm"

    def environment(self):
        return {"UCX_TLS": "shm", "UCX_LOG_LEVEL": "error"}


class ShmTogether(Shm):
    """Both processes on one core, where a message may take a whole time slice."""

    name = "UCX shm, one core"
    placed = False
    together = True
    warm_up = 5

    def count(self, spec):
        return 40


class Tcp(Ucx):
    name = "UCX tcp"
    slow = True

    def environment(self):
        return {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo", "UCX_LOG_LEVEL": "error"}


class OverVerbs(Ucx):
    name = "UCX rc_verbs"
    own = True

    def command(self, library):
        return [library.verbatim, "run", "-q", "ucx_perftest"]

    def environment(self):
        # The fence that UCX 1.18 and later prefer needs a key that only one maker's devices have.
        return {"UCX_TLS": "rc_verbs,ud_verbs,self", "UCX_NET_DEVICES": f"{hosts.DEVICE}:1", "UCX_FENCE_MODE": "weak",
                "UCX_LOG_LEVEL": "error"}


class OverMapped(OverVerbs):
    """Its buffers are memory that both processes have mapped."""

    name = "UCX rc_verbs, mapped"

    def command(self, library):
        return [library.verbatim, "run", "-q", "--mapped", "ucx_perftest"]
