/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The error matrix: one fault per row, and what both sides must see of it: the requester's and the
 * responder's completion, the states of both queue pairs afterwards, the asynchronous event, and
 * whether the target's bytes changed (IBA 9.7.5, 9.9, 10.3.1.5, 10.7.3).
 */
#include <string.h>
#include <sys/mman.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"
#include "error_matrix.h"

/* A request without fault, and a receive without fault. */
static void build(struct scene *s, const struct row *row)
{
	uint32_t length = is_atomic(row->opcode) ? 8 : row->type == IBV_QPT_UD ? 1024 : LENGTH;

	s->sge[0] = ep_sge(&s->near, 0, length);
	s->recv_sge = ep_sge(&s->far, TARGET, LENGTH);
	s->recv_num = 1;
	s->wr = ep_wr(row->opcode, 1, s->sge, 1);
	s->wr.send_flags = row->near_status == IBV_WC_SUCCESS ? IBV_SEND_SIGNALED : 0;
	set_remote(s, target(s), s->far.local.rkey);
	if (is_atomic(row->opcode)) {
		s->wr.wr.atomic.compare_add = 0xeeeeeeeeeeeeeeee;
		s->wr.wr.atomic.swap = 0x1111111111111111;
	}
	if (row->type == IBV_QPT_UD) {
		s->ah = ep_ah(&s->near, &s->far.local);
		s->wr.wr.ud.ah = s->ah;
		s->wr.wr.ud.remote_qpn = s->far.local.qpn;
		s->wr.wr.ud.remote_qkey = s->far.config.qkey;
	}
}

static void check_data(struct scene *s, const struct row *row)
{
	bool untouched = ep_is_filled(&s->far, TARGET, 0xee, LENGTH);

	if (row->data == DATA_UNTOUCHED)
		EXPECT_SAY(untouched, "the target's bytes changed");
	else if (row->data == DATA_ARRIVED && is_atomic(row->opcode))
		EXPECT_SAY(!untouched, "the remote word did not change");
	else if (row->data == DATA_ARRIVED)
		EXPECT_SAY(ep_is_filled(&s->far, TARGET, 0x55, LENGTH), "the data is not there");
}

static void check_event(struct scene *s, const struct row *row)
{
	struct ep_event event = {.type = NONE};

	if (row->far_event == NONE) {
		EXPECT_SAY(!ep_event(&s->far, &event, 5), "far event %d", event.type);
	} else if (EXPECT_SAY(ep_event(&s->far, &event, EP_WAIT_MS), "no far event")) {
		EXPECT_EQ(event.type, row->far_event);
		EXPECT(event.own_qp);
		EXPECT_SAY(!ep_event(&s->far, &event, 5), "second far event %d", event.type);
	}
	/* The requester's own errors raise none: its completion tells. */
	EXPECT_SAY(!ep_event(&s->near, &event, 0), "near event %d", event.type);
}

static void check_completions(struct scene *s, const struct row *row)
{
	struct ibv_wc wc;

	EXPECT_STATUS(ep_poll_one(&s->near, EP_SEND_CQ, &wc), row->near_status);
	EXPECT_EQ(wc.wr_id, 1);
	EXPECT_EQ(wc.qp_num, s->near.local.qpn);
	EXPECT_EQ(wc.vendor_err != 0, row->near_status != IBV_WC_SUCCESS);
	if (row->far_status == NONE) {
		EXPECT_SAY(ep_poll(&s->far, EP_RECV_CQ, &wc, 1, 5) == 0,
			   "far completion with status %d", (int)wc.status);
	} else {
		EXPECT_STATUS(ep_poll_one(&s->far, EP_RECV_CQ, &wc), row->far_status);
		EXPECT_EQ(wc.wr_id, 2);
		EXPECT_EQ(wc.qp_num, s->far.local.qpn);
		EXPECT_EQ(wc.vendor_err != 0, row->far_status != IBV_WC_SUCCESS);
	}
	EXPECT_EQ(ep_poll(&s->near, EP_SEND_CQ, &wc, 1, 0), 0);
	EXPECT_EQ(ep_poll(&s->far, EP_RECV_CQ, &wc, 1, 0), 0);
}

/* A queue pair that lives after the fault takes the next message into the receive it kept. */
static void check_alive(struct scene *s, const struct row *row)
{
	uint32_t grh = row->type == IBV_QPT_UD ? 40 : 0;
	struct ibv_sge sge = ep_sge(&s->near, 16384, 32);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 3, &sge, 1);
	struct ibv_wc wc;
	bool kept = row->receive && row->far_status == NONE && s->recv_num;

	if (row->near_state != IBV_QPS_RTS || row->far_state != IBV_QPS_RTS)
		return;
	wr.wr.ud = s->wr.wr.ud;
	if (row->type != IBV_QPT_UD)
		memset(&wr.wr, 0, sizeof(wr.wr));
	if (!kept)
		CHECK(ep_post_recv(&s->far, 2, &s->recv_sge, 1) == 0);
	EXPECT_EQ(ep_post_send(&s->near, &wr), 0);
	EXPECT_STATUS(ep_poll_one(&s->near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	if (row->receive && !kept && row->far_status == NONE)
		return; /* the receive of no elements is first in line and cannot take it */
	EXPECT_STATUS(ep_poll_one(&s->far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 2);
	EXPECT_EQ(wc.byte_len, 32 + grh);
}

static void run(const struct row *row, enum ep_place place)
{
	struct ep_config near_config = ep_defaults(row->type), far_config = near_config;
	static struct scene scene;
	struct scene *s = &scene;

	expect_case("%s", row->name);
	memset(s, 0, sizeof(*s));
	if (row->configure)
		row->configure(&near_config, &far_config);
	ep_pair(&s->near, &s->far, &near_config, &far_config, place);
	build(s, row);
	if (row->spoil)
		row->spoil(s);
	ep_fill(&s->near, 0, 0x55, LENGTH);
	ep_fill(&s->far, TARGET, 0xee, LENGTH);
	if (row->receive)
		CHECK(ep_post_recv(&s->far, 2, &s->recv_sge, s->recv_num) == 0);
	if (EXPECT_EQ(ep_post_send(&s->near, &s->wr), 0)) {
		check_completions(s, row);
		check_event(s, row);
		EXPECT_EQ(ep_state(&s->near), row->near_state);
		EXPECT_EQ(ep_state(&s->far), row->far_state);
		check_data(s, row);
		check_alive(s, row);
	}
	if (s->ah)
		EXPECT_EQ(ibv_destroy_ah(s->ah), 0);
	if (s->other_ah)
		EXPECT_EQ(ibv_destroy_ah(s->other_ah), 0);
	if (s->big) {
		EXPECT_EQ(ibv_dereg_mr(s->big), 0);
		munmap(s->big_buf, 3ul << 30);
	}
	ep_pair_close(&s->near, &s->far);
}

int main(int argc, char **argv)
{
	enum ep_place place = ep_main(argc, argv);
	/* A last argument that is no option: only the rows whose names hold it. */
	const char *wanted = argc > 1 && argv[argc - 1][0] != '-' ? argv[argc - 1] : "";

	for (size_t i = 0; i < error_row_count; i++)
		if (strstr(error_rows[i].name, wanted))
			run(&error_rows[i], place);
	return expect_done();
}
