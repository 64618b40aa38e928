/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sim: runs seeds of the protocol's simulator (sim/seeds.h). */
#include <stdio.h>

#include "sim/seeds.h"
#include "world.h"

static void choose(void *world, uint64_t seed)
{
	workload_choose(world, seed);
}

static void describe(void *world, char *text, size_t size)
{
	workload_describe(world, text, (unsigned int)size);
}

static bool run(void *world, uint64_t seed, bool trace)
{
	return world_run(world, seed, trace);
}

static void fault(void *world, uint64_t *at_ns, const char **text)
{
	const struct world *w = world;

	*at_ns = w->now;
	*text = w->fault;
}

static void praise(void *world, unsigned long long seeds)
{
	const struct world *w = world;

	printf("%llu seeds, %lu packets delivered, %lu lost: every byte and every completion as the oracle says\n",
	       seeds, w->delivered, w->lost);
}

int main(int argc, char **argv)
{
	struct world *w = world_create();
	const struct seeds_of what = {"sim", w, choose, describe, run, fault, praise};
	int status = seeds_main(argc, argv, &what);

	if (w)
		world_destroy(w);
	return status;
}
