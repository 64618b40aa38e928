/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every kind of RC message in several sizes over one connected pair, contents
 * checked at both ends: what "everything works" means in these tests.
 */
#ifndef TESTS_PROCS_EXERCISE_H
#define TESTS_PROCS_EXERCISE_H

#include "support/endpoint.h"

enum { EXERCISE_SIZE = 4 * 1024 * 1024 };

/*
 * Both sides have a buffer of EXERCISE_SIZE and call their half with a socket to
 * the other: SEND, WRITE, READ, fetch-and-add and
 * compare-and-swap, `rounds` times each size. Ends the test on any difference.
 */
void exercise_initiate(struct endpoint *ep, int sock, unsigned int rounds);
void exercise_serve(struct endpoint *ep, int sock, unsigned int rounds);

/* Opens, connects over sock, plays one half, closes. */
void exercise_as_initiator(int sock, unsigned int rounds);
void exercise_as_target(int sock, unsigned int rounds);

/*
 * One WRITE of 4 KiB to a target that is stopped right now: whether it finished
 * within the time. When it did not, it is still outstanding (wr_id 77).
 */
bool exercise_write_finishes(struct endpoint *ep, unsigned int timeout_ms);

#endif
