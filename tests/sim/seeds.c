/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The command line of a simulator. */
#include "sim/seeds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static bool run_one(const struct seeds_of *what, uint64_t seed, bool trace)
{
	char text[SEEDS_TEXT];
	const char *fault;
	uint64_t at;

	if (trace) {
		what->choose(what->world, seed);
		what->describe(what->world, text, sizeof(text));
		puts(text);
	}
	if (what->run(what->world, seed, trace))
		return true;
	what->describe(what->world, text, sizeof(text));
	what->fault(what->world, &at, &fault);
	printf("%s\nseed %llu FAILED at %llu ns: %s\nsee it again with: %s --seed %llu --trace\n",
	       text, (unsigned long long)seed, (unsigned long long)at, fault, what->program,
	       (unsigned long long)seed);
	return false;
}

int seeds_main(int argc, char **argv, const struct seeds_of *what)
{
	struct wish wish = {.first = 1};

	if (!wanted(argc, argv, &wish)) {
		fprintf(stderr, "usage: %s --seeds A..B | --seeds N | --seed N [--trace]\n",
			what->program);
		return 2;
	}
	if (!what->world) {
		fprintf(stderr, "%s: no memory\n", what->program);
		return 2;
	}
	for (uint64_t seed = wish.first; seed <= wish.last; seed++) {
		if (!run_one(what, seed, wish.trace))
			return 1;
	}
	what->praise(what->world, (unsigned long long)(wish.last - wish.first + 1));
	return 0;
}
