/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the commands of `verbatim` have in common in reading their arguments (argp). */
#ifndef TOOLS_ARGUMENTS_H
#define TOOLS_ARGUMENTS_H

#include <argp.h>

/*
 * Reads the arguments of a command, which follow its name in the program's arguments. `name`
 * ("verbatim run") is what messages begin with; `flags` and `wish` are argp_parse(3)'s flags and
 * input. 0, or an errno.
 */
int arguments_parse(const struct argp *argp, char *name, unsigned int flags, int argc, char **argv,
		    void *wish);

/*
 * At ARGP_KEY_ARG: this argument and all that follow belong to another program or command, options
 * included. Returns them; NULL ends them.
 */
char **arguments_rest(struct argp_state *state);

/* For the keys that a parser does not know, where at least one argument is needed. */
error_t arguments_needed(int key, struct argp_state *state);

#endif
