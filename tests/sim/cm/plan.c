/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a seed means. */
#include <stdio.h>

#include "world.h"

void plan_choose(struct world *w, uint64_t seed)
{
	struct sim_config *c = &w->config;

	w->random = seed * 0x2545f4914f6cdd1dull + 1;
	*c = (struct sim_config){.seed = seed};
	c->nodes = 2 + sim_below(w, 2);
	c->attempts = 1 + sim_below(w, ORACLE_ATTEMPTS);
	c->heavy = sim_chance(w, 100);
	c->loss = sim_chance(w, 300) ? 0 : c->heavy ? 300 + sim_below(w, 500) : sim_below(w, 200);
	c->twice = sim_chance(w, 300) ? 0 : sim_below(w, 300);
	c->late = sim_chance(w, 300) ? 0 : sim_below(w, 200);
	c->strange = sim_chance(w, 500) ? 0 : sim_below(w, 100);
	c->delay_ns = sim_time(w, 30 * SIM_MS);
	c->jitter_ns = sim_time(w, 100 * SIM_MS);
	c->lateness_ns = sim_time(w, 20 * SIM_MS);
	c->backlog = sim_chance(w, 300) ? 1 + (int)sim_below(w, 4) : 128;
	c->crashes = sim_chance(w, 300) ? 1 + sim_below(w, 3) : 0;
	c->pauses = sim_chance(w, 200) ? 1 + sim_below(w, 200) : 0;
	if (c->pauses) { /* copies of one request meet different listeners */
		c->twice = 300 + sim_below(w, 500);
		c->jitter_ns = sim_random(w) % (200 * SIM_MS);
	}
	c->same_block = sim_chance(w, 500);
	c->neighbours = seed % 3 == 0;
	c->releases = sim_chance(w, 500) ? 0 : sim_below(w, 300);
	c->silences = sim_chance(w, 500) ? 0 : sim_below(w, 100);
	c->rejects = sim_chance(w, 300) ? 0 : sim_below(w, 400);
}

void plan_schedule(struct world *w)
{
	const struct sim_config *c = &w->config;
	static const uint64_t spans[] = {SIM_SECOND, 60 * SIM_SECOND, 500 * SIM_SECOND};
	/* Lives after a crash have connections, too. */
	uint64_t span = spans[c->crashes ? 2 : c->pauses ? 0 : sim_below(w, 3)];

	for (unsigned int i = 0; i < c->nodes; i++)
		world_schedule(w, SIM_LISTEN, sim_chance(w, 100) ? sim_time(w, 3 * SIM_SECOND) : 1,
			       i, 0);
	for (unsigned int i = 0; i < c->attempts; i++) {
		struct oracle_attempt *a = &w->oracle.attempt[i];

		a->sidr = sim_chance(w, 200);
		a->from = sim_below(w, c->nodes);
		/* Now and then to itself. */
		a->to = sim_below(w, c->nodes);
		world_schedule(w, SIM_CONNECT,
			       2 + (sim_chance(w, 500) ? sim_time(w, span) : sim_random(w) % span),
			       i, 0);
	}
	for (unsigned int i = 0; i < c->crashes; i++)
		world_schedule(w, SIM_CRASH, sim_random(w) % (200 * SIM_SECOND),
			       sim_below(w, c->nodes), 0);
	for (unsigned int i = 0; i < c->pauses; i++)
		world_schedule(w, SIM_UNLISTEN,
			       sim_chance(w, 500) ? sim_time(w, span) : sim_random(w) % span,
			       sim_below(w, c->nodes), 0);
}

void plan_describe(const struct world *w, char *text, unsigned int size)
{
	const struct sim_config *c = &w->config;

	snprintf(
		text, size,
		"seed %llu: %u nodes, %u attempts, loss %u twice %u late %u strange %u of 1000%s, "
		"delay %llu+%llu us, backlog %d, %u crashes%s%s, %u pauses, releases %u silences %u rejects %u",
		(unsigned long long)c->seed, c->nodes, c->attempts, c->loss, c->twice, c->late,
		c->strange, c->heavy ? " (heavy)" : "", (unsigned long long)c->delay_ns / 1000,
		(unsigned long long)c->jitter_ns / 1000, c->backlog, c->crashes,
		c->same_block ? " in the same block" : "", c->neighbours ? " of neighbours" : "",
		c->pauses, c->releases, c->silences, c->rejects);
}
