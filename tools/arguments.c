/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "arguments.h"

#include <errno.h>

int arguments_parse(const struct argp *argp, char *name, unsigned int flags, int argc, char **argv,
		    void *wish)
{
	argv[-1] = name; /* where the command's own name was */
	return argp_parse(argp, argc + 1, argv - 1, flags, NULL, wish);
}

char **arguments_rest(struct argp_state *state)
{
	char **rest = state->argv + state->next - 1;

	state->next = state->argc;
	return rest;
}

error_t arguments_needed(int key, struct argp_state *state)
{
	if (key != ARGP_KEY_NO_ARGS)
		return ARGP_ERR_UNKNOWN;
	argp_usage(state);
	return EINVAL;
}
