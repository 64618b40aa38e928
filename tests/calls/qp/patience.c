/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How long a requester waits at least before it gives up: the receiver's RNR timer once for each
 * retry, the acknowledgement time-out once for each try. Lower bounds only, which no busy machine
 * can break; and both counters start afresh when there was progress.
 */
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"

static enum ep_place place;

static double time_to(struct endpoint *near, enum ibv_wc_status status)
{
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, NULL, 0);
	uint64_t begin = now_us();
	struct ibv_wc wc;

	CHECK(ep_post_send(near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(near, EP_SEND_CQ, &wc), status);
	return (double)(now_us() - begin) / 1e3;
}

/* The timer is the receiver's, named in its NAK; the retries are the sender's (IBA 9.7.5.2.8). */
static void receiver_not_ready(uint8_t timer, double timer_ms, uint8_t retries)
{
	struct ep_config near_config = ep_defaults(IBV_QPT_RC), far_config = near_config;
	struct endpoint near, far;
	double took;

	expect_case("RNR timer %u, %u retries", timer, retries);
	near_config.rnr_retry = retries;
	near_config.min_rnr_timer = 1;
	far_config.min_rnr_timer = timer;
	ep_pair(&near, &far, &near_config, &far_config, place);
	took = time_to(&near, IBV_WC_RNR_RETRY_EXC_ERR);
	EXPECT_SAY(took >= timer_ms * retries, "gave up after %.1f ms", took);
	ep_pair_close(&near, &far);
}

enum { RETRIES = 6, TRIES = 20 };

/*
 * A receive is posted one or two RNR timers after the message was sent, of the RETRIES that there
 * are. False: this process was away for longer than all of them.
 */
static bool in_time(struct endpoint *near, struct endpoint *far, uint64_t timer_us)
{
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, NULL, 0);
	uint64_t begin = now_us();
	struct ibv_wc wc;

	CHECK(ep_post_send(near, &wr) == 0);
	usleep((useconds_t)(timer_us * 3 / 2));
	CHECK(ep_post_recv(far, 1, NULL, 0) == 0);
	if (now_us() - begin >= RETRIES * timer_us)
		return false;
	EXPECT_STATUS(ep_poll_one(near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_STATUS(ep_poll_one(far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	return true;
}

/* Progress in between gives all RNR retries back. */
static void afresh(void)
{
	struct ep_config near_config = ep_defaults(IBV_QPT_RC), far_config = near_config;
	struct endpoint near, far;
	int times = 0;

	expect_case("RNR retries start afresh");
	near_config.rnr_retry = RETRIES;
	far_config.min_rnr_timer = 22; /* 20.48 ms */
	for (int i = 0; i < TRIES && times <= RETRIES; i++) {
		ep_pair(&near, &far, &near_config, &far_config, place);
		for (times = 0; times <= RETRIES && in_time(&near, &far, 20480);)
			times++;
		ep_pair_close(&near, &far);
	}
	EXPECT(times > RETRIES);
}

/*
 * 1 + retry_cnt tries of the time-out. A queue pair of the own process that has never been
 * connected is not waited for longer than 1.5 s: only this program could connect it.
 */
static double not_answered(uint8_t timeout, double timeout_ms, uint8_t retries)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	double least = timeout_ms * (retries + 1), took;
	struct endpoint near, far;

	expect_case("timeout %u, %u retries", timeout, retries);
	config.timeout = timeout;
	config.retry_cnt = retries;
	ep_open(&near, &config, EP_HERE);
	ep_open(&far, &config, place);
	CHECK(ep_bring_to(&far, &near.local, IBV_QPS_INIT) == 0);
	CHECK(ep_bring_to(&near, &far.local, IBV_QPS_RTS) == 0);
	took = time_to(&near, IBV_WC_RETRY_EXC_ERR);
	if (place == EP_HERE && least > 1500)
		least = 1500;
	EXPECT_SAY(took >= least, "gave up after %.1f of %.1f ms", took, least);
	ep_pair_close(&near, &far);
	return took;
}

/* 0.3 s against 1.4 s: a machine that turns them round has other worries. */
static void retries_count(void)
{
	double none = not_answered(16, 268.4, 0), all = not_answered(16, 268.4, 7);

	EXPECT_SAY(none < all, "no retry took %.1f ms, seven took %.1f ms", none, all);
}

int main(int argc, char **argv)
{
	place = ep_main(argc, argv);
	receiver_not_ready(20, 10.24, 3);
	receiver_not_ready(24, 40.96, 1);
	receiver_not_ready(0, 655.36, 1);
	receiver_not_ready(1, 0.01, 6);
	afresh();
	not_answered(12, 16.7, 2);
	not_answered(14, 67.1, 3);
	retries_count();
	not_answered(18, 1073.7, 1);
	return expect_done();
}
