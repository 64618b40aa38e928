/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* `verbatim doctor`: makes all checks in order. */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "arguments.h"
#include "commands.h"
#include "doctor/checks.h"
#include "doctor/finding.h"

struct wish {
	const char *program;
};

static const char doc[] =
	"Say in order what stands between this machine, or the program CMD, and a device that works, each with its "
	"cure. The last check transfers data between two processes, through shared memory and by UDP. CMD is looked at, and "
	"not run. The exit status is 0 only if the transfers have worked and nothing else is wrong.";

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct wish *wish = state->input;

	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	/* The arguments that follow are those of the program. */
	wish->program = arg;
	(void)arguments_rest(state);
	return 0;
}

int command_doctor(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse, .args_doc = "[--] [CMD [ARG...]]", .doc = doc};
	static char name[] = "verbatim doctor";
	struct wish wish = {0};
	bool works;

	if (arguments_parse(&argp, name, ARGP_IN_ORDER, argc, argv, &wish))
		return EXIT_FAILURE;
	check_library();
	check_interfaces();
	check_kernel();
	check_limits();
	check_surroundings();
	check_others();
	check_devices();
	if (wish.program)
		check_program(wish.program);
	works = check_transfer();
	if (!finding_problems())
		printf("All is well.\n");
	else
		printf("%u problem%s%s.\n", finding_problems(), finding_problems() > 1 ? "s" : "",
		       works ? "; the transfers have worked nevertheless" : "");
	return works && !finding_problems() ? EXIT_SUCCESS : EXIT_FAILURE;
}
