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
#include "library_dir.h"

/* The shell's convention: 126 found but not executable, 127 not found. */
enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

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
		fprintf(stderr, "verbatim run: " LIBRARY_VERBS
				" is not in lib/ beside this program, nor where it is installed\n");
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
