/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The environment of a program: LD_LIBRARY_PATH for those that look for libibverbs or librdmacm
 * by name, LD_PRELOAD for those that would find another one by a path of their own (DT_RPATH, renamed
 * copies) and for the files of the devices.
 */
#include "run/environment.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library_dir.h"
#include "run/loader_path.h"
#include "view/view.h"

/* Set: the library says at the end of a program which of its operations failed. */
#define REPORT_VARIABLE "VERBATIM_REPORT"

#define ASAN_VARIABLE   "ASAN_OPTIONS"
#define ASAN_ORDER      "verify_asan_link_order"

struct setting {
	const struct run *run;
	int err;
};

static void set(struct setting *setting, const char *name, const char *value)
{
	if (value ? setenv(name, value, 1) : unsetenv(name))
		setting->err = -errno;
	else if (setting->run->verbose && value)
		run_say(setting->run, "%s=%s", name, value);
}

/*
 * Whether the path ends with the name of one of our libraries that others have, too, and the
 * library of path functions, which nobody else has, lies in the directory before that name.
 */
static bool is_beside_view(const char *entry, const char *name)
{
	size_t length = strlen(entry), tail = strlen(name);
	char sister[PATH_MAX];
	int n;

	if (length <= tail || entry[length - tail - 1] != '/' ||
	    strcmp(entry + length - tail, name) != 0)
		return false;
	n = snprintf(sister, sizeof(sister), "%.*s" LIBRARY_VIEW, (int)(length - tail), entry);
	return n > 0 && (size_t)n < sizeof(sister) && !access(sister, F_OK);
}

/* Whether an entry of LD_PRELOAD is a library of this project, of this copy or another. */
static bool is_ours(const char *entry)
{
	const char *slash = strrchr(entry, '/');

	return !strcmp(slash ? slash + 1 : entry, LIBRARY_VIEW) ||
	       is_beside_view(entry, LIBRARY_VERBS) || is_beside_view(entry, LIBRARY_CM) ||
	       is_beside_view(entry, LIBRARY_SOCKETS) || is_beside_view(entry, LIBRARY_MAPPED);
}

static int append(char **list, const char *dir, const char *name)
{
	char *longer = NULL;
	const char *before = *list ? *list : "";

	if (asprintf(&longer, "%s%s%s%s%s", before, *before ? ":" : "", dir, *dir ? "/" : "",
		     name) < 0)
		return -ENOMEM;
	free(*list);
	*list = longer;
	return 0;
}

/* What was to be preloaded already, without libraries of an outer `verbatim run`. */
static int others(char **list)
{
	const char *old = getenv("LD_PRELOAD");
	char *copy = strdup(old ? old : "");
	char *rest = copy;
	char *entry;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (entry = strsep(&rest, ": "))) {
		if (*entry && !is_ours(entry))
			err = append(list, "", entry);
	}
	free(copy);
	return err;
}

/*
 * What the program preloads itself comes first: among it may be the run-time of a sanitizer, which
 * insists on that. The library of path functions comes last, since it calls the next definition
 * of each.
 */
static void set_preload(struct setting *setting, const char *dir)
{
	const struct run *run = setting->run;
	char *list = NULL;
	int err = others(&list);

	if (!err && dir)
		err = append(&list, dir, LIBRARY_VERBS);
	if (!err && dir)
		err = append(&list, dir, LIBRARY_CM);
	if (!err && dir && run->rsockets)
		err = append(&list, dir, LIBRARY_SOCKETS);
	if (!err && dir && run->mapped)
		err = append(&list, dir, LIBRARY_MAPPED);
	if (!err && dir && run->view == RUN_VIEW_PRELOAD)
		err = append(&list, dir, LIBRARY_VIEW);
	if (err)
		setting->err = err;
	else
		set(setting, "LD_PRELOAD", list);
	free(list);
}

/* The directory in front of the others; it is taken out of them. */
static void set_library_path(struct setting *setting, const char *dir)
{
	const char *old = getenv("LD_LIBRARY_PATH");
	char *copy = strdup(old ? old : "");
	char *list = strdup(dir);
	char *rest = copy;
	char *entry;
	int err = copy && list ? 0 : -ENOMEM;

	/* An empty entry is the working directory, so one that is there stays. */
	while (!err && old && *old && (entry = strsep(&rest, ":;"))) {
		if (strcmp(entry, dir) != 0)
			err = *entry ? append(&list, "", entry) : append(&list, "", ".");
	}
	if (err)
		setting->err = err;
	else
		set(setting, "LD_LIBRARY_PATH", list);
	free(list);
	free(copy);
}

/*
 * gcc's address sanitizer, where it is a library that the program loads, refuses to start if
 * another one was preloaded. The program may be the child of a script, so this is always set.
 */
static void set_asan(struct setting *setting)
{
	const char *old = getenv(ASAN_VARIABLE);
	char *value = NULL;

	if (old && strstr(old, ASAN_ORDER))
		return;
	if (asprintf(&value, "%s%s" ASAN_ORDER "=0", old ? old : "", old && *old ? ":" : "") < 0)
		setting->err = -ENOMEM;
	else
		set(setting, ASAN_VARIABLE, value);
	free(value);
}

int environment_set(const struct run *run, const struct program *program, const char *libraries,
		    const char *view)
{
	struct setting setting = {.run = run};
	bool viewed = run->view != RUN_VIEW_NONE;
	char dir[PATH_MAX];
	int err;

	set(&setting, VIEW_VARIABLE, viewed ? view : NULL);
	set(&setting, REPORT_VARIABLE, run->quiet ? NULL : "1");
	if (!program_takes_libraries(program)) {
		set_preload(&setting, NULL);
		return setting.err;
	}
	err = loader_path(dir, sizeof(dir), libraries, viewed ? view : NULL);
	if (err)
		return err;
	set_preload(&setting, dir);
	set_library_path(&setting, dir);
	set_asan(&setting);
	return setting.err;
}
