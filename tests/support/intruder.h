/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What tests of hostile neighbours share: a network namespace of their own, another user, calls of a process's names, and the traffic
 * that has to go on meanwhile. All functions end the test on failure.
 */
#ifndef TESTS_SUPPORT_INTRUDER_H
#define TESTS_SUPPORT_INTRUDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "support/endpoint.h"

enum { INTRUDER_VICTIM = 65532, INTRUDER_STRANGER = 65533 };

/* Into an own network namespace with a loopback interface; without root the test is skipped. */
void network_leave(void);

/* For good; all three ids and no further groups. */
void user_become(uid_t user);

/* The limit of descriptors of this process. */
void descriptors_limit(unsigned int most);

/* A socket connected to some name of the library's in this namespace, or -1: none could be called. Never blocks. */
int name_call_any(unsigned int which);

/* Messages of 64 bytes to and fro between two connected sides that sleep for events; the endpoints have channels. */
void ping_by_events(struct side *side, unsigned int rounds, bool first);

#endif
