/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * `verbatim run`: puts the directory of this library first in LD_LIBRARY_PATH and executes the
 * program.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "config.h"

/* The shell's convention: 126 found but not executable, 127 not found. */
enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

/* Cuts off the last component of a path. */
static int parent(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return 0;
}

static int holds_library(const char *dir)
{
	char file[PATH_MAX];
	int n = snprintf(file, sizeof(file), "%s/libibverbs.so.1", dir);

	return n > 0 && (size_t)n < sizeof(file) && access(file, R_OK) == 0;
}

/* In a build tree the library is in lib/ beside the program, otherwise in the installed libdir. */
static int library_dir(char *dir, size_t size)
{
	static const char *const places[] = {"lib", "../" VERBATIM_LIBDIR};
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0)
		return -errno;
	self[len] = '\0';
	if (parent(self))
		return -ENOENT;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int n = snprintf(dir, size, "%s/%s", self, places[i]);

		if (n > 0 && (size_t)n < size && holds_library(dir))
			return 0;
	}
	return -ENOENT;
}

static int prepend_library_path(const char *dir)
{
	const char *old = getenv("LD_LIBRARY_PATH");
	char *value = NULL;
	int err;

	if (!old || !*old)
		return setenv("LD_LIBRARY_PATH", dir, 1);
	if (asprintf(&value, "%s:%s", dir, old) < 0)
		return -1;
	err = setenv("LD_LIBRARY_PATH", value, 1);
	free(value);
	return err;
}

int command_run(int argc, char **argv)
{
	char dir[PATH_MAX];

	if (argc > 0 && !strcmp(argv[0], "--")) {
		argc--;
		argv++;
	}
	if (argc < 1) {
		fprintf(stderr, "usage: verbatim run [--] CMD ARG...\n");
		return EXIT_FAILURE;
	}
	if (library_dir(dir, sizeof(dir))) {
		fprintf(stderr,
			"verbatim run: no libibverbs.so.1 in lib/ beside this program or in ../%s\n",
			VERBATIM_LIBDIR);
		return EXIT_FAILURE;
	}
	if (prepend_library_path(dir)) {
		fprintf(stderr, "verbatim run: cannot set LD_LIBRARY_PATH: %s\n", strerror(errno));
		return EXIT_FAILURE;
	}
	execvp(argv[0], argv);
	fprintf(stderr, "verbatim run: %s: %s\n", argv[0], strerror(errno));
	return errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}
