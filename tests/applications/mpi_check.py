# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""mpi_check.c by mpi4py: ends with "mpi_check: N ranks: right"."""

import array
import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, ranks = comm.Get_rank(), comm.Get_size()
wrong = []


def expect(good, what):
    if not good:
        wrong.append(what)


for n in (1, 1000, 100000):
    mine, total = array.array("l", (rank * 7 + i for i in range(n))), array.array("l", [0] * n)
    comm.Allreduce([mine, MPI.LONG], [total, MPI.LONG], op=MPI.SUM)
    expect(all(total[i] == 7 * ranks * (ranks - 1) // 2 + ranks * i for i in range(n)), "allreduce")
    out, came = array.array("l", (rank * 10**9 + i for i in range(n * ranks))), array.array("l", [0] * n * ranks)
    comm.Alltoall([out, MPI.LONG], [came, MPI.LONG])
    expect(all(came[source * n + i] == source * 10**9 + rank * n + i for source in range(ranks) for i in range(n)), "alltoall")
expect(comm.allgather({"rank": rank, "text": "x" * 5000 * rank}) == [{"rank": r, "text": "x" * 5000 * r} for r in range(ranks)],
       "allgather of objects")

memory = array.array("l", [-1] * 4096)
window = MPI.Win.Create(memory, memory.itemsize, comm=comm)
data = array.array("l", (rank * 10**6 + i for i in range(4096)))
window.Fence()
window.Put([data, MPI.LONG], (rank + 1) % ranks)
window.Fence()
expect(all(memory[i] == (rank - 1) % ranks * 10**6 + i for i in range(4096)), "put")
window.Free()

wrong = comm.allreduce(wrong)
if rank == 0:
    print(f"mpi_check: {ranks} ranks: {'WRONG: ' + str(wrong) if wrong else 'right'}")
sys.exit(bool(wrong))
