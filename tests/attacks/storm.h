/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the referee and the workers of the storm share. Each worker has a slot; a worker that was
 * killed has a successor in it. Between every two slots there is a link of each kind, a pair of
 * queue pairs that is made anew (another epoch) whenever one of them has failed or its process was
 * killed. The lower slot decides about epochs; each side publishes its half by its own mail.
 */
#ifndef TESTS_ATTACKS_STORM_H
#define TESTS_ATTACKS_STORM_H

#include "support/xrc.h"

#include <stdatomic.h>

enum { STORM_SLOTS = 5, STORM_BUFFER = 65536 };
enum storm_kind { STORM_RC, STORM_XRC, STORM_KINDS };

/*
 * The longest that a call may take while others stand still, as the manual pages have it, and what
 * a crowded machine adds to that.
 */
enum storm_call {
	STORM_POST,   /* post, poll: never wait for another process */
	STORM_MAKE,   /* making and connecting queue pairs, registering */
	STORM_REVOKE, /* deregistering, destroying, freeing: marks of living peers */
	STORM_DOMAIN, /* ibv_open_xrcd(3) */
	STORM_CALLS
};

static const struct {
	const char *name;
	unsigned int bound_ms;
} storm_calls[STORM_CALLS] = {
	{"post and poll", 1000}, {"make", 2000}, {"revoke", 3000}, {"open_xrcd", 3000}};

enum { STORM_CROWD_MS = 3000 };

/* epoch 0: being written. */
struct storm_mail {
	_Atomic uint32_t epoch;
	struct peer peer;
	uint32_t dm_rkey;
	struct peer scratch; /* registered and deregistered all the time */
};

struct storm_link {
	_Atomic uint32_t epoch;  /* the lower slot's wish */
	_Atomic uint32_t broken; /* the epoch in which the higher slot's half failed */
	struct storm_mail mail[2];
};

struct storm {
	char path[64]; /* the file of the XRC domain */
	_Atomic bool end;
	_Atomic uint32_t
		stops[STORM_SLOTS]; /* grows when the worker is stopped, and when it goes on */
	_Atomic uint64_t done[STORM_KINDS][STORM_SLOTS][STORM_SLOTS]; /* requests from, to */
	/* For messages: what a slot's half is like. */
	struct storm_state {
		uint32_t epoch;
		int connected, broken, outstanding, last_status;
		uint64_t received; /* XRC: of its queue */
	} state[STORM_KINDS][STORM_SLOTS][STORM_SLOTS];
	_Atomic uint64_t longest_us[STORM_CALLS];
	_Atomic uint32_t descriptors[STORM_SLOTS];
	struct xrc_target queue[STORM_SLOTS];
	struct storm_link link[STORM_KINDS][STORM_SLOTS][STORM_SLOTS]; /* [lower][higher] */
};

extern struct storm *storm;
/* Slots of one host are those of one parity then; NULL: all are on one. */
extern const char *storm_net;

/* The main of a worker; the argument is its slot. */
int storm_worker(int sock, void *slot);

#endif
