/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* `verbatim view`: writes a view into a directory. */
#include <argp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "arguments.h"
#include "commands.h"
#include "view/cdi.h"
#include "view/keeper.h"
#include "view/own_place.h"
#include "view/view.h"

enum { KEY_KEEP = 0x100, KEY_CDI };

struct wish {
	const char *dir;
	bool follow, keep, cdi;
};

static const struct argp_option options[] = {
	{"follow", 'f', NULL, 0, "Keep the files true until SIGTERM", 0},
	{"cdi", KEY_CDI, NULL, 0, "Print a CDI specification of the view, for containers", 0},
	{"keep", KEY_KEEP, NULL, OPTION_HIDDEN, NULL, 0}, /* view_prepare() starts it so */
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct wish *wish = state->input;

	switch (key) {
	case 'f':
		wish->follow = true;
		return 0;
	case KEY_CDI:
		wish->cdi = true;
		return 0;
	case KEY_KEEP:
		wish->keep = true;
		return 0;
	case ARGP_KEY_ARG:
		if (wish->dir)
			argp_usage(state);
		wish->dir = arg;
		return 0;
	default:
		return arguments_needed(key, state);
	}
}

static const char doc[] =
	"Write the files that the kernel would show for the devices (/sys/class/infiniband, "
	"/dev/infiniband and the PCI tree) into a directory.";

int command_view(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "DIR",
		.doc = doc,
	};
	static char name[] = "verbatim view";
	struct wish wish = {0};

	if (arguments_parse(&argp, name, 0, argc, argv, &wish))
		return EXIT_FAILURE;
	if (wish.keep)
		return keeper_run(wish.dir);
	if (own_place_make(wish.dir) || view_write(wish.dir) ||
	    (wish.cdi && cdi_write(stdout, wish.dir))) {
		fprintf(stderr, "verbatim view: %s\n", view_why());
		return EXIT_FAILURE;
	}
	return wish.follow ? keeper_follow(wish.dir) : EXIT_SUCCESS;
}
