/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A worker of the storm: makes its links, sends random requests over them, registers, frees and
 * opens things, and times each call.
 */
#include "storm.h"

#include "procs/leftovers.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/process.h"
#include "support/random.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { RECEIVES = 8, MESSAGE = 2048, OUTSTANDING = 4, DM_BYTES = 4096, CQ_ENTRIES = 1024 };

struct half {
	uint32_t epoch; /* 0: none */
	bool connected;
	bool broken;
	unsigned int outstanding;
	struct endpoint ep;      /* RC, or the XRC sender */
	struct ibv_qp *receiver; /* XRC */
	struct peer remote;
	uint32_t remote_dm;
	struct peer remote_scratch;
};

struct worker {
	int slot;
	uint64_t seed;
	struct resources resources;
	struct ibv_xrcd *xrcd;
	struct xrc_queue queue;
	struct endpoint ud;
	struct ibv_dm *dm;
	struct ibv_mr *dm_mr;
	unsigned char *scratch;
	struct ibv_mr *scratch_mr;
	struct half half[STORM_KINDS][STORM_SLOTS];
};

/* A stop in the middle of the call, before or after it makes the measure worthless. */
static uint64_t began_us;
static uint32_t began_stops;

static void begin(const struct worker *w)
{
	began_stops = storm->stops[w->slot];
	began_us = now_us();
}

static void finish(const struct worker *w, enum storm_call call)
{
	uint64_t took = now_us() - began_us;

	if (storm->stops[w->slot] != began_stops || began_stops % 2)
		return;
	CHECK_SAY(took / 1000 < storm_calls[call].bound_ms + STORM_CROWD_MS,
		  "slot %d: %s took %llu ms", w->slot, storm_calls[call].name,
		  (unsigned long long)took / 1000);
	if (took > storm->longest_us[call])
		storm->longest_us[call] = took;
}

#define TIMED(w, kind, call)     \
	do {                     \
		begin(w);        \
		call;            \
		finish(w, kind); \
	} while (0)

static struct storm_link *link_of(const struct worker *w, int kind, int to)
{
	return w->slot < to ? &storm->link[kind][w->slot][to] : &storm->link[kind][to][w->slot];
}

static void publish(struct worker *w, int kind, int to, const struct peer *peer, uint32_t epoch)
{
	struct storm_mail *mail = &link_of(w, kind, to)->mail[w->slot > to];

	mail->epoch = 0;
	mail->peer = *peer;
	mail->dm_rkey = w->dm_mr->rkey;
	mail->scratch = (struct peer){.addr = (uintptr_t)w->scratch, .rkey = w->scratch_mr->rkey};
	mail->epoch = epoch;
}

static void half_close(struct worker *w, int kind, int to)
{
	struct half *h = &w->half[kind][to];

	if (h->ep.qp)
		TIMED(w, STORM_REVOKE, ep_close(&h->ep));
	if (h->receiver)
		TIMED(w, STORM_REVOKE, CHECK_ZERO(ibv_destroy_qp(h->receiver)));
	memset(h, 0, sizeof(*h));
}

/*
 * While a member of the domain is stopped in the middle of a change, the call is refused with EBUSY,
 * within its bound (ibv_create_qp_ex(3)): NULL. Whoever waited for that member here would stand
 * still itself, and it goes on only when all that run have gone on.
 */
static struct ibv_qp *receiver_make(struct worker *w)
{
	struct ibv_qp *qp = xrc_receiver(w->resources.context, w->xrcd);

	CHECK_SAY(qp || errno == EBUSY, "ibv_create_qp_ex: errno %d", errno);
	return qp;
}

/* False: not now; the half is closed, and its turn comes again. */
static bool half_open(struct worker *w, int kind, int to, uint32_t epoch)
{
	struct half *h = &w->half[kind][to];
	struct ep_config config;
	struct peer peer;

	half_close(w, kind, to);
	begin(w);
	if (kind == STORM_RC) {
		config = ep_defaults(IBV_QPT_RC);
		config.timeout = 12;
		ep_open_on(&h->ep, &w->resources, &config, NULL, STORM_BUFFER);
		for (int i = 0; i < RECEIVES; i++)
			CHECK_ZERO(ep_recv(&h->ep, 0, STORM_BUFFER / 2, MESSAGE));
	} else if (w->slot < to) {
		xrc_sender_open(&h->ep, &w->resources);
		h->ep.config.timeout = 12;
	} else {
		h->receiver = receiver_make(w);
	}
	finish(w, STORM_MAKE);
	if (!h->ep.qp && !h->receiver)
		return false;
	peer = h->receiver ? xrc_peer(&w->resources, h->receiver) : h->ep.local;
	h->epoch = epoch;
	publish(w, kind, to, &peer, epoch);
	return true;
}

static void half_connect(struct worker *w, int kind, int to, const struct storm_mail *mail)
{
	struct half *h = &w->half[kind][to];
	struct storm_mail copy;

	memcpy((void *)&copy, (const void *)mail, sizeof(copy));
	if (mail->epoch != h->epoch)
		return; /* it was being replaced */
	begin(w);
	if (h->receiver)
		xrc_receiver_connect(&w->resources, h->receiver, &copy.peer);
	else
		ep_connect(&h->ep, &copy.peer);
	finish(w, STORM_MAKE);
	h->remote = copy.peer;
	h->remote_dm = copy.dm_rkey;
	h->remote_scratch = copy.scratch;
	h->connected = true;
}

/* The lower slot begins an epoch; the higher one follows, and says when its half has failed. */
static void link_step(struct worker *w, int kind, int to)
{
	struct storm_link *link = link_of(w, kind, to);
	struct half *h = &w->half[kind][to];
	uint32_t epoch;

	if (w->slot < to) {
		if (!h->epoch || h->broken || link->broken == h->epoch)
			(void)half_open(w, kind, to, ++link->epoch);
		if (!h->connected && link->mail[1].epoch == h->epoch)
			half_connect(w, kind, to, &link->mail[1]);
		return;
	}
	epoch = link->mail[0].epoch;
	if (h->broken)
		link->broken = h->epoch;
	if (epoch && epoch != h->epoch && epoch != link->broken && half_open(w, kind, to, epoch)) {
		half_connect(w, kind, to, &link->mail[0]);
		/* Its process was killed meanwhile, or is at the next epoch already. */
		h->broken |= !h->connected;
	}
}

static struct half *half_of(struct worker *w, uint32_t qpn, int *kind, int *to)
{
	for (*kind = 0; *kind < STORM_KINDS; (*kind)++) {
		for (*to = 0; *to < STORM_SLOTS; (*to)++) {
			struct half *h = &w->half[*kind][*to];

			if (h->ep.qp && h->ep.qp->qp_num == qpn)
				return h;
		}
	}
	return NULL;
}

/* What may come of a peer that was killed, and of keys that died: never a fault of one's own. */
static bool is_expected(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR ||
	       status == IBV_WC_WR_FLUSH_ERR || status == IBV_WC_REM_ACCESS_ERR ||
	       status == IBV_WC_REM_INV_REQ_ERR || status == IBV_WC_REM_OP_ERR;
}

static void complete(struct worker *w, const struct ibv_wc *wc)
{
	int kind, to;
	struct half *h = half_of(w, wc->qp_num, &kind, &to);

	if (!h) {
		CHECK_EQ(wc->qp_num, w->ud.qp->qp_num);
		CHECK_EQ(wc->status, IBV_WC_SUCCESS);
		if (!wc->wr_id)
			CHECK_ZERO(ep_recv(&w->ud, 0, 0, MESSAGE));
		return;
	}
	if (wc->status != IBV_WC_SUCCESS) {
		if (!is_expected(wc->status))
			completion_print(wc);
		CHECK(is_expected(wc->status));
		h->broken = true;
		storm->state[kind][w->slot][to].last_status = (int)wc->status;
		return;
	}
	if (!wc->wr_id) {
		CHECK_ZERO(ep_recv(&h->ep, 0, STORM_BUFFER / 2, MESSAGE));
		return;
	}
	h->outstanding--;
	storm->done[kind][w->slot][to]++;
}

static bool drain(struct worker *w)
{
	struct ibv_wc wc[16];
	int n, m;

	TIMED(w, STORM_POST, n = ibv_poll_cq(w->resources.cq, 16, wc));
	CHECK(n >= 0);
	for (int i = 0; i < n; i++)
		complete(w, &wc[i]);
	TIMED(w, STORM_POST, m = ibv_poll_cq(w->queue.cq, 16, wc));
	CHECK(m >= 0);
	/* Receives, one or the other of a message that was broken off. */
	for (int i = 0; i < m; i++)
		xrc_post(&w->queue, 0, XRC_BUFFER / 2, MESSAGE);
	storm->state[STORM_XRC][w->slot][w->slot].received += (uint64_t)m;
	return n + m > 0;
}

static void request_rc(struct worker *w, struct half *h)
{
	struct peer mine = h->ep.remote;
	size_t length = random_next(&w->seed) % 4 ? 8 + random_next(&w->seed) % MESSAGE
						  : STORM_BUFFER / 2;
	uint32_t what = (uint32_t)(random_next(&w->seed) % 64);

	/* Elsewhere: device memory, and what its owner may just have deregistered. */
	if (what < 16)
		h->ep.remote = (struct peer){.rkey = h->remote_dm};
	else if (what == 16)
		h->ep.remote = h->remote_scratch;
	if (what <= 16)
		length = 8 + length % (DM_BYTES - 8);
	switch (random_next(&w->seed) % 5) {
	case 0:
		h->ep.remote = mine;
		CHECK_ZERO(ep_send(&h->ep, 1, 0, length % MESSAGE + 1, IBV_SEND_SIGNALED));
		break;
	case 1:
		CHECK_ZERO(ep_write(&h->ep, 1, 0, length, 0, IBV_SEND_SIGNALED));
		break;
	case 2:
		CHECK_ZERO(ep_read(&h->ep, 1, 0, length, 0, IBV_SEND_SIGNALED));
		break;
	case 3:
		CHECK_ZERO(ep_fetch_add(&h->ep, 1, 0, 0, 1, IBV_SEND_SIGNALED));
		break;
	default:
		CHECK_ZERO(ep_compare_swap(&h->ep, 1, 0, 0, 0, 1, IBV_SEND_SIGNALED));
	}
	h->ep.remote = mine;
}

static bool same_host(int a, int b)
{
	return !storm_net || a % 2 == b % 2;
}

/* To a queue of the receiver's process, or of another one of its domain. */
static void request_xrc(struct worker *w, struct half *h, int to)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						 IBV_WR_ATOMIC_FETCH_AND_ADD};
	enum ibv_wr_opcode op = ops[random_next(&w->seed) % 4];
	int of = (int)(random_next(&w->seed) % STORM_SLOTS);
	struct xrc_target target;

	if (random_next(&w->seed) % 4 || !same_host(of, to))
		of = to;
	memcpy(&target, &storm->queue[of], sizeof(target));
	if (!target.number)
		return;
	CHECK_ZERO(
		xrc_request(&h->ep, op, &target, op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : MESSAGE));
	h->outstanding++;
}

static void request(struct worker *w, int kind, int to)
{
	struct half *h = &w->half[kind][to];

	if (!h->connected || h->broken || h->receiver || h->outstanding >= OUTSTANDING)
		return;
	begin(w);
	if (kind == STORM_RC) {
		request_rc(w, h);
		h->outstanding++;
	} else {
		request_xrc(w, h, to);
	}
	finish(w, STORM_POST);
}

static void scratch_register(struct worker *w)
{
	w->scratch_mr = ibv_reg_mr(w->resources.pd, w->scratch, DM_BYTES, EP_ACCESS);
	CHECK(w->scratch_mr);
}

static void dm_make(struct worker *w)
{
	struct ibv_alloc_dm_attr attr = {.length = DM_BYTES};

	w->dm = ibv_alloc_dm(w->resources.context, &attr);
	CHECK_SAY(w->dm, "ibv_alloc_dm: errno %d", errno);
	w->dm_mr = ibv_reg_dm_mr(w->resources.pd, w->dm, 0, DM_BYTES,
				 EP_ACCESS | IBV_ACCESS_ZERO_BASED);
	CHECK(w->dm_mr);
}

static void dm_drop(struct worker *w)
{
	CHECK_ZERO(ibv_dereg_mr(w->dm_mr));
	CHECK_ZERO(ibv_free_dm(w->dm));
}

/* Calls that have to wait for others' marks, or look for other processes. */
static void churn(struct worker *w)
{
	struct ibv_xrcd *again;

	switch (random_next(&w->seed) % 512) {
	case 0:
	case 1:
	case 2:
		TIMED(w, STORM_REVOKE, CHECK_ZERO(ibv_dereg_mr(w->scratch_mr)));
		TIMED(w, STORM_MAKE, scratch_register(w));
		break;
	case 3:
		TIMED(w, STORM_REVOKE, dm_drop(w));
		TIMED(w, STORM_MAKE, dm_make(w));
		break;
	case 4:
		TIMED(w, STORM_DOMAIN, again = xrc_domain(w->resources.context, storm->path, 0));
		CHECK_SAY(again, "ibv_open_xrcd: errno %d", errno);
		TIMED(w, STORM_REVOKE, CHECK_ZERO(ibv_close_xrcd(again)));
		break;
	default:
		break;
	}
}

/* Datagrams to any worker that has a queue pair for them; nothing is promised of them. */
static void datagram(struct worker *w)
{
	static unsigned int sent;

	if (random_next(&w->seed) % 8 || sent++ % 64 > 32)
		return;
	begin(w);
	if (w->ud.ah)
		CHECK_ZERO(ep_send(&w->ud, 1, 0, 64, IBV_SEND_SIGNALED));
	finish(w, STORM_POST);
}

/* To itself: sent by an address that every worker has. */
static void datagrams_open(struct worker *w)
{
	struct ep_config config;

	config = ep_defaults(IBV_QPT_UD);
	ep_open_on(&w->ud, &w->resources, &config, NULL, STORM_BUFFER);
	ep_connect(&w->ud, &w->ud.local);
	for (int i = 0; i < RECEIVES; i++)
		CHECK_ZERO(ep_recv(&w->ud, 0, 0, MESSAGE));
}

/* Other members may stand still just now, so for a while none may answer for the domain. */
static void domain_open(struct worker *w)
{
	uint64_t until = now_ms() + PROCESS_PATIENCE_MS;

	do {
		TIMED(w, STORM_DOMAIN,
		      w->xrcd = xrc_domain(w->resources.context, storm->path, O_CREAT));
		CHECK_SAY(w->xrcd || errno == EBUSY, "ibv_open_xrcd: errno %d", errno);
	} while (!w->xrcd && now_ms() < until);
	CHECK(w->xrcd);
}

static void worker_open(struct worker *w)
{
	/* One of them keeps its memory to itself: its one-sided work is its engine's. */
	if (w->slot == 2)
		CHECK_ZERO(prctl(PR_SET_DUMPABLE, 0));
	if (storm_net && w->slot % 2) {
		int fd = open(storm_net, O_RDONLY | O_CLOEXEC);

		CHECK(fd >= 0 && !setns(fd, CLONE_NEWNET));
		close(fd);
	}
	resources_open(&w->resources, CQ_ENTRIES, false);
	domain_open(w);
	xrc_queue_open(&w->queue, &w->resources, w->xrcd);
	for (int i = 0; i < RECEIVES; i++)
		xrc_post(&w->queue, 0, XRC_BUFFER / 2, MESSAGE);
	storm->queue[w->slot] = xrc_target(&w->queue);
	w->scratch = aligned_alloc(4096, DM_BYTES);
	CHECK(w->scratch);
	scratch_register(w);
	dm_make(w);
	datagrams_open(w);
	/* The halves of the slot's former owner are gone. */
	for (int kind = 0; kind < STORM_KINDS; kind++) {
		for (int to = 0; to < w->slot; to++)
			link_of(w, kind, to)->broken = link_of(w, kind, to)->epoch;
	}
}

static void worker_close(struct worker *w)
{
	for (int kind = 0; kind < STORM_KINDS; kind++) {
		for (int to = 0; to < STORM_SLOTS; to++)
			half_close(w, kind, to);
	}
	TIMED(w, STORM_REVOKE, ep_close(&w->ud));
	TIMED(w, STORM_REVOKE, dm_drop(w));
	TIMED(w, STORM_REVOKE, CHECK_ZERO(ibv_dereg_mr(w->scratch_mr)));
	TIMED(w, STORM_REVOKE, xrc_queue_close(&w->queue));
	TIMED(w, STORM_REVOKE, CHECK_ZERO(ibv_close_xrcd(w->xrcd)));
	TIMED(w, STORM_REVOKE, resources_close(&w->resources));
	free(w->scratch);
}

static void tell(const struct worker *w, int kind, int to)
{
	const struct half *h = &w->half[kind][to];
	struct storm_state *s = &storm->state[kind][w->slot][to];

	s->epoch = h->epoch;
	s->connected = h->connected;
	s->broken = h->broken;
	s->outstanding = (int)h->outstanding;
}

int storm_worker(int sock, void *slot)
{
	static struct worker w;

	(void)sock;
	promise("no call waits beyond its bound for processes that stand still or die");
	w.slot = *(int *)slot;
	w.seed = (uint64_t)getpid() * 7919 + 1;
	worker_open(&w);
	for (uint32_t turn = 0; !storm->end; turn++) {
		bool busy = drain(&w);

		for (int to = 0; to < STORM_SLOTS; to++) {
			for (int kind = 0; to != w.slot && kind < STORM_KINDS; kind++) {
				link_step(&w, kind, to);
				request(&w, kind, to);
				tell(&w, kind, to);
			}
		}
		datagram(&w);
		churn(&w);
		if (turn % 256 == 0)
			storm->descriptors[w.slot] = (uint32_t)descriptors_open();
		if (!busy)
			sched_yield();
	}
	worker_close(&w);
	return 0;
}
