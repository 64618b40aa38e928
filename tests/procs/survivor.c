/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The process that outlives its peers in killed_peer: one connection per round
 * to a victim, and all the time one to the canary, served by events.
 */
#include "procs/survivor.h"

#include "procs/leftovers.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/process.h"
#include "support/qp_state.h"

#include <pthread.h>
#include <stdio.h>

/* One connection to a victim as the survivor sees it. */
struct watch {
	struct kill_shared *shared;
	struct resources *resources;
	struct ibv_cq *recv_cq;
	struct endpoint ep;
	uint64_t posted, completed;
	int flushed;
	bool error;
	struct ibv_wc first_error;
};

const char *kill_mode_name(enum kill_mode mode)
{
	static const char *const names[KILL_MODES] = {"victim dies under WRITE, READ and ATOMIC",
						      "victim dies under SENDs",
						      "victim dies while both sides initiate",
						      "victim dies as the only initiator",
						      "victim is dead before first contact"};

	return names[mode];
}

void kill_mix(struct endpoint *ep, uint64_t number, bool sends, bool one_sided)
{
	size_t size = (size_t)8 << (number * 7 % 14);
	size_t at = KILL_SIZE / 2;
	unsigned int flags = IBV_SEND_SIGNALED;
	int result;

	if (sends && (!one_sided || number % 4 == 3))
		result = ep_send(ep, number, 0, KILL_MESSAGE, flags);
	else if (number % 3 == 0)
		result = ep_read(ep, number, at, size, at, flags);
	else if (number % 7 == 1)
		result = ep_fetch_add(ep, number, 0, 0, 1, flags);
	else
		result = ep_write(ep, number, at, size, at, flags);
	CHECK_ZERO(result);
}

/* SUCCESS until RETRY_EXC, FLUSH from then on, in posting order. */
static void take_sends(struct watch *watch)
{
	struct ibv_wc wc = {0};

	while (ibv_poll_cq(watch->resources->cq, 1, &wc) == 1) {
		enum ibv_wc_status failure = watch->error ? IBV_WC_WR_FLUSH_ERR
							  : IBV_WC_RETRY_EXC_ERR;

		if (wc.wr_id != watch->completed || (wc.status == IBV_WC_SUCCESS && watch->error) ||
		    (wc.status != IBV_WC_SUCCESS && wc.status != failure)) {
			completion_print(&wc);
			check_failed(__FILE__, __LINE__,
				     "send completion %llu: expected %sstatus %d",
				     (unsigned long long)watch->completed,
				     watch->error ? "" : "success or ", (int)failure);
		}
		watch->completed++;
		if (!watch->error)
			watch->first_error = wc;
		watch->error = wc.status != IBV_WC_SUCCESS;
	}
}

/* What succeeded is posted again, so that KILL_RECEIVES are posted at any time. */
static void take_receives(struct watch *watch)
{
	struct ibv_wc wc = {0};

	while (ibv_poll_cq(watch->recv_cq, 1, &wc) == 1) {
		if (wc.status == IBV_WC_SUCCESS) {
			CHECK_ZERO(ep_recv(&watch->ep, wc.wr_id, 4096, KILL_MESSAGE));
			continue;
		}
		if (wc.status != IBV_WC_WR_FLUSH_ERR)
			completion_print(&wc);
		CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
		watch->flushed++;
	}
}

/* Traffic until the error came and everything posted has completed. */
static void run_until_error(struct watch *watch, enum kill_mode mode)
{
	bool sends = mode == KILL_SENDS || mode == KILL_MIXED || mode == KILL_NO_CONTACT;
	bool one_sided = mode == KILL_ONE_SIDED || mode == KILL_MIXED;
	uint64_t until = now_ms() + PROCESS_PATIENCE_MS;
	unsigned int turns = 0;

	while (!watch->error || watch->completed < watch->posted) {
		if (!watch->error && watch->posted - watch->completed < KILL_WINDOW)
			kill_mix(&watch->ep, watch->posted++, sends, one_sided);
		take_sends(watch);
		take_receives(watch);
		spin_once(&turns);
		CHECK_SAY(turns % 1024 || now_ms() < until,
			  "%llu of %llu requests completed, %s error, after %d ms",
			  (unsigned long long)watch->completed, (unsigned long long)watch->posted,
			  watch->error ? "an" : "no", PROCESS_PATIENCE_MS);
	}
}

/* Nothing happens to posted receives until the survivor sends something itself. */
static void receive_until_death(struct watch *watch, int sock)
{
	uint64_t until;
	char killed;

	while (!message_try_receive(sock, &killed, 1, 0)) {
		take_sends(watch);
		take_receives(watch);
	}
	for (until = now_ms() + 100; now_ms() < until;) {
		take_sends(watch);
		take_receives(watch);
	}
	CHECK_EQ(watch->flushed, 0);
	CHECK_EQ(qp_state(watch->ep.qp), IBV_QPS_RTS);
	watch->shared->killed_us = now_us();
	run_until_error(watch, KILL_RECEIVING);
}

/* In ERR later requests are taken and flush, and every receive flushes once. */
static void end_in_error(struct watch *watch)
{
	uint64_t until = now_ms() + 2000;

	CHECK_EQ(qp_state(watch->ep.qp), IBV_QPS_ERR);
	CHECK_ZERO(ep_send(&watch->ep, watch->posted++, 0, KILL_MESSAGE, IBV_SEND_SIGNALED));
	while (watch->completed < watch->posted || watch->flushed < KILL_RECEIVES) {
		take_sends(watch);
		take_receives(watch);
		CHECK_SAY(now_ms() < until, "%llu of %llu sends and %d of %d receives completed",
			  (unsigned long long)watch->completed, (unsigned long long)watch->posted,
			  watch->flushed, KILL_RECEIVES);
	}
	CHECK_EQ(watch->flushed, KILL_RECEIVES);
	ep_close(&watch->ep);
}

static void open_watch(struct watch *watch, enum kill_mode mode)
{
	struct ep_config config;
	int i;

	config = ep_defaults(IBV_QPT_RC);
	config.recv_cq = watch->recv_cq;
	/*
	 * Nothing tells of the death of a peer that was never met: the retries run out, here after
	 * 130 ms.
	 */
	if (mode == KILL_NO_CONTACT) {
		config.timeout = 12;
		config.retry_cnt = 7;
	}
	ep_open_on(&watch->ep, watch->resources, &config, NULL, KILL_SIZE);
	for (i = 0; i < KILL_RECEIVES; i++)
		CHECK_ZERO(ep_recv(&watch->ep, (uint64_t)i, 4096, KILL_MESSAGE));
}

static void survive(struct watch *watch, int sock, enum kill_mode mode)
{
	struct kill_report report = {0};
	struct peer remote;
	char killed;

	promise(kill_mode_name(mode));
	open_watch(watch, mode);
	message_swap(sock, &watch->ep.local, &remote, sizeof(remote));
	if (mode == KILL_NO_CONTACT)
		message_receive(sock, &killed, 1);
	ep_connect(&watch->ep, &remote);
	if (mode == KILL_NO_CONTACT)
		watch->shared->killed_us = now_us();
	else
		message_meet(sock);
	if (mode == KILL_RECEIVING)
		receive_until_death(watch, sock);
	else
		run_until_error(watch, mode);
	report.error_after_us = now_us();
	/* Only after this message is the moment of the kill certain to be written down. */
	if (mode != KILL_RECEIVING && mode != KILL_NO_CONTACT)
		message_receive(sock, &killed, 1);
	CHECK_SAY(watch->shared->killed_us && watch->shared->killed_us < report.error_after_us,
		  "an error (vendor_err %#x) before the peer was killed",
		  watch->first_error.vendor_err);
	report.error_after_us -= watch->shared->killed_us;
	end_in_error(watch);
	report.requests = watch->posted;
	report.descriptors = descriptors_open();
	message_send(sock, &report, sizeof(report));
}

struct canary {
	struct kill_shared *shared;
	struct endpoint ep;
};

/* Blocks for events only: a peer's death elsewhere must not cost this thread a wake-up. */
static void *canary_receive(void *argument)
{
	struct canary *canary = argument;
	struct resources *resources = canary->ep.resources;
	struct ibv_wc wc = {0};
	struct ibv_cq *cq;
	void *context;

	while (!canary->shared->stop) {
		CHECK_ZERO(ibv_get_cq_event(resources->channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
		CHECK_ZERO(ibv_req_notify_cq(cq, 0));
		while (ibv_poll_cq(cq, 1, &wc) == 1) {
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			CHECK_ZERO(ep_recv(&canary->ep, 0, 0, KILL_MESSAGE));
			canary->shared->canary++;
		}
	}
	return NULL;
}

static void canary_open(struct canary *canary, struct resources *resources, int sock)
{
	int i;

	resources_open(resources, 256, true);
	ep_open_on(&canary->ep, resources, NULL, NULL, 4096);
	for (i = 0; i < KILL_RECEIVES; i++)
		CHECK_ZERO(ep_recv(&canary->ep, 0, 0, KILL_MESSAGE));
	CHECK_ZERO(ibv_req_notify_cq(resources->cq, 0));
	ep_exchange(&canary->ep, sock);
}

int survivor_main(int sock, void *argument)
{
	struct canary canary = {.shared = argument};
	struct resources resources, canary_endpoint;
	struct kill_round round;
	struct ibv_cq *recv_cq;
	pthread_t thread;

	promise("the survivor's objects work");
	canary_open(&canary, &canary_endpoint, sock);
	CHECK_ZERO(pthread_create(&thread, NULL, canary_receive, &canary));
	resources_open(&resources, 1024, false);
	recv_cq = ibv_create_cq(resources.context, 1024, NULL, NULL, 0);
	CHECK(recv_cq);
	for (message_receive(sock, &round, sizeof(round)); !round.quit;
	     message_receive(sock, &round, sizeof(round))) {
		struct watch watch = {
			.shared = argument, .resources = &resources, .recv_cq = recv_cq};

		survive(&watch, sock, round.mode);
	}
	CHECK_ZERO(pthread_join(thread, NULL));
	ep_close(&canary.ep);
	resources_close(&canary_endpoint);
	CHECK_ZERO(ibv_destroy_cq(recv_cq));
	resources_close(&resources);
	return 0;
}
