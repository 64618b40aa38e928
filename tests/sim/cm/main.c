/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sim-cm --seeds A..B | --seed N [--trace]: runs seeds, stops at the first that fails, and says how to
 * see it again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

static int usage(void)
{
	fputs("usage: sim-cm --seeds A..B | --seeds N | --seed N [--trace]\n", stderr);
	return 2;
}

static bool run_one(struct world *w, uint64_t seed, bool trace)
{
	char text[500];
	bool good;

	if (trace) {
		plan_choose(w, seed);
		plan_describe(w, text, sizeof(text));
		puts(text);
	}
	good = world_run(w, seed, trace);
	if (!good) {
		plan_describe(w, text, sizeof(text));
		printf("%s\nseed %llu FAILED at %llu ns: %s\nsee it again with: sim-cm --seed %llu --trace\n",
		       text, (unsigned long long)seed, (unsigned long long)w->now, w->fault,
		       (unsigned long long)seed);
	}
	return good;
}

int main(int argc, char **argv)
{
	uint64_t first = 1;
	uint64_t last = 0;
	bool trace = false;
	bool good = true;
	struct world *w;

	for (int i = 1; i < argc; i++) {
		char *rest = NULL;

		if (!strcmp(argv[i], "--trace")) {
			trace = true;
		} else if (!strcmp(argv[i], "--seeds") && i + 1 < argc) {
			last = strtoull(argv[++i], &rest, 0);
			if (!strncmp(rest, "..", 2)) {
				first = last;
				last = strtoull(rest + 2, NULL, 0);
			}
		} else if (!strcmp(argv[i], "--seed") && i + 1 < argc) {
			first = last = strtoull(argv[++i], NULL, 0);
		} else {
			return usage();
		}
	}
	if (last < first)
		return usage();
	w = world_create();
	if (!w) {
		fputs("sim-cm: no memory\n", stderr);
		return 2;
	}
	for (uint64_t seed = first; seed <= last && good; seed++)
		good = run_one(w, seed, trace);
	if (good)
		printf("%llu seeds, %lu messages delivered, %lu lost, %lu connections: every event as the oracle says\n",
		       (unsigned long long)(last - first + 1), w->delivered, w->lost,
		       w->established);
	world_destroy(w);
	return good ? 0 : 1;
}
