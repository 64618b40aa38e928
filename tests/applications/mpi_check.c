/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An MPI program that knows every byte which it must receive: allreduce and alltoall from 8 bytes
 * to 2 MiB a rank, put and get between fences, and atomics of all ranks on one word of rank 0.
 * Ends with "mpi_check: N ranks: right".
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LONGEST = 1 << 18, WINDOW = 4096, ATOMICS = 100 };

static int rank, ranks, faults;

static void expect(long is, long wanted, const char *what)
{
	if (is == wanted)
		return;
	if (faults++ == 0)
		fprintf(stderr, "rank %d: %s: %ld instead of %ld\n", rank, what, is, wanted);
}

static long *numbers(int n)
{
	long *array = malloc((size_t)n * sizeof(long));

	if (!array)
		MPI_Abort(MPI_COMM_WORLD, 2);
	return array;
}

static void reduce_all(int n)
{
	long *mine = numbers(n), *sum = numbers(n);

	for (int i = 0; i < n; i++)
		mine[i] = rank * 7L + i;
	MPI_Allreduce(mine, sum, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		expect(sum[i], 7L * ranks * (ranks - 1) / 2 + (long)ranks * i, "allreduce");
	free(mine);
	free(sum);
}

static void all_to_all(int n)
{
	long *out = numbers(n * ranks), *in = numbers(n * ranks);

	for (int i = 0; i < n * ranks; i++)
		out[i] = rank * 1000000000L + i;
	MPI_Alltoall(out, n, MPI_LONG, in, n, MPI_LONG, MPI_COMM_WORLD);
	for (int from = 0; from < ranks; from++) {
		for (int i = 0; i < n; i++)
			expect(in[from * n + i], from * 1000000000L + rank * n + i, "alltoall");
	}
	free(out);
	free(in);
}

static void one_sided(void)
{
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
	long *window, *out = numbers(WINDOW), *in = numbers(WINDOW), one = 1, old;
	MPI_Win win;

	MPI_Win_allocate(WINDOW * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD,
			 &window, &win);
	for (int i = 0; i < WINDOW; i++) {
		window[i] = -1;
		out[i] = rank * 1000000L + i;
	}
	MPI_Win_fence(0, win);
	MPI_Put(out, WINDOW, MPI_LONG, next, 0, WINDOW, MPI_LONG, win);
	MPI_Win_fence(0, win);
	MPI_Get(in, WINDOW, MPI_LONG, next, 0, WINDOW, MPI_LONG, win);
	MPI_Win_fence(0, win);
	for (int i = 0; i < WINDOW; i++) {
		expect(window[i], before * 1000000L + i, "put");
		expect(in[i], rank * 1000000L + i, "get");
	}
	MPI_Win_fence(0, win);
	window[0] = 0;
	MPI_Win_fence(0, win);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < ATOMICS; i++) {
		MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 0, MPI_SUM, win);
		MPI_Win_flush(0, win);
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_fence(0, win);
	if (rank == 0)
		expect(window[0], (long)ATOMICS * ranks, "fetch_and_op");
	MPI_Win_fence(0, win);
	MPI_Win_free(&win);
	free(out);
	free(in);
}

int main(int argc, char **argv)
{
	int all;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int n = 1; n <= LONGEST; n *= 8) {
		reduce_all(n);
		all_to_all(n);
	}
	one_sided();
	MPI_Allreduce(&faults, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("mpi_check: %d ranks: %s\n", ranks, all ? "WRONG" : "right");
	MPI_Finalize();
	return all != 0;
}
