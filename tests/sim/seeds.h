/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a simulator defines, so that seeds.c, which has main(), runs it: by its command line, which
 * says which seeds, and whether with a trace.
 */
#ifndef TESTS_SIM_SEEDS_H
#define TESTS_SIM_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

struct world;

extern const char simulator_name[];

/* NULL: there is no memory. */
struct world *world_create(void);
void world_destroy(struct world *w);

/* Makes the plan of a seed; world_run() does so, too. */
void plan_choose(struct world *w, uint64_t seed);
void plan_describe(const struct world *w, char *text, unsigned int size);

/* Runs one seed to its end. True if everything was right. */
bool world_run(struct world *w, uint64_t seed, bool trace);
/* After a fault: when (ns) and what. */
uint64_t simulator_fault(const struct world *w, const char **text);
/* After seeds that were right: prints what they have shown. */
void simulator_praise(const struct world *w, unsigned long long seeds);

#endif
