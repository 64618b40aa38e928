/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The `verbatim` program: picks the command and reads the options they share. */
#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "commands.h"
#include "config.h"
#include "own_library.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"run", command_run},         {"devices", command_devices}, {"view", command_view},
	{"explain", command_explain}, {"doctor", command_doctor},
};

struct choice {
	const struct command *command;
	int argc;
	char **argv;
};

/* argp is in the C library, which finds this only if it is exported. */
__attribute__((visibility("default")))
const char *argp_program_version = "verbatim " VERBATIM_VERSION;

static const char doc[] =
	"RDMA verbs on software devices of this host.\v"
	"Commands:\n"
	"  run [--] CMD ARG...   run a program on this library instead of the system's libibverbs\n"
	"  devices               list devices, addresses and states, and what processes can reach\n"
	"  view DIR              write the files that other programs look for under /sys and /dev\n"
	"  explain [SUBJECT]     tell what a code, a status or an errno means, or what failed in a process\n"
	"  doctor [--] [CMD]     say what stands between this machine, or CMD, and a device that works\n";

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	}
	return NULL;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct choice *choice = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		choice->command = find_command(arg);
		if (!choice->command)
			argp_error(state, "no such command: %s", arg);
		choice->argc = state->argc - state->next;
		choice->argv = arguments_rest(state) + 1;
		return 0;
	default:
		return arguments_needed(key, state);
	}
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "COMMAND [ARG...]",
		.doc = doc,
	};
	struct choice choice = {0};

	own_library_ensure(argv);
	if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &choice) || !choice.command)
		return EXIT_FAILURE;
	return choice.command->run(choice.argc, choice.argv);
}
