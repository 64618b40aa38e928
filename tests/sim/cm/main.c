/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What sim/seeds.c is told of the simulator of the connection manager. */
#include <stdio.h>

#include "world.h"

const char simulator_name[] = "sim-cm";

uint64_t simulator_fault(const struct world *w, const char **text)
{
	*text = w->fault;
	return w->now;
}

void simulator_praise(const struct world *w, unsigned long long seeds)
{
	printf("%llu seeds, %lu messages delivered, %lu lost, %lu connections: every event as the oracle says\n",
	       seeds, w->delivered, w->lost, w->established);
}
