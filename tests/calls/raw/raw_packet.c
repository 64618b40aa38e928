/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Raw packet queue pairs and flow steering on the loopback device: what is refused, what is sent,
 * which rule gets a frame, tags, drops, counters, VLAN tags. Needs CAP_NET_RAW; without it only the
 * refusal is seen.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"
#include "support/qp_state.h"

#define ETHER_TEST 0x88b5 /* for experiments (IEEE 802) */
#define FRAME      100
#define SLOT       2048 /* bytes of a receive */
#define SLOTS \
	64 /* receives posted all the time: the progress thread takes frames in as they come */

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static uint8_t
	buffer[3 * SLOTS * SLOT + 4096]; /* three queue pairs' receives, then a frame to send */
#define OUT (buffer + sizeof(buffer) - 4096)

/* A queue pair with CQs of its own; receives lie at its part of the buffer. */
struct raw {
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	uint8_t *slots;
	uint8_t *in; /* the frame that was received last */
};

static bool loopback_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i] && !ctx; i++) {
		if (!strcmp(ibv_get_device_name(list[i]), "vb_lo"))
			ctx = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	return ctx != NULL;
}

static struct ibv_qp_init_attr_ex attributes(struct ibv_cq_ex *cq)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 16,
			.max_recv_wr = 2 * SLOTS,
			.max_send_sge = 2,
			.max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};

	attr.send_cq = attr.recv_cq = cq ? ibv_cq_ex_to_cq(cq) : NULL;
	return attr;
}

static int move(struct ibv_qp *qp, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = {.qp_state = to, .port_num = 1};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask);
}

static void post(struct raw *r, uint64_t slot)
{
	struct ibv_sge sge = {(uintptr_t)r->slots + slot * SLOT, SLOT, mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!ibv_post_recv(r->qp, &wr, &bad));
}

static void raw_open_flags(struct raw *r, int part, uint32_t create_flags)
{
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 256,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_FLOW_TAG | IBV_WC_EX_WITH_CVLAN,
	};
	struct ibv_qp_init_attr_ex attr;

	r->slots = buffer + (size_t)part * SLOTS * SLOT;
	r->cq = ibv_create_cq_ex(ctx, &cq_attr);
	CHECK(r->cq);
	attr = attributes(r->cq);
	if (create_flags) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		attr.create_flags = create_flags;
	}
	r->qp = ibv_create_qp_ex(ctx, &attr);
	CHECK(r->qp);
	CHECK(!qp_bring_to(r->qp, &(struct ibv_qp_attr){.port_num = 1}, IBV_QPS_RTS));
	for (uint64_t slot = 0; slot < SLOTS; slot++)
		post(r, slot);
}

static void raw_open(struct raw *r, int part)
{
	raw_open_flags(r, part, 0);
}

static void raw_close(struct raw *r)
{
	EXPECT_EQ(ibv_destroy_qp(r->qp), 0);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(r->cq)), 0);
}

/* A frame of our own type; `mark` tells it from what else the interface carries. */
static uint32_t frame_make(uint8_t *at, uint8_t last, uint16_t vlan, uint8_t mark)
{
	const uint8_t addresses[12] = {0x03, 0, 0x76, 0x62, 0, last, 0x02, 0, 0x76, 0x62, 0, 0xee};
	uint32_t length = 12;

	memcpy(at, addresses, 12);
	if (vlan) {
		uint16_t tag[2] = {htons(0x8100), htons(vlan)};

		memcpy(at + length, tag, 4);
		length += 4;
	}
	at[length++] = ETHER_TEST >> 8;
	at[length++] = ETHER_TEST & 0xff;
	memset(at + length, mark, FRAME - length);
	return FRAME;
}

static int next_entry(struct raw *r, int ms)
{
	struct ibv_poll_cq_attr none = {.comp_mask = 0};
	struct timespec begin, now;
	int64_t passed;
	int rc;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		rc = ibv_start_poll(r->cq, &none);
		clock_gettime(CLOCK_MONOTONIC, &now);
		passed = (now.tv_sec - begin.tv_sec) * 1000 +
			 (now.tv_nsec - begin.tv_nsec) / 1000000;
		if (rc)
			sched_yield();
	} while (rc == ENOENT && passed < ms);
	return rc;
}

static enum ibv_wc_status send_bytes(struct raw *r, uint8_t *from, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)from, length, mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad;
	enum ibv_wc_status status;

	CHECK(!ibv_post_send(r->qp, &wr, &bad));
	CHECK(!next_entry(r, EP_WAIT_MS));
	status = r->cq->status;
	EXPECT_EQ(r->cq->wr_id, 9);
	ibv_end_poll(r->cq);
	return status;
}

static void send_frame(struct raw *r, uint8_t last, uint16_t vlan, uint8_t mark)
{
	EXPECT_STATUS(send_bytes(r, OUT, frame_make(OUT, last, vlan, mark)), IBV_WC_SUCCESS);
}

struct seen {
	uint32_t length, tag;
	uint16_t cvlan;
	uint8_t mark;
};

/* The next frame of our type that comes in within the time; others are passed over. */
static bool receive_within(struct raw *r, struct seen *seen, int ms)
{
	while (!next_entry(r, ms)) {
		uint64_t slot = r->cq->wr_id;
		uint32_t at = 12;

		EXPECT_STATUS(r->cq->status, IBV_WC_SUCCESS);
		EXPECT_EQ(ibv_wc_read_opcode(r->cq), IBV_WC_RECV);
		EXPECT_EQ(ibv_wc_read_qp_num(r->cq), r->qp->qp_num);
		seen->length = ibv_wc_read_byte_len(r->cq);
		seen->tag = ibv_wc_read_flow_tag(r->cq);
		seen->cvlan = ibv_wc_read_cvlan(r->cq);
		ibv_end_poll(r->cq);
		r->in = r->slots + slot * SLOT;
		if (r->in[12] == 0x81 && r->in[13] == 0)
			at += 4;
		seen->mark = r->in[at + 2];
		bool ours = r->in[at] == ETHER_TEST >> 8 && r->in[at + 1] == (ETHER_TEST & 0xff);

		post(r, slot);
		if (ours)
			return true;
	}
	return false;
}

static bool receive(struct raw *r, struct seen *seen)
{
	return receive_within(r, seen, EP_WAIT_MS);
}

/* A rule for frames to our address `last`, with room for actions. */
struct rule {
	struct ibv_flow_attr attr;
	char specs[128];
	uint32_t used;
};

static void rule_add(struct rule *rule, const void *spec, uint32_t size)
{
	memcpy((char *)&rule->attr + sizeof(rule->attr) + rule->used, spec, size);
	rule->used += size;
	rule->attr.num_of_specs++;
	rule->attr.size = (uint16_t)(sizeof(rule->attr) + rule->used);
}

static struct rule rule_any(enum ibv_flow_attr_type type)
{
	struct rule rule = {.attr = {.type = type, .size = sizeof(rule.attr), .port = 1}};

	return rule;
}

static struct rule rule_for(uint8_t last, uint16_t priority)
{
	struct ibv_flow_spec_eth eth = {
		.type = IBV_FLOW_SPEC_ETH,
		.size = sizeof(eth),
		.val = {.dst_mac = {0x03, 0, 0x76, 0x62, 0, last}, .ether_type = htons(ETHER_TEST)},
		.mask = {.dst_mac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, .ether_type = 0xffff},
	};
	struct rule rule = rule_any(IBV_FLOW_ATTR_NORMAL);

	rule.attr.priority = priority;
	rule_add(&rule, &eth, sizeof(eth));
	return rule;
}

static struct ibv_flow *flow(struct raw *r, struct rule *rule)
{
	struct ibv_flow *made = ibv_create_flow(r->qp, &rule->attr);

	CHECK(made);
	return made;
}

static void creation(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &srq_attr);
	struct ibv_qp_init_attr_ex attr = attributes(NULL);

	CHECK(cq && srq);
	expect_case("no CQ");
	EXPECT_NULL(ibv_create_qp_ex(ctx, &attr), EINVAL);
	attr.send_cq = attr.recv_cq = cq;
	expect_case("a shared receive queue");
	attr.srq = srq;
	EXPECT_NULL(ibv_create_qp_ex(ctx, &attr), EINVAL);
	attr.srq = NULL;
	expect_case("operations that frames do not have");
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_IMM;
	EXPECT_NULL(ibv_create_qp_ex(ctx, &attr), EOPNOTSUPP);
	attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
	EXPECT_NULL(ibv_create_qp_ex(ctx, &attr), EOPNOTSUPP);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	expect_case("creation flags that are not offered");
	attr.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	EXPECT_NULL(ibv_create_qp_ex(ctx, &attr), EOPNOTSUPP);
	attr.create_flags = IBV_QP_CREATE_PCI_WRITE_END_PADDING;
	EXPECT_NULL(ibv_create_qp_ex(ctx, &attr), EOPNOTSUPP);
	attr.create_flags = IBV_QP_CREATE_SOURCE_QPN;
	EXPECT_NULL(ibv_create_qp_ex(ctx, &attr), EOPNOTSUPP);
	expect_case("capabilities tell of VLAN tags, steering and spreading");
	{
		struct ibv_device_attr_ex device;

		CHECK(!ibv_query_device_ex(ctx, NULL, &device));
		EXPECT(device.raw_packet_caps & IBV_RAW_PACKET_CAP_CVLAN_STRIPPING);
		EXPECT(device.raw_packet_caps & IBV_RAW_PACKET_CAP_IP_CSUM);
		EXPECT(device.orig_attr.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM);
		EXPECT(device.orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING);
		EXPECT(device.rss_caps.supported_qpts & 1u << IBV_QPT_RAW_PACKET);
		EXPECT_EQ(device.rss_caps.rx_hash_function, IBV_RX_HASH_FUNC_TOEPLITZ);
		EXPECT(device.max_wq_type_rq > 0);
	}
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

/* RESET, INIT, RTR, RTS as in the manual page's table: only the port is asked for. */
static void states(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex attr = attributes(NULL);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr found;
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct ibv_qp *qp;

	attr.send_cq = attr.recv_cq = cq;
	qp = ibv_create_qp_ex(ctx, &attr);
	CHECK(qp);
	expect_case("in RESET");
	EXPECT_EQ(ibv_post_recv(qp, &recv, &bad_recv), EINVAL);
	EXPECT_EQ(ibv_post_send(qp, &wr, &bad), EINVAL);
	EXPECT_REFUSED(move(qp, IBV_QPS_RTR, 0), EINVAL);
	EXPECT_REFUSED(move(qp, IBV_QPS_INIT, 0), EINVAL);
	EXPECT_REFUSED(move(qp, IBV_QPS_INIT, IBV_QP_PORT | IBV_QP_PKEY_INDEX), EINVAL);
	EXPECT_REFUSED(move(qp, IBV_QPS_INIT, IBV_QP_PORT | IBV_QP_QKEY), EINVAL);
	EXPECT_EQ(move(qp, IBV_QPS_INIT, IBV_QP_PORT), 0);
	expect_case("in INIT");
	EXPECT_EQ(ibv_post_recv(qp, &recv, &bad_recv), 0);
	EXPECT_EQ(ibv_post_send(qp, &wr, &bad), EINVAL);
	EXPECT_REFUSED(move(qp, IBV_QPS_RTS, 0), EINVAL);
	EXPECT_REFUSED(move(qp, IBV_QPS_RTR, IBV_QP_AV), EINVAL);
	EXPECT_EQ(move(qp, IBV_QPS_RTR, 0), 0);
	expect_case("in RTR");
	EXPECT_EQ(ibv_post_send(qp, &wr, &bad), EINVAL);
	EXPECT_REFUSED(move(qp, IBV_QPS_RTS, IBV_QP_SQ_PSN), EINVAL);
	EXPECT_EQ(move(qp, IBV_QPS_RTS, 0), 0);
	EXPECT_REFUSED(move(qp, IBV_QPS_SQD, 0), EINVAL);
	expect_case("query");
	EXPECT_EQ(ibv_query_qp(qp, &found, IBV_QP_STATE, &init), 0);
	EXPECT_EQ(found.qp_state, IBV_QPS_RTS);
	EXPECT_EQ(found.port_num, 1);
	EXPECT_EQ(init.qp_type, IBV_QPT_RAW_PACKET);
	expect_case("in ERR posted receives flush");
	EXPECT_EQ(move(qp, IBV_QPS_ERR, 0), 0);
	{
		struct ibv_wc wc;

		EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 1);
		EXPECT_STATUS(wc.status, IBV_WC_WR_FLUSH_ERR);
		EXPECT_EQ(wc.wr_id, 1);
	}
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

static void sending(void)
{
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_READ}, *bad;
	struct raw r;

	raw_open(&r, 0);
	expect_case("shorter than an Ethernet header");
	EXPECT_STATUS(send_bytes(&r, buffer, 13), IBV_WC_LOC_LEN_ERR);
	EXPECT_EQ(r.qp->state, IBV_QPS_RTS);
	EXPECT_EQ(move(r.qp, IBV_QPS_RTS, 0), 0); /* from SQE */
	expect_case("an operation that frames do not have");
	EXPECT_EQ(ibv_post_send(r.qp, &wr, &bad), 0);
	CHECK(!next_entry(&r, EP_WAIT_MS));
	EXPECT_STATUS(r.cq->status, IBV_WC_LOC_QP_OP_ERR);
	ibv_end_poll(r.cq);
	EXPECT_EQ(move(r.qp, IBV_QPS_RTS, 0), 0);
	expect_case("after SQE frames go on");
	send_frame(&r, 1, 0, 0x11);
	raw_close(&r);
}

static void refused_rules(void)
{
	static const struct {
		const char *what;
		enum ibv_flow_attr_type type;
		uint32_t flags, comp_mask;
		uint8_t port;
		int err;
	} rows[] = {
		{"port 0", IBV_FLOW_ATTR_NORMAL, 0, 0, 0, EINVAL},
		{"port 2", IBV_FLOW_ATTR_NORMAL, 0, 0, 2, EINVAL},
		{"no such type", (enum ibv_flow_attr_type)4, 0, 0, 1, EINVAL},
		{"unknown flag", IBV_FLOW_ATTR_NORMAL, 1u << 7, 0, 1, EINVAL},
		{"comp_mask", IBV_FLOW_ATTR_NORMAL, 0, 1, 1, EINVAL},
		{"egress", IBV_FLOW_ATTR_NORMAL, IBV_FLOW_ATTR_FLAGS_EGRESS, 0, 1, EOPNOTSUPP},
		{"sniffer with DONT_TRAP", IBV_FLOW_ATTR_SNIFFER, IBV_FLOW_ATTR_FLAGS_DONT_TRAP, 0,
		 1, EINVAL},
	};
	struct ep_config rc_config = ep_defaults(IBV_QPT_RC), ud_config = ep_defaults(IBV_QPT_UD);
	struct rule rule = rule_for(1, 0);
	struct endpoint rc, ud;
	struct raw r;

	raw_open(&r, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rule bad = rule_any(rows[i].type);

		bad.attr.flags = rows[i].flags;
		bad.attr.comp_mask = rows[i].comp_mask;
		bad.attr.port = rows[i].port;
		expect_case("rule: %s", rows[i].what);
		EXPECT_NULL(ibv_create_flow(r.qp, &bad.attr), rows[i].err);
	}
	expect_case("rule: a sniffer with specs");
	rule.attr.type = IBV_FLOW_ATTR_SNIFFER;
	EXPECT_NULL(ibv_create_flow(r.qp, &rule.attr), EINVAL);
	rule.attr.type = IBV_FLOW_ATTR_NORMAL;
	expect_case("rule: other types of queue pairs");
	ep_open(&rc, &rc_config, EP_HERE);
	ep_open(&ud, &ud_config, EP_HERE);
	EXPECT_NULL(ibv_create_flow(rc.qp, &rule.attr), EINVAL);
	EXPECT_NULL(ibv_create_flow(ud.qp, &rule.attr), EOPNOTSUPP);
	ep_close(&rc);
	ep_close(&ud);
	expect_case("rule: destroyed twice, and while in use");
	{
		struct ibv_flow *made = flow(&r, &rule);
		struct ibv_flow copy = *made;

		EXPECT_REFUSED(ibv_destroy_qp(r.qp), EBUSY);
		made->handle = 0xdeadbeef;
		EXPECT_REFUSED(ibv_destroy_flow(made), ENOENT);
		made->handle = copy.handle;
		EXPECT_EQ(ibv_destroy_flow(made), 0);
	}
	raw_close(&r);
}

static void steering(void)
{
	struct ibv_flow_spec_action_tag tag = {
		.type = IBV_FLOW_SPEC_ACTION_TAG, .size = sizeof(tag), .tag_id = 0xabcd};
	struct ibv_flow_spec_action_drop drop = {.type = IBV_FLOW_SPEC_ACTION_DROP,
						 .size = sizeof(drop)};
	struct rule rule, other;
	struct ibv_flow *f, *g, *all;
	struct raw a = {0}, b = {0}, sender;
	struct seen seen = {0};

	raw_open(&a, 0);
	raw_open(&b, 1);
	raw_open(&sender, 2);

	expect_case("a frame arrives whole, with the tag of its rule; others do not");
	rule = rule_for(1, 0);
	rule_add(&rule, &tag, sizeof(tag));
	f = flow(&a, &rule);
	send_frame(&sender, 2, 0, 0x20);
	send_frame(&sender, 1, 0, 0x21);
	EXPECT(receive(&a, &seen));
	EXPECT_EQ(seen.mark, 0x21);
	EXPECT_EQ(seen.length, FRAME);
	EXPECT_EQ(seen.tag, 0xabcd);
	EXPECT(!memcmp(a.in, OUT, FRAME));

	expect_case("a VLAN tag stays in the frame");
	send_frame(&sender, 1, 0xac0c, 0x22);
	/* The rule names the type behind the tag. */
	EXPECT(receive(&a, &seen));
	EXPECT_EQ(seen.mark, 0x22);
	EXPECT_EQ(seen.length, FRAME);
	EXPECT(a.in[12] == 0x81 && a.in[14] == 0xac && a.in[15] == 0x0c);

	/* Frames stay in order: who sees the one to address 9 next has not got those before it. */
	other = rule_for(9, 0);
	all = flow(&b, &other);

	expect_case("the more urgent rule keeps the frame");
	other = rule_for(1, 7);
	g = flow(&b, &other);
	send_frame(&sender, 1, 0, 0x23);
	EXPECT(receive(&a, &seen));
	EXPECT_EQ(seen.mark, 0x23);
	send_frame(&sender, 9, 0, 0x91);
	EXPECT(receive(&b, &seen));
	EXPECT_EQ(seen.mark, 0x91);
	expect_case("without it the other one gets it");
	EXPECT_EQ(ibv_destroy_flow(f), 0);
	send_frame(&sender, 1, 0, 0x24);
	EXPECT(receive(&b, &seen));
	EXPECT_EQ(seen.mark, 0x24);
	EXPECT_EQ(seen.tag, 0);

	expect_case("DONT_TRAP lets it go on");
	rule = rule_for(1, 0);
	rule.attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	f = flow(&a, &rule);
	send_frame(&sender, 1, 0, 0x25);
	EXPECT(receive(&a, &seen));
	EXPECT_EQ(seen.mark, 0x25);
	EXPECT(receive(&b, &seen));
	EXPECT_EQ(seen.mark, 0x25);
	EXPECT_EQ(ibv_destroy_flow(f), 0);

	expect_case("equal priority: both get it");
	rule = rule_for(1, 7);
	f = flow(&a, &rule);
	send_frame(&sender, 1, 0, 0x26);
	EXPECT(receive(&a, &seen));
	EXPECT_EQ(seen.mark, 0x26);
	EXPECT(receive(&b, &seen));
	EXPECT_EQ(seen.mark, 0x26);
	EXPECT_EQ(ibv_destroy_flow(f), 0);

	expect_case("a dropping rule keeps the frame from everybody");
	rule = rule_for(1, 0);
	rule_add(&rule, &drop, sizeof(drop));
	f = flow(&a, &rule);
	send_frame(&sender, 1, 0, 0x27);
	send_frame(&sender, 9, 0, 0x92);
	EXPECT(receive(&b, &seen));
	EXPECT_EQ(seen.mark, 0x92);
	EXPECT_EQ(ibv_destroy_flow(f), 0);
	EXPECT_EQ(ibv_destroy_flow(all), 0);
	EXPECT_EQ(ibv_destroy_flow(g), 0);
	raw_close(&a);
	raw_close(&b);
	raw_close(&sender);
}

static bool saw_32;

/*
 * Such rules also get the traffic of others on this interface, which may use up the receives: then
 * the frame is sent again.
 */
static bool sent_and_seen(struct raw *sender, uint8_t last, uint8_t mark, struct raw *receiver)
{
	saw_32 = false;
	for (int tries = 0; tries < 40; tries++) {
		struct seen seen;

		send_frame(sender, last, 0, mark);
		while (receive_within(receiver, &seen, 250)) {
			saw_32 |= seen.mark == 0x32;
			if (seen.mark == mark)
				return true;
		}
	}
	return false;
}

static void default_rules(void)
{
	static const enum ibv_flow_attr_type types[] = {
		IBV_FLOW_ATTR_ALL_DEFAULT, IBV_FLOW_ATTR_MC_DEFAULT, IBV_FLOW_ATTR_SNIFFER};
	struct raw a, b, sender;

	raw_open(&a, 0);
	raw_open(&b, 1);
	raw_open(&sender, 2);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct rule rule = rule_any(types[i]), normal = rule_for(1, 0);
		struct ibv_flow *f = flow(&a, &rule), *g;
		struct seen seen = {.mark = 0};

		expect_case("rule of type %d gets what nobody else wants", (int)types[i]);
		EXPECT(sent_and_seen(&sender, 2, 0x31, &a));
		expect_case("rule of type %d beside a normal one", (int)types[i]);
		g = flow(&b, &normal);
		send_frame(&sender, 1, 0, 0x32);
		EXPECT(receive(&b, &seen));
		EXPECT_EQ(seen.mark, 0x32);
		if (types[i] == IBV_FLOW_ATTR_SNIFFER)
			EXPECT(sent_and_seen(&sender, 1, 0x34, &a));
		else
			EXPECT(sent_and_seen(&sender, 2, 0x33, &a) && !saw_32);
		EXPECT_EQ(ibv_destroy_flow(g), 0);
		EXPECT_EQ(ibv_destroy_flow(f), 0);
	}
	raw_close(&a);
	raw_close(&b);
	raw_close(&sender);
}

static void counting(void)
{
	struct ibv_counters_init_attr init = {.comp_mask = 0}, bad_init = {.comp_mask = 1};
	struct ibv_counter_attach_attr packets = {.counter_desc = IBV_COUNTER_PACKETS, .index = 2};
	struct ibv_counter_attach_attr bytes = {.counter_desc = IBV_COUNTER_BYTES, .index = 0};
	struct ibv_counter_attach_attr bad = {.counter_desc = (enum ibv_counter_description)9,
					      .index = 0};
	struct ibv_flow_spec_counter_action count = {.type = IBV_FLOW_SPEC_ACTION_COUNT,
						     .size = sizeof(count)};
	uint64_t values[4] = {9, 9, 9, 9};
	struct rule rule = rule_for(1, 0);
	struct ibv_counters *counters;
	struct ibv_flow *f;
	struct raw a, sender;
	struct seen seen;

	raw_open(&a, 0);
	raw_open(&sender, 2);
	expect_case("counters: refused");
	EXPECT_NULL(ibv_create_counters(ctx, &bad_init), EINVAL);
	counters = ibv_create_counters(ctx, &init);
	CHECK(counters);
	EXPECT_REFUSED(ibv_attach_counters_point_flow(counters, &bad, NULL), ENOTSUP);
	bad = bytes;
	bad.comp_mask = 1;
	EXPECT_REFUSED(ibv_attach_counters_point_flow(counters, &bad, NULL), EINVAL);
	expect_case("counters: points, values from zero");
	EXPECT_EQ(ibv_attach_counters_point_flow(counters, &packets, NULL), 0);
	EXPECT_EQ(ibv_attach_counters_point_flow(counters, &bytes, NULL), 0);
	EXPECT_EQ(ibv_read_counters(counters, values, 4, 0), 0);
	EXPECT(!values[0] && !values[1] && !values[2] && !values[3]);
	EXPECT_REFUSED(ibv_read_counters(counters, values, 4, 1u << 9), EINVAL);
	EXPECT_REFUSED(ibv_read_counters(counters, NULL, 4, 0), EINVAL);
	expect_case("counters: bound to a rule");
	count.counters = counters;
	rule_add(&rule, &count, sizeof(count));
	f = flow(&a, &rule);
	EXPECT_REFUSED(ibv_attach_counters_point_flow(counters, &packets, f), ENOTSUP);
	EXPECT_REFUSED(ibv_attach_counters_point_flow(counters, &packets, NULL), EBUSY);
	EXPECT_REFUSED(ibv_destroy_counters(counters), EBUSY);
	for (int i = 0; i < 3; i++) {
		send_frame(&sender, 1, 0, 0x41);
		EXPECT(receive(&a, &seen));
	}
	EXPECT_EQ(ibv_read_counters(counters, values, 4, IBV_READ_COUNTERS_ATTR_PREFER_CACHED), 0);
	EXPECT_EQ(values[2], 3);
	EXPECT_EQ(values[0], 3 * FRAME);
	EXPECT_EQ(values[1] + values[3], 0);
	EXPECT_EQ(ibv_destroy_flow(f), 0);
	EXPECT_EQ(ibv_destroy_counters(counters), 0);
	raw_close(&a);
	raw_close(&sender);
}

/* IBV_QP_CREATE_CVLAN_STRIPPING: the tag is in the completion instead of the frame. */
static void stripping(void)
{
	struct rule rule = rule_for(1, 0);
	struct raw a = {0}, sender;
	struct ibv_flow *f;
	struct seen seen = {0};

	expect_case("VLAN tags taken off");
	raw_open_flags(&a, 0, IBV_QP_CREATE_CVLAN_STRIPPING);
	raw_open(&sender, 2);
	f = flow(&a, &rule);
	send_frame(&sender, 1, 0xac0c, 0x51);
	EXPECT(receive(&a, &seen));
	EXPECT_EQ(seen.cvlan, 0xac0c);
	EXPECT_EQ(seen.length, FRAME - 4);
	EXPECT(a.in[12] == ETHER_TEST >> 8 && a.in[14] == 0x51);
	send_frame(&sender, 1, 0, 0x52);
	EXPECT(receive(&a, &seen));
	EXPECT_EQ(seen.cvlan, 0);
	EXPECT_EQ(seen.length, FRAME);
	EXPECT_EQ(ibv_destroy_flow(f), 0);
	raw_close(&a);
	raw_close(&sender);
}

/* IBV_SEND_IP_CSUM fills checksums in, IBV_WC_IP_CSUM_OK tells that they are right. */
static void checksums(void)
{
	struct ibv_flow_spec_eth eth = {
		.type = IBV_FLOW_SPEC_ETH,
		.size = sizeof(eth),
		.val = {.dst_mac = {0x03, 0, 0x76, 0x62, 0, 7}},
		.mask = {.dst_mac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
	};
	static const uint8_t udp[] = {0x03, 0,    0x76, 0x62, 0,    7,    0x02, 0,    0x76, 0x62,
				      0,    0xee, 0x08, 0,    0x45, 0,    0,    32,   0,    0,
				      0x40, 0,    64,   17,   0,    0,    10,   9,    9,    1,
				      10,   9,    9,    2,    0x30, 0x39, 0x30, 0x3a, 0,    12,
				      0x12, 0x34, 1,    2,    3,    4};
	struct rule rule = rule_any(IBV_FLOW_ATTR_NORMAL);
	struct ibv_sge sge = {(uintptr_t)OUT, sizeof(udp), mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct raw a = {0}, sender;
	struct ibv_send_wr *bad;
	struct ibv_flow *f;

	raw_open(&a, 0);
	raw_open(&sender, 2);
	rule_add(&rule, &eth, sizeof(eth));
	f = flow(&a, &rule);
	for (int i = 0; i < 2; i++) {
		expect_case("checksums %s", i ? "made" : "wrong");
		memcpy(OUT, udp, sizeof(udp));
		wr.send_flags = i ? IBV_SEND_IP_CSUM : 0;
		CHECK(!ibv_post_send(sender.qp, &wr, &bad));
		CHECK(!next_entry(&sender, EP_WAIT_MS));
		ibv_end_poll(sender.cq);
		CHECK(!next_entry(&a, EP_WAIT_MS));
		EXPECT_STATUS(a.cq->status, IBV_WC_SUCCESS);
		EXPECT_EQ(ibv_wc_read_wc_flags(a.cq), i ? IBV_WC_IP_CSUM_OK : 0);
		EXPECT_EQ(ibv_wc_read_byte_len(a.cq), sizeof(udp));
		ibv_end_poll(a.cq);
		/* The program's own memory stays as it was. */
		EXPECT(!memcmp(OUT, udp, sizeof(udp)));
	}
	EXPECT_EQ(ibv_destroy_flow(f), 0);
	raw_close(&a);
	raw_close(&sender);
}

/* Without a poller the progress thread takes frames in: an armed channel wakes. */
static void nobody_polls(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_qp_init_attr_ex attr;
	struct rule rule = rule_for(1, 0);
	struct ibv_cq *cq, *of;
	struct raw a = {.slots = buffer}, sender;
	struct ibv_flow *f;
	struct ibv_wc wc;
	void *context;

	expect_case("an event when nobody polls");
	CHECK(channel);
	cq = ibv_create_cq(ctx, 16, NULL, channel, 0);
	attr = attributes((struct ibv_cq_ex *)cq);
	a.qp = ibv_create_qp_ex(ctx, &attr);
	CHECK(a.qp);
	CHECK(!move(a.qp, IBV_QPS_INIT, IBV_QP_PORT));
	CHECK(!move(a.qp, IBV_QPS_RTR, 0));
	raw_open(&sender, 2);
	f = flow(&a, &rule);
	post(&a, 0);
	CHECK(!ibv_req_notify_cq(cq, 0));
	send_frame(&sender, 1, 0, 0x61);
	EXPECT_EQ(ibv_get_cq_event(channel, &of, &context), 0);
	ibv_ack_cq_events(of, 1);
	EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 1);
	EXPECT_EQ(wc.byte_len, FRAME);
	EXPECT_EQ(ibv_destroy_flow(f), 0);
	EXPECT_EQ(ibv_destroy_qp(a.qp), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
	EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
	raw_close(&sender);
}

/*
 * A program that polls has lost its processor for a moment: the frames that came meanwhile are more
 * than its receives.
 */
static void frames_wait(void)
{
	struct raw a, sender;
	struct rule rule = rule_for(1, 0);
	struct seen seen = {0};
	struct ibv_flow *f;

	expect_case("frames wait a while for receives");
	raw_open(&a, 0);
	raw_open(&sender, 2);
	f = flow(&a, &rule);
	for (int i = 0; i < 3 * SLOTS; i++)
		send_frame(&sender, 1, 0, (uint8_t)i);
	usleep(50000); /* the progress thread takes them */
	for (int i = 0; i < 3 * SLOTS; i++) {
		CHECK(receive(&a, &seen));
		EXPECT_EQ(seen.mark, (uint8_t)i);
	}
	EXPECT_EQ(ibv_destroy_flow(f), 0);
	raw_close(&a);
	raw_close(&sender);
}

/*
 * ibv_close_device(3) with a rule and its queue pair left: nothing of them goes on, other contexts
 * do.
 */
static void closed_with_rules(void)
{
	/* The memory of what is left stays until the process ends; it is not forgotten either. */
	static void *volatile left[4];
	struct ibv_context *first = ctx;
	struct ibv_pd *first_pd = pd;
	struct rule rule = rule_for(1, 0);
	struct raw a = {0}, sender;
	struct ibv_qp_init_attr_ex attr;
	struct seen seen = {0};
	struct ibv_flow *f;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	expect_case("closing the device under a rule");
	ctx = NULL;
	CHECK(loopback_open());
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	CHECK(pd && cq);
	attr = attributes((struct ibv_cq_ex *)cq);
	qp = ibv_create_qp_ex(ctx, &attr);
	CHECK(qp);
	CHECK(ibv_create_flow(qp, &rule.attr));
	left[0] = ctx;
	left[1] = pd;
	left[2] = cq;
	left[3] = qp;
	EXPECT_EQ(ibv_close_device(left[0]), 0);
	ctx = first;
	pd = first_pd;
	raw_open(&a, 0);
	raw_open(&sender, 2);
	rule = rule_for(1, 7); /* less urgent than the one that is gone */
	f = flow(&a, &rule);
	send_frame(&sender, 1, 0, 0x71);
	EXPECT(receive(&a, &seen));
	EXPECT_EQ(seen.mark, 0x71);
	EXPECT_EQ(ibv_destroy_flow(f), 0);
	raw_close(&a);
	raw_close(&sender);
}

/*
 * ibv_create_flow(3): the program has closed descriptors that it did not open; the queue pair is
 * taken apart as any other.
 */
static void closed_socket(void)
{
	enum { LOOK_AT = 4096 };
	static bool before[LOOK_AT];
	struct rule rule = rule_for(1, 0);
	struct raw a;

	expect_case("a rule when the program closed the sockets");
	for (int fd = 0; fd < LOOK_AT; fd++)
		before[fd] = fcntl(fd, F_GETFD) >= 0;
	raw_open(&a, 0);
	for (int fd = 0; fd < LOOK_AT; fd++) {
		if (!before[fd])
			close(fd);
	}
	EXPECT_NULL(ibv_create_flow(a.qp, &rule.attr), EBADF);
	raw_close(&a);
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr_ex attr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	ep_main(argc, argv);
	if (!loopback_open())
		SKIP("no device of the loopback interface");
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	CHECK(pd && cq);
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	attr = attributes(NULL);
	attr.send_cq = attr.recv_cq = cq;
	expect_case("raw packet queue pair");
	errno = 0;
	qp = ibv_create_qp_ex(ctx, &attr);
	if (!qp) {
		EXPECT_EQ(errno, EPERM);
		SKIP("raw packet queue pairs need CAP_NET_RAW");
	}
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
	creation();
	states();
	sending();
	refused_rules();
	steering();
	default_rules();
	counting();
	stripping();
	checksums();
	nobody_polls();
	frames_wait();
	closed_socket();
	closed_with_rules();
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}
