/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* `verbatim view`: writes a view into a directory. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "view/view.h"

struct wish {
	const char *dir;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct wish *wish = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (wish->dir)
			argp_usage(state);
		wish->dir = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_usage(state);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const char doc[] =
	"Write the files that the kernel would show for the devices (/sys/class/infiniband, "
	"/dev/infiniband and the PCI tree) into a directory.";

int command_view(int argc, char **argv)
{
	static const struct argp argp = {.parser = parse, .args_doc = "DIR", .doc = doc};
	static char name[] = "verbatim view";
	struct wish wish = {0};

	argv[-1] = name;
	if (argp_parse(&argp, argc + 1, argv - 1, 0, NULL, &wish))
		return EXIT_FAILURE;
	if (!view_write(wish.dir))
		return EXIT_SUCCESS;
	fprintf(stderr, "verbatim view: %s\n", view_why());
	return EXIT_FAILURE;
}
