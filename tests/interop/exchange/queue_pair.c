/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device, the memory and connected queue pairs. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exchange.h"
#include "support/qp_state.h"

#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/*
 * Half a second: a machine that is emulated on a busy one stands still for longer than one thinks.
 */
const struct profile rc_profile = {IBV_QPT_RC, REMOTE, 7, 7, 17};
const struct profile uc_profile = {IBV_QPT_UC, IBV_ACCESS_REMOTE_WRITE, 0, 0, 0};
const struct profile ud_profile = {IBV_QPT_UD, 0, 0, 0, 0};

enum { SEND_DEPTH = 32, RECV_DEPTH = 128, SGES = 4, READS = 8, MIN_RNR_TIMER = 12 };

static void find_device(struct exchange *x)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	for (int i = 0; list && i < count; i++)
		if (!strcmp(ibv_get_device_name(list[i]), x->device))
			x->context = ibv_open_device(list[i]);
	if (!x->context)
		fail("device %s cannot be opened (%d devices)", x->device, count);
	ibv_free_device_list(list);
}

void device_list_gids(struct exchange *x)
{
	struct ibv_port_attr port;
	char text[INET6_ADDRSTRLEN];

	find_device(x);
	must(ibv_query_port(x->context, 1, &port), "ibv_query_port");
	for (int i = 0; i < port.gid_tbl_len; i++) {
		static const union ibv_gid none = {{0}};
		union ibv_gid gid;

		if (ibv_query_gid(x->context, 1, i, &gid) || !memcmp(&gid, &none, sizeof(gid)))
			continue;
		inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
		say("gid %d %s", i, text);
	}
	ibv_close_device(x->context);
}

void device_open(struct exchange *x)
{
	size_t size = (size_t)AREAS * AREA_BYTES;

	find_device(x);
	if (ibv_query_gid(x->context, 1, x->gid_index, &x->gid))
		fail("no GID at index %d", x->gid_index);
	x->pd = ibv_alloc_pd(x->context);
	x->cq = ibv_create_cq(x->context, 512, NULL, NULL, 0);
	if (!x->pd || !x->cq)
		fail("protection domain or completion queue: %s", strerror(errno));
	x->memory = aligned_alloc(4096, size);
	if (!x->memory)
		fail("no memory");
	memset(x->memory, 0, size);
	x->mr = ibv_reg_mr(x->pd, x->memory, size, IBV_ACCESS_LOCAL_WRITE | REMOTE);
	if (!x->mr)
		fail("ibv_reg_mr: %s", strerror(errno));
}

uint8_t *area_of(struct exchange *x, enum area area)
{
	return x->memory + (size_t)area * AREA_BYTES;
}

uint64_t peer_area(const struct end *e, enum area area)
{
	return e->peer.memory + (uint64_t)area * AREA_BYTES;
}

static void to_init(struct ibv_qp *qp, const struct profile *profile)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = profile->access,
				   .qkey = UD_QKEY};

	must(ibv_modify_qp(qp, &attr, qp_step_mask(profile->type, IBV_QPS_INIT)), "to INIT");
}

static enum ibv_mtu mtu_code(uint32_t bytes)
{
	enum ibv_mtu code = IBV_MTU_256;

	while (bytes > 256u) {
		bytes /= 2;
		code++;
	}
	return code;
}

static void to_rtr(struct exchange *x, const struct end *e, const struct profile *profile)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
				   .path_mtu = mtu_code(x->mtu),
				   .dest_qp_num = e->peer.qpn,
				   .rq_psn = e->peer.psn,
				   .max_dest_rd_atomic = READS,
				   .min_rnr_timer = MIN_RNR_TIMER};

	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = e->peer.gid;
	attr.ah_attr.grh.sgid_index = (uint8_t)x->gid_index;
	attr.ah_attr.grh.hop_limit = 64;
	must(ibv_modify_qp(e->qp, &attr, qp_step_mask(profile->type, IBV_QPS_RTR)), "to RTR");
}

static void to_rts(const struct end *e, const struct profile *profile, uint32_t psn)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
				   .sq_psn = psn,
				   .max_rd_atomic = READS,
				   .timeout = profile->timeout,
				   .retry_cnt = profile->retry,
				   .rnr_retry = profile->rnr_retry};

	must(ibv_modify_qp(e->qp, &attr, qp_step_mask(profile->type, IBV_QPS_RTS)), "to RTS");
}

struct end end_connect(struct exchange *x, const struct profile *profile)
{
	struct ibv_qp_init_attr init = {
		.send_cq = x->cq,
		.recv_cq = x->cq,
		.cap = {SEND_DEPTH, RECV_DEPTH, SGES, SGES, 0},
		.qp_type = profile->type,
		.sq_sig_all = 1,
	};
	struct end e = {ibv_create_qp(x->pd, &init), {0}};
	struct address mine = {0};

	if (!e.qp)
		fail("ibv_create_qp: %s", strerror(errno));
	mine.qpn = e.qp->qp_num;
	/* Soon after the start PSNs wrap around. */
	mine.psn = 0xffffffu - (x->seed + mine.qpn) % 24;
	mine.rkey = x->mr->rkey;
	mine.memory = (uintptr_t)x->memory;
	mine.gid = x->gid;
	tcp_swap(x, &mine, &e.peer, sizeof(mine));
	to_init(e.qp, profile);
	to_rtr(x, &e, profile);
	to_rts(&e, profile, mine.psn);
	barrier(x, "connected");
	return e;
}

void end_close(struct exchange *x, struct end *e)
{
	struct ibv_wc wc;

	barrier(x, "done with a queue pair");
	must(ibv_destroy_qp(e->qp), "ibv_destroy_qp");
	while (ibv_poll_cq(x->cq, 1, &wc) > 0)
		;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bool completion_within(struct exchange *x, struct ibv_wc *wc, double seconds)
{
	static const struct timespec pause = {0, 50000};
	double end = now() + seconds;

	for (;;) {
		/* The machine is shared with the one that is emulated: yield it soon. */
		for (int i = 0; i < 500; i++) {
			int n = ibv_poll_cq(x->cq, 1, wc);

			if (n < 0)
				fail("ibv_poll_cq returned %d", n);
			if (n > 0)
				return true;
		}
		if (now() > end)
			return false;
		nanosleep(&pause, NULL);
	}
}

struct ibv_wc completion(struct exchange *x, const char *what)
{
	struct ibv_wc wc;

	if (!completion_within(x, &wc, 60))
		fail("%s: no completion in 60 s", what);
	return wc;
}
