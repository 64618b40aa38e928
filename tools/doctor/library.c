/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which libibverbs this program itself was loaded with: the other checks use it. */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "doctor/checks.h"
#include "doctor/finding.h"
#include "library_dir.h"

void check_library(void)
{
	char dir[PATH_MAX];
	char wanted[PATH_MAX];
	char loaded[PATH_MAX];
	Dl_info info;

	if (library_dir(dir, sizeof(dir)) || !realpath(dir, wanted)) {
		finding_problem("build it with `make`, or install it with `make install`",
				"library: no " LIBRARY_VERBS " belongs to this program");
		return;
	}
	if (!dladdr((void *)(uintptr_t)ibv_get_device_list, &info) ||
	    !realpath(info.dli_fname, loaded)) {
		finding_note(NULL, "library: which one is loaded cannot be told");
		return;
	}
	if (strncmp(loaded, wanted, strlen(wanted)) != 0)
		finding_problem(
			"unset LD_LIBRARY_PATH and LD_PRELOAD, or start programs by `verbatim run`",
			"library: another libibverbs is loaded here: %s", loaded);
	else
		finding_ok("library: %s", loaded);
}
