/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two ranks of an MPI: half round trips and streams of messages. Compiled by mpicc when the
 * benchmark runs; it is no part of the build.
 *
 * usage: mpirun -np 2 mpi WHAT:SIZE...
 *   lat   us: half the round trip
 *   bw    GB/s, windows of 64 messages
 *   rate  millions of messages a second, of the same windows
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64, SAMPLES = 9 };

static int rank;
static char *out, *in;

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* `repeats` round trips; seconds. */
static double trips(int size, int repeats)
{
	double start = MPI_Wtime();

	for (int i = 0; i < repeats; i++) {
		if (rank == 0)
			MPI_Send(out, size, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
		MPI_Recv(in, size, MPI_BYTE, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(out, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
	}
	return MPI_Wtime() - start;
}

/* `repeats` windows, each answered by an empty message; seconds. */
static double stream(int size, int repeats)
{
	MPI_Request request[WINDOW];
	double start = MPI_Wtime();

	for (int i = 0; i < repeats; i++) {
		for (int w = 0; w < WINDOW; w++) {
			if (rank == 0)
				MPI_Isend(out, size, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request[w]);
			else
				MPI_Irecv(in, size, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request[w]);
		}
		MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
		if (rank == 0)
			MPI_Recv(in, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		else
			MPI_Send(out, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
	}
	return MPI_Wtime() - start;
}

/* Seconds of one message: the median of the samples, of which the first is not counted. */
static double measure(const char *what, int size)
{
	long bytes = 1 << 21;
	long most = strcmp(what, "lat") ? 100 : 1000;
	long repeats = bytes / ((long)size * (strcmp(what, "lat") ? WINDOW : 2));
	double sample[SAMPLES];

	repeats = repeats < 2 ? 2 : repeats > most ? most : repeats;
	for (int s = -1; s < SAMPLES; s++) {
		double took = strcmp(what, "lat") ? stream(size, (int)repeats) / WINDOW
						  : trips(size, (int)repeats) / 2;

		if (s >= 0)
			sample[s] = took / (double)repeats;
	}
	qsort(sample, SAMPLES, sizeof(sample[0]), compare);
	return sample[SAMPLES / 2];
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	out = malloc(1 << 24);
	in = malloc(1 << 24);
	memset(out, 1, 1 << 24);
	memset(in, 1, 1 << 24);
	for (int i = 1; i < argc; i++) {
		char what[8] = "";
		int size = 0;

		if (sscanf(argv[i], "%7[a-z]:%d", what, &size) != 2 || size < 1 || size > 1 << 24)
			MPI_Abort(MPI_COMM_WORLD, 2);

		double seconds = measure(what, size);
		double figure = !strcmp(what, "lat")  ? seconds * 1e6
				: !strcmp(what, "bw") ? size / seconds / 1e9
						      : 1 / seconds / 1e6;

		if (rank == 0)
			printf("%s %.6f\n", argv[i], figure);
	}
	MPI_Finalize();
	return 0;
}
