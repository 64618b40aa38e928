/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The one source of random numbers of a run (splitmix64). */
#include "world.h"

uint64_t sim_random(struct world *w)
{
	uint64_t z = (w->random += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

unsigned int sim_below(struct world *w, unsigned int n)
{
	return n ? (unsigned int)(sim_random(w) % n) : 0;
}

bool sim_chance(struct world *w, unsigned int per_mille)
{
	return sim_below(w, 1000) < per_mille;
}

uint64_t sim_time(struct world *w, uint64_t most)
{
	return 1 + (sim_random(w) % most >> sim_below(w, 20));
}
