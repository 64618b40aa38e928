/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The command line of a simulator: which seeds to run, and what to say of them. */
#include "sim/seeds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 500 }; /* bytes of the description of a plan */

struct wish {
	uint64_t first, last;
	bool trace;
};

static bool wanted(int argc, char **argv, struct wish *w)
{
	for (int i = 1; i < argc; i++) {
		char *rest = NULL;

		if (!strcmp(argv[i], "--trace")) {
			w->trace = true;
		} else if (!strcmp(argv[i], "--seeds") && i + 1 < argc) {
			w->last = strtoull(argv[++i], &rest, 0);
			if (!strncmp(rest, "..", 2)) {
				w->first = w->last;
				w->last = strtoull(rest + 2, NULL, 0);
			}
		} else if (!strcmp(argv[i], "--seed") && i + 1 < argc) {
			w->first = w->last = strtoull(argv[++i], NULL, 0);
		} else {
			return false;
		}
	}
	return w->last >= w->first;
}

static bool run_one(struct world *w, uint64_t seed, bool trace)
{
	const char *fault;
	char text[TEXT];
	uint64_t at;

	if (trace) {
		plan_choose(w, seed);
		plan_describe(w, text, sizeof(text));
		puts(text);
	}
	if (world_run(w, seed, trace))
		return true;
	plan_describe(w, text, sizeof(text));
	at = simulator_fault(w, &fault);
	printf("%s\nseed %llu FAILED at %llu ns: %s\nsee it again with: %s --seed %llu --trace\n",
	       text, (unsigned long long)seed, (unsigned long long)at, fault, simulator_name,
	       (unsigned long long)seed);
	return false;
}

/* Stops at the first seed that fails. */
static int run(struct world *w, const struct wish *wish)
{
	for (uint64_t seed = wish->first; seed <= wish->last; seed++) {
		if (!run_one(w, seed, wish->trace))
			return 1;
	}
	simulator_praise(w, (unsigned long long)(wish->last - wish->first + 1));
	return 0;
}

int main(int argc, char **argv)
{
	struct wish wish = {.first = 1};
	struct world *w;
	int status;

	if (!wanted(argc, argv, &wish)) {
		fprintf(stderr, "usage: %s --seeds A..B | --seeds N | --seed N [--trace]\n",
			simulator_name);
		return 2;
	}
	w = world_create();
	if (!w) {
		fprintf(stderr, "%s: no memory\n", simulator_name);
		return 2;
	}
	status = run(w, &wish);
	world_destroy(w);
	return status;
}
