/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the preloaded library costs: a call of a path function as programs make it, and the same
 * call of the C library's own function, in turn within one process; and the start of a program with
 * LD_PRELOAD and without. Medians of batches.
 *
 * usage: ninja -C build bench/preload && build/verbatim run build/bench/preload
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 200, SAMPLES = 401, STARTS = 101 };

typedef int (*open_fn)(const char *, int, ...);
typedef int (*stat_fn)(const char *, struct stat *);

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, int count)
{
	qsort(v, (size_t)count, sizeof(*v), compare);
	return v[count / 2];
}

static void *own(const char *name)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW);

	return libc ? dlsym(libc, name) : NULL;
}

static double opens(open_fn function, const char *path)
{
	double start = now_ns();

	for (int i = 0; i < BATCH; i++)
		close(function(path, O_RDONLY | O_CLOEXEC));
	return (now_ns() - start) / BATCH;
}

static double stats(stat_fn function, const char *path)
{
	double start = now_ns();
	struct stat st;

	for (int i = 0; i < BATCH; i++)
		function(path, &st);
	return (now_ns() - start) / BATCH;
}

static void say(const char *what, double with, double without)
{
	printf("%-44s %8.0f ns, without %8.0f ns, %+6.0f ns\n", what, with, without,
	       with - without);
}

/* Opening and closing `path` through the library, and `plain` without. */
static void compare_open(const char *what, const char *path, const char *plain)
{
	double with[SAMPLES], without[SAMPLES];
	void *found[] = {dlsym(RTLD_DEFAULT, "open"), own("open")};
	open_fn function[2];

	memcpy(function, found, sizeof(function));
	for (int s = 0; s < SAMPLES; s++) {
		with[s] = opens(function[0], path);
		without[s] = opens(function[1], plain);
	}
	say(what, median(with, SAMPLES), median(without, SAMPLES));
}

static void compare_stat(const char *what, const char *path)
{
	double with[SAMPLES], without[SAMPLES];
	void *found[] = {dlsym(RTLD_DEFAULT, "stat"), own("stat")};
	stat_fn function[2];

	memcpy(function, found, sizeof(function));
	for (int s = 0; s < SAMPLES; s++) {
		with[s] = stats(function[0], path);
		without[s] = stats(function[1], path);
	}
	say(what, median(with, SAMPLES), median(without, SAMPLES));
}

static double start_ns(char *const env[])
{
	char *const argv[] = {(char *)(size_t) "/bin/true", NULL};
	double start = now_ns();
	pid_t pid;

	if (posix_spawn(&pid, argv[0], NULL, NULL, argv, env) || waitpid(pid, NULL, 0) < 0)
		exit(EXIT_FAILURE);
	return now_ns() - start;
}

static void compare_start(void)
{
	static char preload[8192];
	char *const with_env[] = {preload, NULL};
	char *const without_env[] = {NULL};
	double with[STARTS], without[STARTS];

	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", getenv("LD_PRELOAD"));
	for (int s = 0; s < STARTS; s++) {
		with[s] = start_ns(with_env);
		without[s] = start_ns(without_env);
	}
	say("start and end of a program (both libraries)", median(with, STARTS),
	    median(without, STARTS));
}

int main(void)
{
	const char *view = getenv("VERBATIM_VIEW");
	char path[8192];

	if (!view || dlsym(RTLD_DEFAULT, "open") == own("open")) {
		fprintf(stderr, "usage: verbatim run bench/preload\n");
		return EXIT_FAILURE;
	}
	compare_open("open and close /etc/passwd", "/etc/passwd", "/etc/passwd");
	compare_open("open and close a relative path", "none/such", "none/such");
	compare_open("open and close ../none", "../none", "../none");
	compare_open("open and close /dev/null", "/dev/null", "/dev/null");
	compare_open("open and close /sys/class/net/lo/address", "/sys/class/net/lo/address",
		     "/sys/class/net/lo/address");
	compare_stat("stat /etc", "/etc");
	snprintf(path, sizeof(path), "%s/sys/class/infiniband", view);
	compare_open("open and close /sys/class/infiniband", "/sys/class/infiniband", path);
	compare_start();
	return EXIT_SUCCESS;
}
