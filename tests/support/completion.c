/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Polling, and what is printed of a completion that was not wanted. */
#include "support/completion.h"

#include <poll.h>
#include <stdio.h>

#include "support/check.h"
#include "support/clock.h"

/*
 * How often a turn polls: for what comes at once, and of a wait that sleeps. An instrumented library takes as
 * long for 256 polls as a turn sleeps.
 */
enum { TRIES_AT_FIRST = 256, TRIES_LATER = 8 };

void completion_print(const struct ibv_wc *wc)
{
	fprintf(stderr,
		"completion: wr_id %#llx status %d (%s) opcode %d qp %#x byte_len %u vendor_err %#x\n",
		(unsigned long long)wc->wr_id, (int)wc->status, ibv_wc_status_str(wc->status),
		(int)wc->opcode, wc->qp_num, wc->byte_len, wc->vendor_err);
}

int completion_poll(struct ibv_cq *cq, struct ibv_wc *wc, int most, unsigned int ms)
{
	unsigned int tries = TRIES_AT_FIRST;
	uint64_t begun = 0;
	int came = 0;

	for (;;) {
		for (unsigned int i = 0; i < tries; i++) {
			int got = ibv_poll_cq(cq, most - came, wc + came);

			CHECK_SAY(got >= 0 && got <= most - came, "ibv_poll_cq returned %d", got);
			came += got;
			if (came == most)
				return came;
		}
		/* The clock is read once in a while only: most completions are there at once. */
		if (!begun)
			begun = now_us();
		else if (now_us() - begun >= (uint64_t)ms * 1000u)
			return came;
		/* The machine may have fewer cores than the test has pollers. */
		if (wait_once(begun))
			tries = TRIES_LATER;
	}
}

bool completion_try(struct ibv_cq *cq, struct ibv_wc *wc, unsigned int ms)
{
	return completion_poll(cq, wc, 1, ms) == 1;
}

void completion_next(struct ibv_cq *cq, struct ibv_wc *wc)
{
	CHECK_SAY(completion_try(cq, wc, COMPLETION_WAIT_MS), "no completion within %d ms",
		  COMPLETION_WAIT_MS);
}

void completion_expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
		       struct ibv_wc *wc)
{
	struct ibv_wc own = {0};

	if (!wc)
		wc = &own;
	CHECK_SAY(completion_try(cq, wc, COMPLETION_WAIT_MS),
		  "no completion within %d ms, expected wr_id %#llx with status %d (%s)",
		  COMPLETION_WAIT_MS, (unsigned long long)wr_id, (int)status,
		  ibv_wc_status_str(status));
	if (wc->wr_id != wr_id || wc->status != status) {
		completion_print(wc);
		check_failed(__FILE__, __LINE__, "expected wr_id %#llx with status %d (%s)",
			     (unsigned long long)wr_id, (int)status, ibv_wc_status_str(status));
	}
}

void completion_none(struct ibv_cq *cq, unsigned int ms)
{
	struct ibv_wc wc = {0};

	if (!completion_try(cq, &wc, ms))
		return;
	completion_print(&wc);
	check_failed(__FILE__, __LINE__, "a completion where none was expected");
}

bool readable(int fd, int ms)
{
	struct pollfd poller = {.fd = fd, .events = POLLIN};

	return poll(&poller, 1, ms) == 1 && poller.revents & POLLIN;
}

int event_next(struct ibv_context *context, unsigned int ms)
{
	struct pollfd readable = {.fd = context->async_fd, .events = POLLIN};
	struct ibv_async_event event = {0};

	if (poll(&readable, 1, (int)ms) <= 0)
		return -1;
	CHECK_ZERO(ibv_get_async_event(context, &event));
	ibv_ack_async_event(&event);
	return (int)event.event_type;
}

static const char *status_name(int status)
{
	return status < 0 ? "no completion" : ibv_wc_status_str((enum ibv_wc_status)status);
}

bool expect_status(int got, int want, const char *file, int line)
{
	return expect_say(got == want, file, line, "status is %d (%s), want %d (%s)", got,
			  status_name(got), want, status_name(want));
}
