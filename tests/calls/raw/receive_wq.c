/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receive work queues and indirection tables: limits, states, which object keeps which alive, and
 * (with CAP_NET_RAW) frames that are spread over queues by their hash.
 */
#include <arpa/inet.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"
#include "support/qp_state.h"

#define QUEUES 4
#define FRAMES 32

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t buffer[65536];

static struct ibv_wq_init_attr good(void)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 8, .max_sge = 2, .pd = pd, .cq = cq};

	return attr;
}

static void creation(void)
{
	struct ibv_device_attr_ex device;
	struct ibv_wq_init_attr attr = good();
	struct ibv_wq *wq;

	CHECK(!ibv_query_device_ex(ctx, NULL, &device));
	expect_case("max_wr 0");
	attr.max_wr = 0;
	EXPECT_NULL(ibv_create_wq(ctx, &attr), EINVAL);
	expect_case("max_wr too large");
	attr.max_wr = (uint32_t)device.orig_attr.max_qp_wr + 1;
	EXPECT_NULL(ibv_create_wq(ctx, &attr), EINVAL);
	attr = good();
	expect_case("max_sge too large");
	attr.max_sge = (uint32_t)device.orig_attr.max_sge + 1;
	EXPECT_NULL(ibv_create_wq(ctx, &attr), EINVAL);
	attr = good();
	expect_case("no such type");
	attr.wq_type = (enum ibv_wq_type)3;
	EXPECT_NULL(ibv_create_wq(ctx, &attr), EINVAL);
	attr = good();
	expect_case("no pd, no cq");
	attr.pd = NULL;
	EXPECT_NULL(ibv_create_wq(ctx, &attr), EINVAL);
	attr = good();
	attr.cq = NULL;
	EXPECT_NULL(ibv_create_wq(ctx, &attr), EINVAL);
	attr = good();
	expect_case("comp_mask");
	attr.comp_mask = IBV_WQ_INIT_ATTR_RESERVED;
	EXPECT_NULL(ibv_create_wq(ctx, &attr), EINVAL);
	attr.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
	for (uint32_t flag = 1; flag <= IBV_WQ_FLAGS_RESERVED; flag <<= 1) {
		expect_case("creation flag %#x", flag);
		attr.create_flags = flag;
		if (flag == IBV_WQ_FLAGS_CVLAN_STRIPPING)
			continue;
		EXPECT_NULL(ibv_create_wq(ctx, &attr),
			    flag == IBV_WQ_FLAGS_RESERVED ? EINVAL : EOPNOTSUPP);
	}
	expect_case("the smallest");
	attr = good();
	attr.max_wr = 1;
	attr.max_sge = 0;
	wq = ibv_create_wq(ctx, &attr);
	CHECK(wq);
	EXPECT_EQ(attr.max_sge, 1); /* the room that a receive has */
	EXPECT_EQ(ibv_destroy_wq(wq), 0);
	expect_case("the largest");
	attr = good();
	attr.max_wr = (uint32_t)device.orig_attr.max_qp_wr;
	attr.max_sge = (uint32_t)device.orig_attr.max_sge;
	attr.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
	attr.create_flags = IBV_WQ_FLAGS_CVLAN_STRIPPING;
	wq = ibv_create_wq(ctx, &attr);
	CHECK(wq);
	EXPECT(attr.max_wr >= (uint32_t)device.orig_attr.max_qp_wr);
	EXPECT(wq->pd == pd && wq->cq == cq && wq->state == IBV_WQS_RESET && wq->wq_num);
	EXPECT_REFUSED(ibv_destroy_cq(cq), EBUSY);
	EXPECT_REFUSED(ibv_dealloc_pd(pd), EBUSY);
	EXPECT_EQ(ibv_destroy_wq(wq), 0);
}

static int move(struct ibv_wq *wq, enum ibv_wq_state to)
{
	struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = to};

	return ibv_modify_wq(wq, &attr);
}

static int post(struct ibv_wq *wq, uint64_t wr_id, int num_sge)
{
	struct ibv_sge sge[8] = {{(uintptr_t)buffer, 2048, mr->lkey}};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = num_sge}, *bad = NULL;
	int err = ibv_post_wq_recv(wq, &wr, &bad);

	EXPECT(!err || bad == &wr);
	return err;
}

static void states(void)
{
	/* From, to, answer; ibv_modify_wq(3). */
	static const struct {
		enum ibv_wq_state from, to;
		int err;
	} rows[] = {
		{IBV_WQS_RESET, IBV_WQS_RESET, 0},    {IBV_WQS_RESET, IBV_WQS_RDY, 0},
		{IBV_WQS_RESET, IBV_WQS_ERR, EINVAL}, {IBV_WQS_RDY, IBV_WQS_RESET, 0},
		{IBV_WQS_RDY, IBV_WQS_RDY, 0},        {IBV_WQS_RDY, IBV_WQS_ERR, 0},
		{IBV_WQS_ERR, IBV_WQS_RESET, 0},      {IBV_WQS_ERR, IBV_WQS_RDY, EINVAL},
		{IBV_WQS_ERR, IBV_WQS_ERR, 0},        {IBV_WQS_RDY, IBV_WQS_UNKNOWN, EINVAL},
	};
	struct ibv_wq_init_attr init = good();
	struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_RESERVED};
	struct ibv_wq *wq = ibv_create_wq(ctx, &init);
	struct ibv_wc wc[16];
	uint32_t handle;

	CHECK(wq);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK(!move(wq, IBV_WQS_RESET));
		if (rows[i].from != IBV_WQS_RESET)
			CHECK(!move(wq, IBV_WQS_RDY));
		if (rows[i].from == IBV_WQS_ERR)
			CHECK(!move(wq, IBV_WQS_ERR));
		expect_case("state %d to %d", (int)rows[i].from, (int)rows[i].to);
		EXPECT_EQ(move(wq, rows[i].to), rows[i].err);
		EXPECT_EQ(wq->state, rows[i].err ? rows[i].from : rows[i].to);
	}
	CHECK(!move(wq, IBV_WQS_RESET));
	expect_case("masks");
	EXPECT_REFUSED(ibv_modify_wq(wq, &attr), EINVAL);
	attr.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE;
	attr.wq_state = IBV_WQS_RDY;
	attr.curr_wq_state = IBV_WQS_ERR;
	EXPECT_REFUSED(ibv_modify_wq(wq, &attr), EINVAL);
	attr.curr_wq_state = IBV_WQS_RESET;
	attr.attr_mask |= IBV_WQ_ATTR_FLAGS;
	attr.flags_mask = attr.flags = IBV_WQ_FLAGS_DELAY_DROP;
	EXPECT_REFUSED(ibv_modify_wq(wq, &attr), EOPNOTSUPP);
	expect_case("posting in RESET");
	EXPECT_EQ(post(wq, 1, 1), EINVAL);
	attr.flags_mask = attr.flags = IBV_WQ_FLAGS_CVLAN_STRIPPING;
	EXPECT_EQ(ibv_modify_wq(wq, &attr), 0);
	expect_case("posting: too many elements, too many requests");
	EXPECT_EQ(post(wq, 1, (int)init.max_sge + 1), EINVAL);
	for (uint32_t i = 0; i < init.max_wr; i++)
		EXPECT_EQ(post(wq, i, 1), 0);
	EXPECT_EQ(post(wq, 99, 1), ENOMEM);
	expect_case("ERR flushes in order, also what is posted later");
	EXPECT_EQ(ibv_poll_cq(cq, 16, wc), 0);
	EXPECT_EQ(move(wq, IBV_WQS_ERR), 0);
	EXPECT_EQ(post(wq, init.max_wr, 1), 0);
	EXPECT_EQ(ibv_poll_cq(cq, 16, wc), init.max_wr + 1);
	for (uint32_t i = 0; i <= init.max_wr; i++) {
		EXPECT_EQ(wc[i].wr_id, i);
		EXPECT_STATUS(wc[i].status, IBV_WC_WR_FLUSH_ERR);
		EXPECT_EQ(wc[i].qp_num, wq->wq_num);
	}
	expect_case("RESET forgets entries that were not polled");
	EXPECT_EQ(post(wq, 1, 1), 0);
	EXPECT_EQ(move(wq, IBV_WQS_RESET), 0);
	EXPECT_EQ(ibv_poll_cq(cq, 16, wc), 0);
	expect_case("handle overwritten");
	handle = wq->handle;
	wq->handle = 0xdeadbeef;
	EXPECT_REFUSED(ibv_destroy_wq(wq), ENOENT);
	EXPECT_REFUSED(move(wq, IBV_WQS_RDY), ENOENT);
	wq->handle = handle;
	EXPECT_EQ(ibv_destroy_wq(wq), 0);
}

static void tables(void)
{
	struct ibv_wq_init_attr init = good();
	struct ibv_device_attr_ex device;
	struct ibv_wq *wq = ibv_create_wq(ctx, &init), *entries[2] = {wq, NULL};
	struct ibv_rwq_ind_table_init_attr attr = {.log_ind_tbl_size = 31, .ind_tbl = entries};
	struct ibv_rwq_ind_table *table;
	int handle;

	CHECK(wq && !ibv_query_device_ex(ctx, NULL, &device));
	EXPECT(device.rss_caps.max_rwq_indirection_table_size >= 128);
	expect_case("table: too large");
	EXPECT_NULL(ibv_create_rwq_ind_table(ctx, &attr), EINVAL);
	expect_case("table: an entry is missing");
	attr.log_ind_tbl_size = 1;
	EXPECT_NULL(ibv_create_rwq_ind_table(ctx, &attr), EINVAL);
	expect_case("table: comp_mask");
	attr.log_ind_tbl_size = 0;
	attr.comp_mask = IBV_CREATE_IND_TABLE_RESERVED;
	EXPECT_NULL(ibv_create_rwq_ind_table(ctx, &attr), EINVAL);
	attr.comp_mask = 0;
	expect_case("table: no entries");
	attr.ind_tbl = NULL;
	EXPECT_NULL(ibv_create_rwq_ind_table(ctx, &attr), EINVAL);
	attr.ind_tbl = entries;
	expect_case("table: one queue twice, kept alive");
	entries[1] = wq;
	attr.log_ind_tbl_size = 1;
	table = ibv_create_rwq_ind_table(ctx, &attr);
	CHECK(table);
	EXPECT_REFUSED(ibv_destroy_wq(wq), EBUSY);
	handle = table->ind_tbl_handle;
	table->ind_tbl_handle = 0x7eadbeef;
	EXPECT_REFUSED(ibv_destroy_rwq_ind_table(table), ENOENT);
	table->ind_tbl_handle = handle;
	EXPECT_EQ(ibv_destroy_rwq_ind_table(table), 0);
	EXPECT_EQ(ibv_destroy_wq(wq), 0);
}

static uint8_t key[40] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2};

static struct ibv_qp_init_attr_ex spread_attr(struct ibv_rwq_ind_table *table)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.pd = pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
				 .rx_hash_key_len = sizeof(key),
				 .rx_hash_key = key,
				 .rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 |
							IBV_RX_HASH_DST_IPV4},
	};

	return attr;
}

static void spread_refused(struct ibv_rwq_ind_table *table)
{
	struct ibv_qp_init_attr_ex attr = spread_attr(table);

	expect_case("spread: not a raw packet queue pair");
	attr.qp_type = IBV_QPT_RC;
	EXPECT_NULL(ibv_create_qp_ex(ctx, &attr), EINVAL);
	expect_case("spread: the hash function");
	attr = spread_attr(table);
	attr.rx_hash_conf.rx_hash_function = 2;
	EXPECT_NULL(ibv_create_qp_ex(ctx, &attr), EOPNOTSUPP);
	expect_case("spread: the key's length");
	attr = spread_attr(table);
	attr.rx_hash_conf.rx_hash_key_len = 20;
	EXPECT_NULL(ibv_create_qp_ex(ctx, &attr), EINVAL);
	expect_case("spread: two address families");
	attr = spread_attr(table);
	attr.rx_hash_conf.rx_hash_fields_mask |= IBV_RX_HASH_SRC_IPV6;
	EXPECT_NULL(ibv_create_qp_ex(ctx, &attr), EINVAL);
	expect_case("spread: TCP and UDP");
	attr = spread_attr(table);
	attr.rx_hash_conf.rx_hash_fields_mask = IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_UDP;
	EXPECT_NULL(ibv_create_qp_ex(ctx, &attr), EINVAL);
	expect_case("spread: unknown field");
	attr = spread_attr(table);
	attr.rx_hash_conf.rx_hash_fields_mask |= 1u << 20;
	EXPECT_NULL(ibv_create_qp_ex(ctx, &attr), EOPNOTSUPP);
	expect_case("spread: a table without a hash");
	attr = spread_attr(table);
	attr.comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_RX_HASH;
	EXPECT_NULL(ibv_create_qp_ex(ctx, &attr), EINVAL);
	expect_case("spread: queues of its own");
	attr = spread_attr(table);
	attr.cap.max_recv_wr = 1;
	EXPECT_NULL(ibv_create_qp_ex(ctx, &attr), EINVAL);
}

/* IPv4 from 10.0.0.i; our own Ethernet type would have no addresses to hash. */
static uint32_t frame_make(uint8_t *at, uint8_t i)
{
	const uint8_t head[] = {0x03, 0, 0x76, 0x62, 1, 1,  0x02, 0, 0x76, 0x62, 0,  0xef,
				0x08, 0, 0x45, 0,    0, 46, 0,    0, 0x40, 0,    64, 253,
				0,    0, 10,   0,    0, i,  10,   9, 9,    9};

	memcpy(at, head, sizeof(head));
	memset(at + sizeof(head), i, 60 - sizeof(head));
	return 60;
}

static struct ibv_qp *sender_open(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 64, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp_attr to = {.port_num = 1};
	struct ibv_qp *qp = ibv_create_qp_ex(ctx, &attr);

	if (!qp)
		return NULL;
	CHECK(!qp_bring_to(qp, &to, IBV_QPS_RTS));
	return qp;
}

static struct ibv_flow *flow_make(struct ibv_qp *qp)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = {.type = IBV_FLOW_ATTR_NORMAL,
			 .size = sizeof(rule),
			 .num_of_specs = 1,
			 .port = 1},
		.eth = {.type = IBV_FLOW_SPEC_ETH,
			.size = sizeof(rule.eth),
			.val = {.dst_mac = {0x03, 0, 0x76, 0x62, 1, 1}},
			.mask = {.dst_mac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}},
	};

	return ibv_create_flow(qp, &rule.attr);
}

static void send_all(struct ibv_qp *qp)
{
	for (uint8_t i = 0; i < FRAMES; i++) {
		struct ibv_sge sge = {(uintptr_t)buffer + 60000, 0, mr->lkey};
		struct ibv_send_wr wr = {.wr_id = 1000,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED};
		struct ibv_send_wr *bad;

		sge.length = frame_make(buffer + 60000, i);
		CHECK(!ibv_post_send(qp, &wr, &bad));
	}
}

/*
 * A buffer that cannot be written breaks its queue: one error, the rest flushed, an event that
 * destroying waits for.
 */
static void broken(void)
{
	struct ibv_wq_init_attr init = good();
	struct ibv_rwq_ind_table_init_attr attr = {.log_ind_tbl_size = 0};
	struct ibv_sge bad_sge = {(uintptr_t)buffer, 2048, mr->lkey + 1};
	struct ibv_recv_wr recv = {.wr_id = 7, .sg_list = &bad_sge, .num_sge = 1}, *bad_recv;
	struct ibv_qp *sender = sender_open(), *qp;
	struct ibv_rwq_ind_table *table;
	struct ibv_qp_init_attr_ex qp_attr;
	struct ibv_async_event event;
	struct timespec begin, now;
	struct ibv_flow *flow;
	struct ibv_wq *wq;
	uint64_t seen[2] = {0};
	int n = 0;

	expect_case("a queue breaks");
	if (!sender) {
		EXPECT_EQ(errno, EPERM);
		return;
	}
	wq = ibv_create_wq(ctx, &init);
	CHECK(wq && !move(wq, IBV_WQS_RDY));
	CHECK(!ibv_post_wq_recv(wq, &recv, &bad_recv));
	CHECK(!post(wq, 8, 1));
	attr.ind_tbl = &wq;
	table = ibv_create_rwq_ind_table(ctx, &attr);
	CHECK(table);
	qp_attr = spread_attr(table);
	qp = ibv_create_qp_ex(ctx, &qp_attr);
	flow = qp ? flow_make(qp) : NULL;
	CHECK(flow);
	send_all(sender);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		struct ibv_wc wc;

		clock_gettime(CLOCK_MONOTONIC, &now);
		if (ibv_poll_cq(cq, 1, &wc) == 1 && wc.wr_id != 1000 && n < 2) {
			EXPECT_STATUS(wc.status, n ? IBV_WC_WR_FLUSH_ERR : IBV_WC_LOC_PROT_ERR);
			seen[n++] = wc.wr_id;
		}
		sched_yield();
	} while (n < 2 && now.tv_sec < begin.tv_sec + EP_WAIT_MS / 1000);
	EXPECT(seen[0] == 7 && seen[1] == 8);
	EXPECT_EQ(ibv_get_async_event(ctx, &event), 0);
	EXPECT_EQ(event.event_type, IBV_EVENT_WQ_FATAL);
	EXPECT(event.element.wq == wq);
	ibv_ack_async_event(&event);
	EXPECT_EQ(ibv_destroy_flow(flow), 0);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_rwq_ind_table(table), 0);
	EXPECT_EQ(ibv_destroy_wq(wq), 0);
	EXPECT_EQ(ibv_destroy_qp(sender), 0);
}

static void spread(void)
{
	struct ibv_wq_init_attr init = good();
	struct ibv_rwq_ind_table_init_attr attr = {.log_ind_tbl_size = 2};
	struct ibv_wq *wq[QUEUES];
	struct ibv_rwq_ind_table *table;
	struct ibv_qp_init_attr_ex qp_attr;
	struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp *qp, *sender = sender_open();
	struct ibv_flow *flow;
	uint32_t got[QUEUES] = {0}, sum = 0, used = 0;
	struct timespec begin, now;

	expect_case("spread: frames over queues");
	if (!sender) {
		EXPECT_EQ(errno, EPERM);
		return;
	}
	init.max_wr = FRAMES;
	for (int i = 0; i < QUEUES; i++) {
		wq[i] = ibv_create_wq(ctx, &init);
		CHECK(wq[i] && !move(wq[i], IBV_WQS_RDY));
		for (uint64_t k = 0; k < FRAMES; k++)
			CHECK(!post(wq[i], (uint64_t)i, 1));
	}
	attr.ind_tbl = wq;
	table = ibv_create_rwq_ind_table(ctx, &attr);
	CHECK(table);
	spread_refused(table);
	qp_attr = spread_attr(table);
	qp = ibv_create_qp_ex(ctx, &qp_attr);
	CHECK(qp);
	EXPECT_REFUSED(ibv_destroy_rwq_ind_table(table), EBUSY);
	EXPECT_EQ(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PORT), EOPNOTSUPP);
	flow = flow_make(qp);
	CHECK(flow);
	expect_case("spread: every frame once, in the queue of its hash");
	send_all(sender);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (uint32_t all = 0; all < 2 * FRAMES;) {
		struct ibv_wc wc;

		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec >= begin.tv_sec + EP_WAIT_MS / 1000)
			break;
		if (ibv_poll_cq(cq, 1, &wc) != 1) {
			sched_yield();
			continue;
		}
		all++;
		EXPECT_STATUS(wc.status, IBV_WC_SUCCESS);
		if (wc.wr_id == 1000)
			continue;
		CHECK(wc.wr_id < QUEUES);
		EXPECT_EQ(wc.qp_num, wq[wc.wr_id]->wq_num);
		EXPECT_EQ(wc.byte_len, 60);
		got[wc.wr_id]++;
		sum++;
	}
	for (int i = 0; i < QUEUES; i++)
		used += got[i] != 0;
	EXPECT_EQ(sum, FRAMES);
	EXPECT(used > 1);
	EXPECT_EQ(ibv_destroy_flow(flow), 0);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_rwq_ind_table(table), 0);
	for (int i = 0; i < QUEUES; i++)
		EXPECT_EQ(ibv_destroy_wq(wq[i]), 0);
	EXPECT_EQ(ibv_destroy_qp(sender), 0);
}

int main(int argc, char **argv)
{
	struct ibv_device **list;

	ep_main(argc, argv);
	list = ibv_get_device_list(NULL);
	for (int i = 0; list && list[i] && !ctx; i++) {
		if (!strcmp(ibv_get_device_name(list[i]), "vb_lo"))
			ctx = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	if (!ctx)
		SKIP("no device of the loopback interface");
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 512, NULL, NULL, 0);
	mr = pd ? ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE) : NULL;
	CHECK(cq && mr);
	creation();
	states();
	tables();
	spread();
	broken();
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}
