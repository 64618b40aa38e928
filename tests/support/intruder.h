/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What tests of hostile neighbours share: a network namespace, another user, calls of a process's
 * names, and the traffic that must go on meanwhile. All functions end the test on failure.
 */
#ifndef TESTS_SUPPORT_INTRUDER_H
#define TESTS_SUPPORT_INTRUDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "support/endpoint.h"

enum { INTRUDER_VICTIM = 65532, INTRUDER_STRANGER = 65533 };

/*
 * Moves into a new network namespace with a loopback interface. Without root the test is skipped.
 */
void network_leave(void);

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

#endif
