/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages between the referee of killed_peer and its survivor process. */
#ifndef TESTS_PROCS_SURVIVOR_H
#define TESTS_PROCS_SURVIVOR_H

#include "support/endpoint.h"

#include <stdbool.h>
#include <stdint.h>

enum { KILL_SIZE = 256 * 1024, KILL_MESSAGE = 512, KILL_RECEIVES = 16, KILL_WINDOW = 8 };

/* What survivor and victim do before the victim dies. */
enum kill_mode {
	KILL_ONE_SIDED,  /* survivor: WRITE, READ, ATOMIC */
	KILL_SENDS,      /* survivor: SEND */
	KILL_MIXED,      /* both sides: everything */
	KILL_RECEIVING,  /* victim: everything; the survivor has only receives posted */
	KILL_NO_CONTACT, /* the victim is dead before the survivor connects */
	KILL_MODES
};

/* Referee to survivor: the next round, or the end. */
struct kill_round {
	bool quit;
	enum kill_mode mode;
	bool forked;
	bool victim_polls;
};

/* Survivor to referee. */
struct kill_report {
	uint64_t error_after_us; /* from the kill (or the first post after it) to the last flush */
	uint64_t requests;
	int descriptors;
};

/* Seen by all processes. */
struct kill_shared {
	volatile uint64_t canary;
	volatile uint64_t killed_us;
	volatile bool stop;
};

const char *kill_mode_name(enum kill_mode mode);

/* Posts request `number` of a mix, signalled. */
void kill_mix(struct endpoint *ep, uint64_t number, bool sends, bool one_sided);

/* The survivor process; argument is the struct kill_shared. */
int survivor_main(int sock, void *argument);

#endif
