/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a queue pair remembers as many READs and ATOMICs as it was asked to, and costs memory
 * for no more; the number may grow while it is connected.
 */
#include <malloc.h>
#include <stddef.h>
#include <string.h>

#include "qp/qp.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/qp_state.h"

enum { MANY = 200, RC_BYTES = 4096, UD_BYTES = 2048, READS = 40 };

static struct resources here;
static struct endpoint from, to;

static uint32_t slots(const struct endpoint *ep)
{
	return vb_qp_of(ep->qp)->t.resp.res_slots;
}

static uint32_t in_flight(const struct endpoint *ep)
{
	return vb_qp_of(ep->qp)->t.req.rd_slots;
}

static void as_asked(void)
{
	struct ep_config config;
	struct ibv_qp *qp;

	promise("memory for as many READs and ATOMICs as max_dest_rd_atomic says");
	config = ep_defaults(IBV_QPT_RC);
	config.max_rd_atomic = config.max_dest_rd_atomic = 1;
	ep_open_on(&from, &here, &config, NULL, 4096);
	ep_open_on(&to, &here, &config, NULL, 4096);
	CHECK_EQ(slots(&to), 0);
	CHECK_EQ(in_flight(&from), 0);
	ep_link(&from, &to);
	CHECK_EQ(slots(&to), 2);
	CHECK_EQ(in_flight(&from), 2);
	config = ep_defaults(IBV_QPT_UD);
	qp = ep_create_qp(&here, &config);
	CHECK_EQ(vb_qp_of(qp)->t.resp.res_slots, 0);
	CHECK_EQ(vb_qp_of(qp)->t.req.rd_slots, 0);
	CHECK_ZERO(ibv_destroy_qp(qp));
}

static void read_all(void)
{
	struct ibv_wc wc;

	for (uint64_t i = 0; i < READS; i++) {
		memset(from.buffer, 0, 64);
		to.buffer[63] = (unsigned char)(i + 1);
		CHECK_ZERO(ep_fetch_add(&from, 1000, 128, 0, 1, 0));
		CHECK_ZERO(ep_read(&from, i, 0, 64, 0, IBV_SEND_SIGNALED));
		completion_expect(here.cq, i, IBV_WC_SUCCESS, &wc);
		CHECK_EQ(from.buffer[63], i + 1);
	}
}

static void more(void)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_SQD, .max_rd_atomic = 8, .max_dest_rd_atomic = 16};

	promise("a larger number in SQD, and the queue pair goes on");
	read_all();
	CHECK_ZERO(ibv_modify_qp(from.qp, &attr, IBV_QP_STATE));
	CHECK_ZERO(ibv_modify_qp(from.qp, &attr, IBV_QP_STATE | IBV_QP_MAX_QP_RD_ATOMIC));
	CHECK_EQ(in_flight(&from), 16);
	attr.qp_state = IBV_QPS_RTS;
	CHECK_ZERO(ibv_modify_qp(from.qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_SQD;
	CHECK_ZERO(ibv_modify_qp(to.qp, &attr, IBV_QP_STATE));
	CHECK_ZERO(ibv_modify_qp(to.qp, &attr, IBV_QP_STATE | IBV_QP_MAX_DEST_RD_ATOMIC));
	CHECK_EQ(slots(&to), 32);
	attr.max_dest_rd_atomic = 2;
	CHECK_ZERO(ibv_modify_qp(to.qp, &attr, IBV_QP_STATE | IBV_QP_MAX_DEST_RD_ATOMIC));
	CHECK_EQ(slots(&to), 32); /* what is under way stays where it is */
	attr.qp_state = IBV_QPS_RTS;
	CHECK_ZERO(ibv_modify_qp(to.qp, &attr, IBV_QP_STATE));
	read_all();
}

/* In RTS, connected to itself. */
static struct ibv_qp *connected(const struct ep_config *config, const struct peer *like)
{
	struct ibv_qp *qp = ep_create_qp(&here, config);
	struct peer self = *like;
	struct ibv_qp_attr attr;

	self.qpn = qp->qp_num;
	attr = ep_attr(config, &self, &self);
	CHECK_ZERO(qp_bring_to(qp, &attr, IBV_QPS_RTS));
	return qp;
}

/*
 * The rings of work requests are mappings of their own, as large as was asked for, and not counted
 * here.
 */
static size_t each(enum ibv_qp_type type, const struct peer *like)
{
	struct ibv_qp *qp[MANY];
	struct ep_config config;
	size_t before = 0, used = 0;

	config = ep_defaults(type);
	config.max_rd_atomic = config.max_dest_rd_atomic = 16;
	/* In the second round the tables that grow with the number of queue pairs have grown. */
	for (int round = 0; round < 2; round++) {
		before = mallinfo2().uordblks;
		for (int i = 0; i < MANY; i++)
			qp[i] = connected(&config, like);
		used = mallinfo2().uordblks - before;
		for (int i = 0; i < MANY; i++)
			CHECK_ZERO(ibv_destroy_qp(qp[i]));
	}
	return used / MANY;
}

static void bytes(void)
{
	struct peer like = from.local;
	size_t used;

	promise("a connected queue pair costs 4 KiB at most, one for datagrams 2 KiB");
	used = each(IBV_QPT_RC, &like);
	CHECK_SAY(used <= RC_BYTES, "RC: %zu bytes each", used);
	used = each(IBV_QPT_UD, &like);
	CHECK_SAY(used <= UD_BYTES, "UD: %zu bytes each", used);
}

int main(void)
{
	watchdog(60);
	resources_open(&here, 64, false);
	as_asked();
	more();
	bytes();
	ep_close(&from);
	ep_close(&to);
	resources_close(&here);
	return 0;
}
