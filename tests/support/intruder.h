/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What tests of hostile neighbours share: another user, calls of a process's names, and the traffic
 * that must go on meanwhile. All functions end the test on failure.
 */
#ifndef TESTS_SUPPORT_INTRUDER_H
#define TESTS_SUPPORT_INTRUDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "support/endpoint.h"
#include "support/network.h"
#include "support/process.h"

enum { INTRUDER_VICTIM = 65532, INTRUDER_STRANGER = 65533 };

/* Changes the user for good: all three ids, and no supplementary groups. */
void user_become(uid_t user);

/* Sets the limit of descriptors of this process. */
void descriptors_limit(unsigned int most);

/*
 * A socket connected to one of the library's names in this namespace, or -1: no name could be
 * called. Never blocks.
 */
int name_call_any(unsigned int which);

/*
 * Messages of 64 bytes back and forth between two connected sides that sleep for events. The
 * endpoints must have channels.
 */
void ping_by_events(struct endpoint *ep, unsigned int rounds, bool first);

/* Two processes of INTRUDER_VICTIM that do so, and end when all rounds are done. `ping` stays valid. */
struct ping {
	const char *promise;
	unsigned int rounds;
};
void victims_start(struct process *a, struct process *b, const struct ping *ping);

#endif
