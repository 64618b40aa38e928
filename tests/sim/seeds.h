/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The command line of a simulator: which seeds to run, and what to say of them. */
#ifndef TESTS_SIM_SEEDS_H
#define TESTS_SIM_SEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEEDS_TEXT 500

struct seeds_of {
	const char *program;
	void *world; /* the argument of the functions; NULL: there is no memory */
	/* Makes the plan of a seed before it runs, for a trace. */
	void (*choose)(void *world, uint64_t seed);
	void (*describe)(void *world, char *text, size_t size);
	/* Runs one seed to its end. True if everything was right. */
	bool (*run)(void *world, uint64_t seed, bool trace);
	/* After a fault: when and what. */
	void (*fault)(void *world, uint64_t *at_ns, const char **text);
	/* After seeds that were right: what they have shown. */
	void (*praise)(void *world, unsigned long long seeds);
};

/* --seeds A..B | --seeds N | --seed N [--trace]. Stops at the first seed that fails. The exit status. */
int seeds_main(int argc, char **argv, const struct seeds_of *what);

#endif
