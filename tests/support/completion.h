/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waiting for completions and for asynchronous events. A wait polls, yields the processor, and
 * sleeps between polls once it lasts (wait_once() of clock.h); every wait has an end.
 */
#ifndef TESTS_SUPPORT_COMPLETION_H
#define TESTS_SUPPORT_COMPLETION_H

#include <stdbool.h>

#include <infiniband/verbs.h>

enum {
	COMPLETION_WAIT_MS = 20000, /* for one that must come, however slow the machine */
	COMPLETION_QUIET_MS = 60,   /* for one that must not come */
};

/* Polls until @most completions have come or @ms have passed. Returns how many came. */
int completion_poll(struct ibv_cq *cq, struct ibv_wc *wc, int most, unsigned int ms);
/* Polls until one completion came (true) or the time is over (false). */
bool completion_try(struct ibv_cq *cq, struct ibv_wc *wc, unsigned int ms);

/* These end the test on failure. The first: one completion of any status. */
void completion_next(struct ibv_cq *cq, struct ibv_wc *wc);
/* One completion of this wr_id and status; prints the one that came instead. @wc may be NULL. */
void completion_expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
		       struct ibv_wc *wc);
/* No completion for this long. */
void completion_none(struct ibv_cq *cq, unsigned int ms);

void completion_print(const struct ibv_wc *wc);

/* Whether a descriptor, of a channel or of asynchronous events, becomes readable within the time. */
bool readable(int fd, int ms);
/* The next asynchronous event within the time, acknowledged; -1: none came. */
int event_next(struct ibv_context *context, unsigned int ms);

/* Compares statuses, as EXPECT_EQ does, and prints their names; -1 stands for "no completion". */
#define EXPECT_STATUS(got, want) expect_status((int)(got), (int)(want), __FILE__, __LINE__)
bool expect_status(int got, int want, const char *file, int line);

#endif
