/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The directory of the libraries, found from the place of this program, so that a tree that was
 * moved or copied works.
 */
#include "library_dir.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "config.h"

static const char *const places[] = {"lib", "../" VERBATIM_LIBDIR "/verbatim",
				     "../" VERBATIM_LIBDIR};

/* The path of this program; from the kernel's start-up data where /proc is not mounted. */
static int own_path(char path[PATH_MAX])
{
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);
	const char *started_as;

	if (len > 0) {
		path[len] = '\0';
		return 0;
	}
	started_as = (const char *)getauxval(AT_EXECFN);
	return started_as && realpath(started_as, path) ? 0 : -ENOENT;
}

static int own_dir(char dir[PATH_MAX])
{
	int err = own_path(dir);
	char *slash;

	if (err)
		return err;
	slash = strrchr(dir, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return 0;
}

static bool holds_library(const char *dir)
{
	char file[PATH_MAX];
	int n = snprintf(file, sizeof(file), "%s/" LIBRARY_VERBS, dir);

	return n > 0 && (size_t)n < sizeof(file) && !access(file, R_OK);
}

int library_dir(char *dir, size_t size)
{
	char own[PATH_MAX];
	char place[PATH_MAX];
	char found[PATH_MAX];
	int err = own_dir(own);

	for (size_t i = 0; !err && i < sizeof(places) / sizeof(places[0]); i++) {
		int n = snprintf(place, sizeof(place), "%s/%s", own, places[i]);

		if (n < 0 || (size_t)n >= sizeof(place) || !holds_library(place) ||
		    !realpath(place, found))
			continue;
		if (strlen(found) >= size)
			return -ENAMETOOLONG;
		memcpy(dir, found, strlen(found) + 1);
		return 0;
	}
	return err ? err : -ENOENT;
}
