/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Many processes that do the same side by side, and meet between the steps. */
#ifndef BENCH_CROWD_H
#define BENCH_CROWD_H

#include <pthread.h>
#include <stdint.h>

#define CROWD_FIGURES 16

struct crowd_shared {
	pthread_barrier_t barrier;
	uint32_t count;
	/* What each process found, by process and figure. */
	double *found[CROWD_FIGURES];
	uint32_t *numbers; /* what the processes tell each other; the caller's */
};

/* Shared by processes that are started later. `numbers`: how many of them. */
struct crowd_shared *crowd_make(uint32_t count, uint64_t numbers);
/* Returns when all processes of the crowd have called it. */
void crowd_meet(struct crowd_shared *crowd);
/*
 * To be called after a look that found nothing; `begun`: when something was found last. Hundreds of
 * processes share the processors: a process that finds nothing for long leaves them to the others.
 */
void crowd_wait(const struct crowd_shared *crowd, uint64_t begun);
/* Runs `member` in `count` processes; ends the program if one of them fails. */
void crowd_run(struct crowd_shared *crowd,
	       void (*member)(struct crowd_shared *crowd, uint32_t self));
/* The median and the most of what the processes found, as two figures. */
void crowd_figure(struct crowd_shared *crowd, int which, const char *median_name,
		  const char *most_name);

#endif
