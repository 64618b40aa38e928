/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_modify_cq(3): events after so many entries or so many microseconds, whichever comes first;
 * entries are never held back.
 */
#include <poll.h>
#include <sched.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_qp *qp;

static void refused(void)
{
	struct ibv_modify_cq_attr attr = {.attr_mask = 1u << 31};
	struct ibv_device_attr_ex device;

	expect_case("capabilities");
	CHECK(ibv_query_device_ex(ctx, NULL, &device) == 0);
	EXPECT(device.cq_mod_caps.max_cq_count > 0 && device.cq_mod_caps.max_cq_period > 0);
	expect_case("unknown mask");
	EXPECT_REFUSED(ibv_modify_cq(cq, &attr), EINVAL);
	attr.attr_mask = IBV_CQ_ATTR_RESERVED | IBV_CQ_ATTR_MODERATE;
	EXPECT_REFUSED(ibv_modify_cq(cq, &attr), EINVAL);
	expect_case("empty mask");
	attr.attr_mask = 0;
	EXPECT_EQ(ibv_modify_cq(cq, &attr), 0);
	expect_case("no attributes");
	EXPECT_REFUSED(ibv_modify_cq(cq, NULL), EINVAL);
	expect_case("largest values");
	attr.attr_mask = IBV_CQ_ATTR_MODERATE;
	attr.moderate.cq_count = device.cq_mod_caps.max_cq_count;
	attr.moderate.cq_period = device.cq_mod_caps.max_cq_period;
	EXPECT_EQ(ibv_modify_cq(cq, &attr), 0);
}

static void moderate(uint16_t count, uint16_t period)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = {.cq_count = count, .cq_period = period},
	};

	CHECK(ibv_modify_cq(cq, &attr) == 0);
}

/* A receive posted in ERR is an entry at once. */
static void entries(int n)
{
	while (n--) {
		struct ibv_recv_wr recv = {.wr_id = 1}, *bad;

		CHECK(!ibv_post_recv(qp, &recv, &bad));
	}
}

static int drain(void)
{
	struct ibv_wc wc[16];

	return ibv_poll_cq(cq, 16, wc);
}

/* Whether an event comes within the time; it is acknowledged. */
static bool event(int ms)
{
	struct pollfd poller = {.fd = channel->fd, .events = POLLIN};
	struct ibv_cq *of;
	void *context;

	if (poll(&poller, 1, ms) != 1)
		return false;
	CHECK(ibv_get_cq_event(channel, &of, &context) == 0);
	EXPECT(of == cq);
	ibv_ack_cq_events(of, 1);
	return true;
}

static void by_count(void)
{
	expect_case("count: the event comes with the fourth entry, entries at once");
	moderate(4, 0);
	CHECK(!ibv_req_notify_cq(cq, 0));
	entries(3);
	EXPECT(!event(EP_QUIET_MS));
	EXPECT_EQ(drain(), 3);
	entries(1);
	EXPECT(event(EP_WAIT_MS));
	EXPECT_EQ(drain(), 1);
	expect_case("count: one event per arming");
	entries(8);
	EXPECT(!event(EP_QUIET_MS));
	expect_case("count: entries that lie there when it is armed count");
	CHECK(!ibv_req_notify_cq(cq, 0));
	EXPECT(event(EP_WAIT_MS));
	EXPECT_EQ(drain(), 8);
	expect_case("count: entries polled before arming do not");
	entries(3);
	EXPECT_EQ(drain(), 3);
	CHECK(!ibv_req_notify_cq(cq, 0));
	entries(3);
	EXPECT(!event(EP_QUIET_MS));
	entries(1);
	EXPECT(event(EP_WAIT_MS));
	EXPECT_EQ(drain(), 4);
}

static void by_period(void)
{
	expect_case("period: one entry is told of when it is over");
	moderate(1000, 20000);
	CHECK(!ibv_req_notify_cq(cq, 0));
	entries(1);
	EXPECT(event(EP_WAIT_MS));
	EXPECT_EQ(drain(), 1);
	expect_case("period without count");
	moderate(0, 1000);
	CHECK(!ibv_req_notify_cq(cq, 0));
	entries(2);
	EXPECT(event(EP_WAIT_MS));
	EXPECT_EQ(drain(), 2);
	expect_case("period: nothing to tell of any more");
	moderate(1000, 10000);
	CHECK(!ibv_req_notify_cq(cq, 0));
	entries(1);
	EXPECT_EQ(drain(), 1);
	EXPECT(!event(EP_QUIET_MS));
	entries(1);
	EXPECT(event(EP_WAIT_MS));
	EXPECT_EQ(drain(), 1);
	expect_case("count before period");
	moderate(2, UINT16_MAX);
	CHECK(!ibv_req_notify_cq(cq, 0));
	entries(2);
	EXPECT(event(EP_WAIT_MS));
	EXPECT_EQ(drain(), 2);
}

static void switched_off(void)
{
	expect_case("0/0 tells of what was held back");
	moderate(100, 0);
	CHECK(!ibv_req_notify_cq(cq, 0));
	entries(1);
	EXPECT(!event(EP_QUIET_MS));
	moderate(0, 0);
	EXPECT(event(EP_WAIT_MS));
	EXPECT_EQ(drain(), 1);
	expect_case("afterwards each entry is told of");
	CHECK(!ibv_req_notify_cq(cq, 0));
	entries(1);
	EXPECT(event(EP_WAIT_MS));
	EXPECT_EQ(drain(), 1);
	expect_case("destroyed while a period runs");
	moderate(1000, UINT16_MAX);
	CHECK(!ibv_req_notify_cq(cq, 0));
	entries(1);
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 64},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	ep_main(argc, argv);
	ctx = device_open();
	pd = ibv_alloc_pd(ctx);
	channel = ibv_create_comp_channel(ctx);
	CHECK(pd && channel);
	cq = ibv_create_cq(ctx, 64, NULL, channel, 0);
	CHECK(cq);
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	CHECK(qp);
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_ERR;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	refused();
	by_count();
	by_period();
	switched_off();
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
	EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}
