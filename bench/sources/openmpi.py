# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Open MPI over its own shared memory (vader): bench/peers/mpi.c, compiled where there is an mpicc."""

import os
import subprocess

from kit.figure import Source
from kit.session import BENCH, Failure


def results(text):
    """{word: number} of lines `WORD NUMBER`."""
    found = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 2:
            try:
                found[fields[0]] = float(fields[1])
            except ValueError:
                continue
    return found


class OpenMpi(Source):
    """Specs: ("lat", SIZE), ("bw", SIZE), ("rate", SIZE)."""

    name = "Open MPI"
    batch = True
    units = {"lat": "us", "bw": "GB/s", "rate": "M/s"}

    def __init__(self):
        super().__init__()
        self.program = None

    def compiled(self, session):
        if not self.program:
            session.need("mpicc")
            session.need("mpirun")
            target = os.path.join(session.build, "bench", "mpi")
            made = subprocess.run(["mpicc", "-O2", "-o", target, os.path.join(BENCH, "peers", "mpi.c")], capture_output=True,
                                  text=True, check=False)
            if made.returncode != 0:
                raise Failure(f"mpicc: {made.stderr.strip()[-200:]}")
            self.program = target
        return self.program

    def launch(self, session):
        return ["mpirun", "-np", "2", "--cpu-set", ",".join(str(core) for core in session.cores), "--bind-to", "core",
                "--mca", "mpi_yield_when_idle", "0"]

    def run(self, session, library, specs):
        words = [f"{what}:{size}" for what, size in specs]
        argv = [*self.launch(session), "--mca", "pml", "ob1", "--mca", "btl", "self,vader"]
        env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        found = results(session.run([*argv, self.compiled(session), *words], env=env))
        missing = [word for word in words if word not in found]
        if missing:
            raise Failure(f"mpi gave no figure for {missing[0]}")
        return {spec: found[word] for spec, word in zip(specs, words)}


class OpenMpiTogether(OpenMpi):
    """Both processes on one core; it is told so."""

    name = "Open MPI, one core"
    placed = False

    def launch(self, session):
        return ["taskset", "-c", str(session.cores[0]), "mpirun", "-np", "2", "--oversubscribe", "--bind-to", "none",
                "--mca", "mpi_yield_when_idle", "1"]
