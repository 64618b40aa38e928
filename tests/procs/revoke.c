/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: after ibv_dereg_mr, ibv_rereg_mr, ibv_modify_qp to ERR or RESET,
 * ibv_destroy_qp or ibv_dealloc_mw returned, or the completion of an invalidation
 * was polled, no byte of the memory changes any more, although a peer process goes
 * on writing to it as fast as it can.
 *
 * Each round a new pair of queue pairs; the peer keeps WRITEs of 8 B to 1 MiB
 * outstanding; at a random moment the target takes the access away, at once
 * fills the buffer with a byte that the peer never writes, waits, and demands
 * that byte everywhere.
 *
 * usage: revoke direct|lists|mapped|ring|immediate [ROUNDS [SEED]]
 *   direct  the peer itself reaches the memory
 *   lists   likewise, with short WRITEs, of which the peer posts several by one call
 *   mapped  the peer has mapped the memory, and stores there; one by one and in lists
 *   ring    it cannot (not dumpable): the target's own progress thread does it
 *   immediate  the WRITEs are short and have an immediate: the target's polls carry them out
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"
#include "support/qp_state.h"
#include "support/random.h"
#include "support/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum {
	SIZE = 1024 * 1024,
	SHORT = 4096,
	SHORTEST = 512,
	MARK = 0xa5,
	LATEST_US = 4000,
	WATCH_MS = 3
};

static bool over_ring, lists, mapped, immediate;

enum way {
	DEREG,
	REREG_ACCESS,
	REREG_PLACE,
	TO_ERROR,
	TO_RESET,
	DESTROY,
	LOCAL_INV,
	RELEASE,
	DEALLOC_1,
	DEALLOC_2,
	WAYS
};
static const char *const way_names[WAYS] = {"ibv_dereg_mr",
					    "ibv_rereg_mr (access)",
					    "ibv_rereg_mr (translation)",
					    "ibv_modify_qp to ERR",
					    "ibv_modify_qp to RESET",
					    "ibv_destroy_qp",
					    "completion of LOCAL_INV",
					    "completion of ibv_bind_mw with length 0",
					    "ibv_dealloc_mw, type 1",
					    "ibv_dealloc_mw, type 2"};

static int writer(int sock, void *argument)
{
	uint64_t rounds = *(uint64_t *)argument;
	uint64_t seed = 77;
	struct ep_config config = writer_config();
	struct resources resources;
	uint64_t i;

	promise("the writer sees success up to one error, then flushes");
	if (over_ring)
		process_drop_root();
	resources_open(&resources, 256, false);
	for (i = 0; i < rounds; i++) {
		struct endpoint ep;

		ep_open_on(&ep, &resources, &config, NULL, SIZE);
		memset(ep.buffer, (int)(i % 100) + 1, SIZE);
		ep_exchange(&ep, sock);
		message_receive(sock, &ep.remote.rkey, sizeof(ep.remote.rkey));
		if (immediate)
			write_imm_until_error(&ep, SHORT, &seed);
		else
			write_until_error(&ep,
					  mapped  ? SHORTEST
					  : lists ? SHORT
						  : SIZE,
					  lists || (mapped && i % 2), &seed);
		message_meet(sock);
		ep_close(&ep);
	}
	resources_close(&resources);
	return 0;
}

/* A window over the whole buffer, for the ways that are about windows; NULL for the others. */
static struct ibv_mw *window_bound(struct endpoint *ep, enum way way)
{
	enum ibv_mw_type type = way == LOCAL_INV || way == DEALLOC_2 ? IBV_MW_TYPE_2
								     : IBV_MW_TYPE_1;
	struct ibv_mw_bind_info info = {.addr = (uintptr_t)ep->buffer,
					.length = SIZE,
					.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	struct ibv_mw *mw;

	if (way < LOCAL_INV)
		return NULL;
	CHECK_ZERO(ibv_dereg_mr(ep->mr));
	ep->mr = ibv_reg_mr(ep->resources->pd, ep->buffer, SIZE,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(ep->resources->pd, type);
	CHECK(ep->mr && mw);
	info.mr = ep->mr;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = bind.bind_info = info;
	CHECK_ZERO(type == IBV_MW_TYPE_1 ? ibv_bind_mw(ep->qp, mw, &bind)
					 : ibv_post_send(ep->qp, &wr, &bad));
	completion_expect(ep->resources->cq, 0, IBV_WC_SUCCESS, &wc);
	return mw;
}

/* Returns when the completion has been polled. */
static void invalidate(struct endpoint *ep, struct ibv_mw *mw)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr.invalidate_rkey = mw->rkey;
	CHECK_ZERO(mw->type == IBV_MW_TYPE_1 ? ibv_bind_mw(ep->qp, mw, &bind)
					     : ibv_post_send(ep->qp, &wr, &bad));
	completion_expect(ep->resources->cq, 0, IBV_WC_SUCCESS, &wc);
}

static void revoke(struct endpoint *ep, enum way way, struct ibv_mw *mw, void *elsewhere)
{
	switch (way) {
	case LOCAL_INV:
	case RELEASE:
		invalidate(ep, mw);
		break;
	case DEALLOC_1:
	case DEALLOC_2:
		CHECK_ZERO(ibv_dealloc_mw(mw));
		break;
	case DEREG:
		CHECK_ZERO(ibv_dereg_mr(ep->mr));
		ep->mr = NULL;
		break;
	case REREG_ACCESS:
		CHECK_ZERO(ibv_rereg_mr(ep->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					IBV_ACCESS_LOCAL_WRITE));
		break;
	case REREG_PLACE:
		CHECK_ZERO(ibv_rereg_mr(ep->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, elsewhere,
					SIZE, 0));
		break;
	case TO_ERROR:
		qp_move(ep->qp, IBV_QPS_ERR);
		break;
	case TO_RESET:
		qp_move(ep->qp, IBV_QPS_RESET);
		break;
	default:
		CHECK_ZERO(ibv_destroy_qp(ep->qp));
		ep->qp = NULL;
		break;
	}
}

/* With immediates: takes what has come, and posts a receive for each message that used one. */
static void tend(struct endpoint *ep)
{
	struct ibv_wc wc[16];
	int n;

	if (!immediate)
		return;
	n = ibv_poll_cq(ep->resources->cq, 16, wc);
	CHECK(n >= 0);
	for (int i = 0; i < n; i++) {
		if (ep->qp && wc[i].status == IBV_WC_SUCCESS)
			CHECK_ZERO(ep_post_recv(ep, 0, NULL, 0));
	}
}

static void watch(struct endpoint *ep)
{
	uint64_t until = now_us() + WATCH_MS * 1000;

	if (!immediate)
		sleep_ms(WATCH_MS);
	while (now_us() < until)
		tend(ep);
}

static size_t first_changed(const unsigned char *buffer)
{
	size_t i;

	for (i = 0; i < SIZE && buffer[i] == MARK; i++)
		continue;
	return i;
}

/* The first byte of the buffer was the peer's before, and stays this process's after the call. */
static void play(struct resources *resources, int sock, enum way way, uint64_t wait_us,
		 void *elsewhere)
{
	struct ep_config config = writer_config();
	struct ibv_buf *buf = NULL;
	void *memory = mapped ? ibv_alloc_buf(resources->pd, SIZE, &buf) : NULL;
	unsigned int turns = 0;
	struct ibv_mw *mw;
	struct endpoint ep;
	uint64_t until;
	size_t at;

	CHECK(memory || !mapped);
	ep_open_on(&ep, resources, &config, memory, SIZE);
	memset(ep.buffer, MARK, SIZE);
	for (uint32_t i = 0; immediate && i < ep.cap.max_recv_wr; i++)
		CHECK_ZERO(ep_post_recv(&ep, 0, NULL, 0));
	ep_exchange(&ep, sock);
	mw = window_bound(&ep, way);
	message_send(sock, mw ? &mw->rkey : &ep.mr->rkey, sizeof(uint32_t));
	/* The test proves something only while the writer is writing. */
	while (((volatile unsigned char *)ep.buffer)[turns * 4096u % SIZE] == MARK) {
		tend(&ep);
		spin_once(&turns);
	}
	for (until = now_us() + wait_us; now_us() < until;) {
		tend(&ep);
		spin_once(&turns);
	}
	revoke(&ep, way, mw, elsewhere);
	memset(ep.buffer, MARK, SIZE);
	watch(&ep);
	at = first_changed(ep.buffer);
	CHECK_SAY(at == SIZE, "byte %zu changed to %#x after the call", at, ep.buffer[at]);
	/* A moved region goes on taking WRITEs at its new place; end it so that the writer ends. */
	if (way == REREG_PLACE)
		qp_move(ep.qp, IBV_QPS_ERR);
	message_meet(sock);
	at = first_changed(ep.buffer);
	CHECK_SAY(at == SIZE, "byte %zu changed to %#x long after the call", at, ep.buffer[at]);
	if (mw && way < DEALLOC_1)
		CHECK_ZERO(ibv_dealloc_mw(mw));
	ep_close(&ep);
	if (buf)
		ibv_free_buf(buf);
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 2 ? strtoull(argv[2], NULL, 0) : 300;
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : (now_us() | 1);
	struct resources resources;
	struct process process;
	void *elsewhere;
	uint64_t i;

	printf("seed %llu\n", (unsigned long long)seed);
	watchdog(180);
	lists = argc > 1 && strcmp(argv[1], "lists") == 0;
	mapped = argc > 1 && strcmp(argv[1], "mapped") == 0;
	immediate = argc > 1 && strcmp(argv[1], "immediate") == 0;
	over_ring = argc > 1 && strcmp(argv[1], "ring") == 0;
	process_start(&process, writer, &rounds);
	if (over_ring) {
		process_drop_root();
		CHECK_ZERO(prctl(PR_SET_DUMPABLE, 0));
	}
	promise("the target's objects work");
	resources_open(&resources, 256, false);
	elsewhere = memory_shared(SIZE);
	for (i = 0; i < rounds; i++) {
		enum way way = (enum way)(i % WAYS);

		promise(way_names[way]);
		play(&resources, process.sock, way, random_next(&seed) % LATEST_US, elsewhere);
	}
	resources_close(&resources);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
	printf("%llu revocations, no byte changed after one\n", (unsigned long long)rounds);
	return 0;
}
