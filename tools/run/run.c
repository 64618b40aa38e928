/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * `verbatim run`: executes a program so that it uses this library, and sees the files in /sys and
 * /dev that an adapter would have. Whatever of that is not possible is said in one line, and the
 * program runs nevertheless.
 */
#include "run/run.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arguments.h"
#include "commands.h"
#include "library_dir.h"
#include "run/descriptors.h"
#include "run/environment.h"
#include "run/namespace.h"
#include "run/program.h"
#include "run/unreached.h"
#include "view/view.h"

/* The shell's convention: 126 found but not executable, 127 not found. */
enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

enum { OPTION_VIEW = 256, OPTION_RSOCKETS, OPTION_MAPPED };

static const struct argp_option options[] = {
	{"quiet", 'q', NULL, 0,
	 "Say nothing, neither now nor when an operation of the program failed", 0},
	{"verbose", 'v', NULL, 0, "Say what is set for the program", 0},
	{"rsockets", OPTION_RSOCKETS, NULL, 0,
	 "Make rsockets of the program's sockets (rsocket(7)): between two such programs data passes through queue pairs",
	 0},
	{"mapped", OPTION_MAPPED, NULL, 0,
	 "Give the program its large blocks of memory from what other processes of this host map: one-sided operations on "
	 "them need no system call",
	 0},
	{"view", OPTION_VIEW, "HOW", 0,
	 "How the program sees the files of the devices: preload (the default), namespace (also for programs that a "
	 "preloaded library does not reach), none",
	 0},
	{0},
};

static const char doc[] =
	"Run a program on this library, and show it the files in /sys and /dev that an adapter would have.";

void run_say(const struct run *run, const char *format, ...)
{
	char text[2 * PATH_MAX];
	va_list ap;

	if (run->quiet)
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	fprintf(stderr, "verbatim run: %s\n", text);
}

static int parse_view(const char *name, enum run_view *view)
{
	static const char *const names[] = {[RUN_VIEW_PRELOAD] = "preload",
					    [RUN_VIEW_NAMESPACE] = "namespace",
					    [RUN_VIEW_NONE] = "none"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(name, names[i])) {
			*view = (enum run_view)i;
			return 0;
		}
	}
	return -EINVAL;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct run *run = state->input;

	switch (key) {
	case 'q':
		run->quiet = true;
		return 0;
	case 'v':
		run->verbose = true;
		return 0;
	case OPTION_RSOCKETS:
		run->rsockets = true;
		return 0;
	case OPTION_MAPPED:
		run->mapped = true;
		return 0;
	case OPTION_VIEW:
		if (parse_view(arg, &run->view))
			argp_error(state, "no such view: %s", arg);
		return 0;
	case ARGP_KEY_ARG:
		run->argv = arguments_rest(state);
		return 0;
	default:
		return arguments_needed(key, state);
	}
}

/* The directory with the files of the devices; without one the program has the library alone. */
static void prepare_view(struct run *run, char *view, size_t size)
{
	if (run->view == RUN_VIEW_NONE)
		return;
	if (view_prepare(view, size)) {
		run_say(run, "the program sees no files of the devices in /sys and /dev: %s",
			view_why());
		run->view = RUN_VIEW_NONE;
	}
}

static void find_view_library(struct run *run, const char *libraries)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/" LIBRARY_VIEW, libraries);

	if (run->view == RUN_VIEW_PRELOAD &&
	    (n < 0 || (size_t)n >= sizeof(path) || access(path, R_OK))) {
		run_say(run,
			"the program sees no files of the devices in /sys and /dev: " LIBRARY_VIEW
			" is not in %s",
			libraries);
		run->view = RUN_VIEW_NONE;
	}
}

/* A library that is not there is not preloaded: the loader would complain of it in every process. */
static int find_library(bool wanted, const char *name, const char *libraries)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", libraries, name);

	if (!wanted || (n > 0 && (size_t)n < sizeof(path) && !access(path, R_OK)))
		return 0;
	fprintf(stderr, "verbatim run: %s is not in %s\n", name, libraries);
	return -ENOENT;
}

static void enter_namespace(struct run *run, const char *view)
{
	char why[NAMESPACE_WHY];

	if (run->view != RUN_VIEW_NAMESPACE || !namespace_enter(view, why, sizeof(why)))
		return;
	run_say(run,
		"no namespace for the files of the devices: %s; a preloaded library shows them instead",
		why);
	run_say(run,
		"who starts a container can give it the files: verbatim view --cdi DIR, or verbatim view DIR and volumes");
	run->view = RUN_VIEW_PRELOAD;
}

static int fail(const char *name, int err)
{
	fprintf(stderr, "verbatim run: %s: %s\n", name, strerror(err));
	return err == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static int execute(struct run *run)
{
	char libraries[PATH_MAX];
	char view[PATH_MAX] = "";
	struct program program;
	int err = program_find(&program, run->argv[0]);

	if (err)
		return fail(run->argv[0], -err);
	err = library_dir(libraries, sizeof(libraries));
	if (err) {
		fprintf(stderr, "verbatim run: " LIBRARY_VERBS
				" is not in lib/ beside this program, nor where it is installed\n");
		return EXIT_FAILURE;
	}
	if (find_library(run->rsockets, LIBRARY_SOCKETS, libraries) ||
	    find_library(run->mapped, LIBRARY_MAPPED, libraries))
		return EXIT_FAILURE;
	find_view_library(run, libraries);
	prepare_view(run, view, sizeof(view));
	enter_namespace(run, view);
	unreached_say(run, &program);
	err = environment_set(run, &program, libraries, view);
	if (err) {
		fprintf(stderr, "verbatim run: cannot set the environment of the program: %s\n",
			strerror(-err));
		return EXIT_FAILURE;
	}
	/* What is no program for this machine is not tried as a script, as execvp(3) would. */
	if (program.known && !program.script)
		execv(program.path, run->argv);
	else
		execvp(run->argv[0], run->argv);
	return fail(run->argv[0], errno);
}

int command_run(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = parse,
					 .args_doc = "[--] PROGRAM [ARGUMENT...]",
					 .doc = doc};
	static char name[] = "verbatim run";
	struct run run = {.view = RUN_VIEW_PRELOAD};

	descriptors_reserve();
	if (arguments_parse(&argp, name, ARGP_IN_ORDER, argc, argv, &run) || !run.argv)
		return EXIT_FAILURE;
	return execute(&run);
}
