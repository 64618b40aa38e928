/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "two.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int core = -1, other_core = -1;

_Noreturn void two_fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

uint64_t two_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double two_median(double *samples, int count)
{
	qsort(samples, (size_t)count, sizeof(*samples), compare);
	return samples[count / 2];
}

static void *map(size_t size, int sharing)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		two_fail("mmap");
	return memory;
}

void *two_shared(size_t size)
{
	return map(size, MAP_SHARED);
}

void *two_private(size_t size)
{
	return memset(map(size, MAP_PRIVATE), 1, size);
}

void two_free(void *memory, size_t size)
{
	munmap(memory, size);
}

static void pin(int to)
{
	cpu_set_t set;

	if (to < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(to, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		two_fail("sched_setaffinity");
}

pid_t two_start(void (*other)(void *), void *argument)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid < 0)
		two_fail("fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	pin(other_core);
	other(argument);
	_exit(EXIT_SUCCESS);
}

void two_end(pid_t pid)
{
	int status = 0;

	if (waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "the other process ended with status %#x\n", (unsigned int)status);
		exit(EXIT_FAILURE);
	}
}

static const struct two_figure *find(const struct two_figure *figures, const char *word)
{
	size_t length = strcspn(word, ":");

	for (; figures->name; figures++) {
		if (strlen(figures->name) == length && !strncmp(figures->name, word, length))
			return figures;
	}
	return NULL;
}

static int usage(const char *program, const struct two_figure *figures)
{
	fprintf(stderr, "usage: %s [-c CORE] [-d CORE] NAME[:SIZE]...\nnames:", program);
	for (; figures->name; figures++)
		fprintf(stderr, " %s", figures->name);
	fputc('\n', stderr);
	return 2;
}

int two_main(int argc, char **argv, const struct two_figure *figures)
{
	int option;

	while ((option = getopt(argc, argv, "c:d:")) != -1) {
		if (option == 'c')
			core = atoi(optarg);
		else if (option == 'd')
			other_core = atoi(optarg);
		else
			return usage(argv[0], figures);
	}
	pin(core);
	for (int i = optind; i < argc; i++) {
		const struct two_figure *figure = find(figures, argv[i]);
		const char *size = strchr(argv[i], ':');

		if (!figure)
			return usage(argv[0], figures);
		printf("%s %.6f\n", argv[i],
		       figure->measure(size ? strtoul(size + 1, NULL, 10) : 0));
		fflush(stdout);
	}
	return 0;
}
