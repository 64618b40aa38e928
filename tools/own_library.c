/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Starting again where the loader did not find this program's library. */
#include "own_library.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "library_dir.h"

/* Whether it is the first entry already, as in a second start. */
static bool is_first(const char *dir)
{
	const char *old = getenv("LD_LIBRARY_PATH");
	size_t length = strlen(dir);

	return old && !strncmp(old, dir, length) && (!old[length] || old[length] == ':');
}

static void put_first(const char *dir)
{
	const char *old = getenv("LD_LIBRARY_PATH");
	char *list = NULL;

	if (asprintf(&list, "%s%s%s", dir, old && *old ? ":" : "", old ? old : "") >= 0)
		setenv("LD_LIBRARY_PATH", list, 1);
	free(list);
}

void own_library_ensure(char **argv)
{
	const char *started_as = (const char *)getauxval(AT_EXECFN);
	char dir[PATH_MAX];
	char self[PATH_MAX];

	if (!access("/proc/self/exe", F_OK) || !started_as || !realpath(started_as, self) ||
	    library_dir(dir, sizeof(dir)) || is_first(dir))
		return;
	put_first(dir);
	execv(self, argv);
}
