/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tag-matching shared receive queues (ibv_create_srq_ex(3), ibv_post_srq_ops(3)): limits, list
 * operations, eager and unexpected messages, rendezvous with its READ and FIN, what fails how.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include <infiniband/tm_types.h>
#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"
#include "support/qp_state.h"

#define TAGS   8
#define OUT    0     /* what is sent */
#define IN     32768 /* ordinary receives */
#define TAGGED 65536 /* tagged buffers */
#define BYTES  131072

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static uint8_t buffer[BYTES];
static struct ibv_device_attr_ex device;

/* A sender of its own, and a receiver on the queue. */
struct pair {
	struct ibv_cq_ex *cq; /* of the queue: list operations and receives */
	struct ibv_cq *scq;   /* the sender's, both ways */
	struct ibv_srq *srq;
	struct ibv_qp *sender, *receiver;
};

static struct ibv_srq_init_attr_ex srq_attr(struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 16, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = pd,
		.cq = cq,
		.tm_cap = {.max_num_tags = TAGS, .max_ops = 8},
	};

	return attr;
}

static struct ibv_qp *qp_make(enum ibv_qp_type type, struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = type,
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 4, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 1},
	};

	return ibv_create_qp(pd, &init);
}

static void qp_connect(struct ibv_qp *qp, const struct ibv_qp *peer)
{
	struct ibv_qp_attr attr = qp_attr_within(ctx, peer->qp_num);

	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	attr.max_rd_atomic = attr.max_dest_rd_atomic = 4;
	CHECK(!qp_bring_to(qp, &attr, IBV_QPS_RTS));
}

static void pair_open(struct pair *p)
{
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO};
	struct ibv_srq_init_attr_ex attr;

	p->cq = ibv_create_cq_ex(ctx, &cq_attr);
	p->scq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	CHECK(p->cq && p->scq);
	attr = srq_attr(ibv_cq_ex_to_cq(p->cq));
	p->srq = ibv_create_srq_ex(ctx, &attr);
	CHECK(p->srq);
	p->sender = qp_make(IBV_QPT_RC, p->scq, NULL);
	p->receiver = qp_make(IBV_QPT_RC, ibv_cq_ex_to_cq(p->cq), p->srq);
	CHECK(p->sender && p->receiver);
	qp_connect(p->sender, p->receiver);
	qp_connect(p->receiver, p->sender);
	memset(buffer, 0, sizeof(buffer));
}

static void pair_close(struct pair *p)
{
	EXPECT_EQ(ibv_destroy_qp(p->sender), 0);
	EXPECT_REFUSED(ibv_destroy_srq(p->srq), EBUSY);
	EXPECT_EQ(ibv_destroy_qp(p->receiver), 0);
	EXPECT_REFUSED(ibv_destroy_cq(ibv_cq_ex_to_cq(p->cq)), EBUSY);
	EXPECT_EQ(ibv_destroy_srq(p->srq), 0);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(p->cq)), 0);
	EXPECT_EQ(ibv_destroy_cq(p->scq), 0);
}

struct seen {
	uint64_t wr_id, tag;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	uint32_t flags, bytes, priv;
};

/* The next entry of the queue's CQ; false: none came. */
static bool next(struct pair *p, struct seen *s)
{
	struct ibv_poll_cq_attr none = {.comp_mask = 0};
	struct ibv_wc_tm_info info;
	struct timespec begin, now;
	int rc;

	memset(s, 0, sizeof(*s));
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		rc = ibv_start_poll(p->cq, &none);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (rc)
			sched_yield();
	} while (rc == ENOENT && now.tv_sec < begin.tv_sec + EP_WAIT_MS / 1000);
	if (rc)
		return false;
	s->wr_id = p->cq->wr_id;
	s->status = p->cq->status;
	s->opcode = ibv_wc_read_opcode(p->cq);
	s->flags = ibv_wc_read_wc_flags(p->cq);
	s->bytes = ibv_wc_read_byte_len(p->cq);
	ibv_wc_read_tm_info(p->cq, &info);
	s->tag = info.tag;
	s->priv = info.priv;
	ibv_end_poll(p->cq);
	return true;
}

#define EXPECT_ENTRY(p, id, code, bits, the_tag)             \
	do {                                                 \
		struct seen seen;                            \
                                                             \
		if (!EXPECT(next(p, &seen)))                 \
			break;                               \
		EXPECT_STATUS(seen.status, IBV_WC_SUCCESS);  \
		EXPECT_EQ(seen.wr_id, id);                   \
		EXPECT_EQ(seen.opcode, code);                \
		EXPECT_EQ(seen.flags, (unsigned int)(bits)); \
		EXPECT_EQ(seen.tag, the_tag);                \
	} while (0)

static bool empty(struct pair *p)
{
	struct ibv_wc wc;

	return ibv_poll_cq(ibv_cq_ex_to_cq(p->cq), 1, &wc) == 0;
}

static struct ibv_ops_wr tag_wr(uint64_t wr_id, uint64_t tag, struct ibv_sge *sge, int num_sge)
{
	struct ibv_ops_wr wr = {
		.wr_id = wr_id,
		.opcode = IBV_WR_TAG_ADD,
		.flags = IBV_OPS_SIGNALED,
		.tm.add = {.recv_wr_id = wr_id + 100,
			   .sg_list = sge,
			   .num_sge = num_sge,
			   .tag = tag,
			   .mask = UINT64_MAX},
	};

	return wr;
}

/* Adds a buffer of that many bytes at that place; its handle. */
static uint32_t add(struct pair *p, uint64_t wr_id, uint64_t tag, size_t offset, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)buffer + TAGGED + offset, bytes, mr->lkey};
	struct ibv_ops_wr wr = tag_wr(wr_id, tag, &sge, 1), *bad;

	EXPECT_EQ(ibv_post_srq_ops(p->srq, &wr, &bad), 0);
	EXPECT_ENTRY(p, wr_id, IBV_WC_TM_ADD, 0, 0);
	return wr.tm.handle;
}

static void sync_count(struct pair *p, uint32_t count, uint32_t flags)
{
	struct ibv_ops_wr wr = {.wr_id = 77,
				.opcode = IBV_WR_TAG_SYNC,
				.flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC,
				.tm.unexpected_cnt = count},
			  *bad;

	EXPECT_EQ(ibv_post_srq_ops(p->srq, &wr, &bad), 0);
	EXPECT_ENTRY(p, 77, IBV_WC_TM_SYNC, flags, 0);
}

static void post_ordinary(struct pair *p, uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)buffer + IN, 16384, mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!ibv_post_srq_recv(p->srq, &wr, &bad));
}

static void header(uint8_t opcode, uint64_t tag, uint32_t app_ctx)
{
	struct ibv_tmh tmh = {.opcode = opcode, .app_ctx = htonl(app_ctx), .tag = htobe64(tag)};

	memcpy(buffer + OUT, &tmh, sizeof(tmh));
}

static void send_as(struct pair *p, enum ibv_wr_opcode opcode, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)buffer + OUT, bytes, mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .imm_data = htonl(0x4711)};
	struct ibv_send_wr *bad;

	CHECK(!ibv_post_send(p->sender, &wr, &bad));
}

static enum ibv_wc_status sender_wc(struct pair *p, struct ibv_wc *wc)
{
	struct timespec begin, now;
	int n;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		n = ibv_poll_cq(p->scq, 1, wc);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (!n)
			sched_yield();
	} while (!n && now.tv_sec < begin.tv_sec + EP_WAIT_MS / 1000);
	return n == 1 ? wc->status : IBV_WC_GENERAL_ERR;
}

static void sent(struct pair *p)
{
	struct ibv_wc wc;

	EXPECT_STATUS(sender_wc(p, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.opcode, IBV_WC_SEND);
}

static void creation(void)
{
	static const struct {
		const char *what;
		uint32_t without;
		uint32_t tags, ops;
	} rows[] = {
		{"no CQ", IBV_SRQ_INIT_ATTR_CQ, TAGS, 8},
		{"no tag capabilities", IBV_SRQ_INIT_ATTR_TM, TAGS, 8},
		{"no PD", IBV_SRQ_INIT_ATTR_PD, TAGS, 8},
		{"no tags", 0, 0, 8},
		{"too many tags", 0, UINT32_MAX, 8},
		{"too many operations", 0, TAGS, UINT32_MAX},
	};
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	struct ibv_srq_init_attr_ex attr = srq_attr(cq);
	struct ibv_srq *srq;

	CHECK(cq);
	expect_case("capabilities");
	EXPECT(device.tm_caps.flags & IBV_TM_CAP_RC);
	EXPECT(device.tm_caps.max_num_tags >= TAGS && device.tm_caps.max_ops > 0);
	EXPECT(device.tm_caps.max_rndv_hdr_size >= sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		attr = srq_attr(cq);
		attr.comp_mask &= ~rows[i].without;
		attr.tm_cap.max_num_tags = rows[i].tags;
		attr.tm_cap.max_ops = rows[i].ops;
		expect_case("create: %s", rows[i].what);
		EXPECT_NULL(ibv_create_srq_ex(ctx, &attr), EINVAL);
	}
	expect_case("create: all tags of the device");
	attr = srq_attr(cq);
	attr.tm_cap.max_num_tags = device.tm_caps.max_num_tags;
	attr.tm_cap.max_ops = device.tm_caps.max_ops;
	srq = ibv_create_srq_ex(ctx, &attr);
	CHECK(srq);
	EXPECT_REFUSED(ibv_destroy_cq(cq), EBUSY);
	expect_case("create: other queue pairs than RC");
	EXPECT_NULL(qp_make(IBV_QPT_UD, cq, srq), EINVAL);
	EXPECT_NULL(qp_make(IBV_QPT_UC, cq, srq), EINVAL);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

static void list_operations(void)
{
	struct ibv_srq_init_attr basic_attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_srq *basic = ibv_create_srq(pd, &basic_attr);
	struct ibv_sge sge[64] = {{(uintptr_t)buffer + TAGGED, 64, mr->lkey}};
	struct ibv_ops_wr wr = tag_wr(1, 1, sge, 1), second, *bad = NULL;
	struct pair p;
	uint32_t handle;
	struct seen s;

	CHECK(basic);
	expect_case("operations on a basic queue");
	EXPECT_REFUSED(ibv_post_srq_ops(basic, &wr, &bad), EINVAL);
	EXPECT(bad == &wr);
	EXPECT_EQ(ibv_destroy_srq(basic), 0);
	pair_open(&p);
	expect_case("no such opcode");
	wr.opcode = (enum ibv_ops_wr_opcode)9;
	EXPECT_REFUSED(ibv_post_srq_ops(p.srq, &wr, &bad), EINVAL);
	expect_case("unknown flag");
	wr = tag_wr(1, 1, sge, 1);
	wr.flags |= 1 << 6;
	EXPECT_REFUSED(ibv_post_srq_ops(p.srq, &wr, &bad), EINVAL);
	expect_case("too many elements");
	wr = tag_wr(1, 1, sge, (int)device.tm_caps.max_sge + 1);
	EXPECT_REFUSED(ibv_post_srq_ops(p.srq, &wr, &bad), EINVAL);
	wr.tm.add.num_sge = -1;
	EXPECT_REFUSED(ibv_post_srq_ops(p.srq, &wr, &bad), EINVAL);
	expect_case("the second of a list fails: the first is done");
	wr = tag_wr(1, 1, sge, 1);
	second = tag_wr(2, 1, sge, 1);
	second.flags = 1 << 6;
	wr.next = &second;
	EXPECT_REFUSED(ibv_post_srq_ops(p.srq, &wr, &bad), EINVAL);
	EXPECT(bad == &second);
	EXPECT_ENTRY(&p, 1, IBV_WC_TM_ADD, 0, 0);
	expect_case("a full list");
	for (uint64_t i = 1; i < TAGS; i++)
		add(&p, i, 100 + i, 0, 64);
	wr = tag_wr(50, 1, sge, 1);
	EXPECT_REFUSED(ibv_post_srq_ops(p.srq, &wr, &bad), ENOMEM);
	EXPECT(bad == &wr);
	expect_case("removed, removed again");
	wr = (struct ibv_ops_wr){.wr_id = 60, .opcode = IBV_WR_TAG_DEL, .flags = IBV_OPS_SIGNALED};
	wr.tm.handle = 0xffff;
	EXPECT_REFUSED(ibv_post_srq_ops(p.srq, &wr, &bad), EINVAL);
	wr.tm.handle = 0; /* the first that was added */
	EXPECT_EQ(ibv_post_srq_ops(p.srq, &wr, &bad), 0);
	EXPECT_ENTRY(&p, 60, IBV_WC_TM_DEL, 0, 0);
	wr.flags = 0;
	EXPECT_EQ(ibv_post_srq_ops(p.srq, &wr, &bad), 0);
	EXPECT(next(&p, &s)); /* an error tells, signalled or not */
	EXPECT_STATUS(s.status, IBV_WC_TM_ERR);
	EXPECT_EQ(s.opcode, IBV_WC_TM_DEL);
	expect_case("unsignalled: no entry");
	wr = tag_wr(70, 1, sge, 1);
	wr.flags = 0;
	EXPECT_EQ(ibv_post_srq_ops(p.srq, &wr, &bad), 0);
	EXPECT(empty(&p));
	expect_case("taken by a message, then removed");
	handle = wr.tm.handle;
	header(IBV_TMH_EAGER, 1, 0);
	send_as(&p, IBV_WR_SEND, 20);
	sent(&p);
	EXPECT_ENTRY(&p, 170, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID, 1);
	wr = (struct ibv_ops_wr){.wr_id = 61, .opcode = IBV_WR_TAG_DEL, .flags = IBV_OPS_SIGNALED};
	wr.tm.handle = handle;
	EXPECT_EQ(ibv_post_srq_ops(p.srq, &wr, &bad), 0);
	EXPECT(next(&p, &s));
	EXPECT_STATUS(s.status, IBV_WC_TM_ERR);
	pair_close(&p);
}

static void eager(void)
{
	const uint32_t bytes = 5000; /* several packets */
	struct ibv_sge list[2] = {{(uintptr_t)buffer + TAGGED, 1000, mr->lkey},
				  {(uintptr_t)buffer + TAGGED + 2000, 6000, mr->lkey}};
	struct ibv_ops_wr wr = tag_wr(1, 0x1122334455667788, list, 2), *bad;
	struct pair p;
	struct seen s;

	pair_open(&p);
	expect_case("eager: into the buffer of its tag, without the header");
	EXPECT_EQ(ibv_post_srq_ops(p.srq, &wr, &bad), 0);
	EXPECT_ENTRY(&p, 1, IBV_WC_TM_ADD, 0, 0);
	header(IBV_TMH_EAGER, 0x1122334455667788, 0xabcdef01);
	for (uint32_t i = 16; i < 16 + bytes; i++)
		buffer[OUT + i] = (uint8_t)(i * 7);
	send_as(&p, IBV_WR_SEND_WITH_IMM, 16 + bytes);
	sent(&p);
	EXPECT(next(&p, &s));
	EXPECT_STATUS(s.status, IBV_WC_SUCCESS);
	EXPECT_EQ(s.opcode, IBV_WC_TM_RECV);
	EXPECT_EQ(s.wr_id, 101);
	EXPECT_EQ(s.flags, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID | IBV_WC_WITH_IMM);
	EXPECT_EQ(s.bytes, bytes);
	EXPECT_EQ(s.tag, 0x1122334455667788);
	EXPECT_EQ(s.priv, 0xabcdef01);
	EXPECT(!memcmp(buffer + TAGGED, buffer + OUT + 16, 1000));
	EXPECT(!memcmp(buffer + TAGGED + 2000, buffer + OUT + 1016, bytes - 1000));
	EXPECT_EQ(buffer[TAGGED + 1000], 0);
	expect_case("eager: nothing but the header");
	add(&p, 2, 5, 0, 0);
	header(IBV_TMH_EAGER, 5, 0);
	send_as(&p, IBV_WR_SEND, 16);
	sent(&p);
	EXPECT_ENTRY(&p, 102, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID, 5);

	expect_case("not tagged: an ordinary receive, header and all");
	add(&p, 3, 6, 0, 64);
	post_ordinary(&p, 201);
	header(IBV_TMH_NO_TAG, 6, 0);
	send_as(&p, IBV_WR_SEND, 100);
	sent(&p);
	EXPECT(next(&p, &s));
	EXPECT_EQ(s.opcode, IBV_WC_TM_NO_TAG);
	EXPECT_EQ(s.wr_id, 201);
	EXPECT_EQ(s.bytes, 100);
	EXPECT_EQ(s.flags, 0);
	EXPECT(!memcmp(buffer + IN, buffer + OUT, 100));
	expect_case("shorter than a header: likewise");
	post_ordinary(&p, 202);
	send_as(&p, IBV_WR_SEND, 15);
	sent(&p);
	EXPECT_ENTRY(&p, 202, IBV_WC_TM_NO_TAG, 0, 0);
	expect_case("FIN: likewise");
	post_ordinary(&p, 203);
	header(IBV_TMH_FIN, 6, 0);
	send_as(&p, IBV_WR_SEND, 16);
	sent(&p);
	EXPECT_ENTRY(&p, 203, IBV_WC_TM_NO_TAG, 0, 0);
	pair_close(&p);
}

static void unexpected(void)
{
	struct ibv_sge sge = {(uintptr_t)buffer + TAGGED, 64, mr->lkey};
	struct ibv_ops_wr wr = tag_wr(9, 7, &sge, 1), *bad;
	struct pair p;
	struct seen s;

	pair_open(&p);
	expect_case("unexpected: an ordinary receive gets it whole");
	add(&p, 1, 6, 0, 64);
	post_ordinary(&p, 201);
	header(IBV_TMH_EAGER, 7, 0);
	send_as(&p, IBV_WR_SEND, 100);
	sent(&p);
	EXPECT(next(&p, &s));
	EXPECT_EQ(s.opcode, IBV_WC_TM_RECV);
	EXPECT_EQ(s.wr_id, 201);
	EXPECT_EQ(s.bytes, 100);
	EXPECT_EQ(s.flags, 0);
	EXPECT_EQ(s.tag, 0);
	EXPECT(!memcmp(buffer + IN, buffer + OUT, 100));
	expect_case("a buffer added before the program reports it rests");
	EXPECT_EQ(ibv_post_srq_ops(p.srq, &wr, &bad), 0);
	EXPECT_ENTRY(&p, 9, IBV_WC_TM_ADD, IBV_WC_TM_SYNC_REQ, 0);
	post_ordinary(&p, 202);
	send_as(&p, IBV_WR_SEND, 40);
	sent(&p);
	EXPECT_ENTRY(&p, 202, IBV_WC_TM_RECV, 0, 0);
	expect_case("an older one does not");
	header(IBV_TMH_EAGER, 6, 0);
	send_as(&p, IBV_WR_SEND, 40);
	sent(&p);
	EXPECT_ENTRY(&p, 101, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID, 6);
	expect_case("reported: one of two, then both");
	sync_count(&p, 1, IBV_WC_TM_SYNC_REQ);
	sync_count(&p, 2, 0);
	header(IBV_TMH_EAGER, 7, 0);
	send_as(&p, IBV_WR_SEND, 40);
	sent(&p);
	EXPECT_ENTRY(&p, 109, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID, 7);
	pair_close(&p);
}

static void fin_receive(struct pair *p)
{
	struct ibv_sge sge = {(uintptr_t)buffer + IN + 20000, 64, mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 400, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!ibv_post_recv(p->sender, &wr, &bad));
}

/* A rendezvous request for @length bytes of OUT + 1024. */
static void request(struct pair *p, uint64_t tag, uint32_t length, uint32_t rkey, uint32_t more)
{
	struct ibv_rvh rvh = {.va = htobe64((uintptr_t)buffer + OUT + 1024),
			      .rkey = htonl(rkey),
			      .len = htonl(length)};

	header(IBV_TMH_RNDV, tag, 0x55);
	memcpy(buffer + OUT + 16, &rvh, sizeof(rvh));
	send_as(p, IBV_WR_SEND, 32 + more);
}

static void rendezvous(void)
{
	const uint32_t bytes = 10000;
	struct ibv_tmh fin;
	struct ibv_wc wc;
	struct pair p;
	struct seen s;

	pair_open(&p);
	for (uint32_t i = 0; i < bytes; i++)
		buffer[OUT + 1024 + i] = (uint8_t)(i * 3);
	expect_case("rendezvous: matched, read, finished");
	fin_receive(&p);
	add(&p, 1, 9, 0, 16384);
	request(&p, 9, bytes, mr->rkey, 8);
	sent(&p);
	EXPECT(next(&p, &s));
	EXPECT_STATUS(s.status, IBV_WC_SUCCESS);
	EXPECT_EQ(s.opcode, IBV_WC_TM_RECV);
	EXPECT_EQ(s.wr_id, 101);
	EXPECT_EQ(s.flags, IBV_WC_TM_MATCH);
	EXPECT_EQ(s.tag, 9);
	EXPECT_EQ(s.priv, 0x55);
	EXPECT(next(&p, &s));
	EXPECT_STATUS(s.status, IBV_WC_SUCCESS);
	EXPECT_EQ(s.wr_id, 101);
	EXPECT_EQ(s.flags, IBV_WC_TM_DATA_VALID);
	EXPECT_EQ(s.bytes, bytes);
	EXPECT(!memcmp(buffer + TAGGED, buffer + OUT + 1024, bytes));
	EXPECT_STATUS(sender_wc(&p, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.opcode, IBV_WC_RECV);
	EXPECT_EQ(wc.byte_len, sizeof(fin));
	memcpy(&fin, buffer + IN + 20000, sizeof(fin));
	EXPECT_EQ(fin.opcode, IBV_TMH_FIN);
	EXPECT_EQ(be64toh(fin.tag), 9);
	EXPECT_EQ(ntohl(fin.app_ctx), 0x55);

	expect_case("rendezvous: of nothing");
	fin_receive(&p);
	add(&p, 2, 10, 0, 0);
	request(&p, 10, 0, 0, 0);
	sent(&p);
	EXPECT_ENTRY(&p, 102, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, 10);
	EXPECT_ENTRY(&p, 102, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID, 0);
	EXPECT_STATUS(sender_wc(&p, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.opcode, IBV_WC_RECV);

	expect_case("rendezvous: unexpected");
	post_ordinary(&p, 201);
	request(&p, 11, bytes, mr->rkey, 0);
	sent(&p);
	EXPECT_ENTRY(&p, 201, IBV_WC_TM_RECV, 0, 0);
	sync_count(&p, 1, 0);
	expect_case("rendezvous: longer than the buffer is the program's to read");
	add(&p, 3, 12, 0, 100);
	request(&p, 12, 101, mr->rkey, 0);
	sent(&p);
	EXPECT(next(&p, &s));
	EXPECT_STATUS(s.status, IBV_WC_TM_RNDV_INCOMPLETE);
	EXPECT_EQ(s.wr_id, 103);
	EXPECT_EQ(p.receiver->state, IBV_QPS_RTS);
	pair_close(&p);
}

/* The device's own requests take no place that the program was promised. */
static void send_queue_is_whole(void)
{
	struct ibv_sge sge = {(uintptr_t)buffer + OUT + 1024, 8, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
	struct pair p;
	struct seen s;
	int matched = 0, valid = 0, writes = 0;

	pair_open(&p);
	expect_case("all of max_send_wr while rendezvous run");
	wr.wr.rdma.remote_addr = (uintptr_t)buffer + OUT + 2048;
	wr.wr.rdma.rkey = mr->rkey;
	for (uint64_t i = 0; i < 3; i++) {
		fin_receive(&p);
		add(&p, i, 20 + i, 4096 * i, 4096);
	}
	for (uint64_t i = 0; i < 3; i++)
		request(&p, 20 + i, 4000, mr->rkey, 0);
	for (uint64_t i = 0; i < 4; i++) {
		wr.wr_id = 300 + i;
		EXPECT_EQ(ibv_post_send(p.receiver, &wr, &bad), 0);
	}
	EXPECT_EQ(ibv_post_send(p.receiver, &wr, &bad), ENOMEM);
	while (matched + valid + writes < 10 && next(&p, &s)) {
		EXPECT_STATUS(s.status, IBV_WC_SUCCESS);
		matched += s.opcode == IBV_WC_TM_RECV && s.flags == IBV_WC_TM_MATCH;
		valid += s.opcode == IBV_WC_TM_RECV && s.flags == IBV_WC_TM_DATA_VALID;
		writes += s.opcode == IBV_WC_RDMA_WRITE;
	}
	EXPECT(matched == 3 && valid == 3 && writes == 4);
	pair_close(&p);
}

static void both_to(struct pair *p, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	EXPECT_EQ(ibv_modify_qp(p->sender, &attr, IBV_QP_STATE), 0);
	EXPECT_EQ(ibv_modify_qp(p->receiver, &attr, IBV_QP_STATE), 0);
}

/* A receiver in RTR sends nothing, so the data is not read yet; after a RESET it never is. */
static void reset_forgets(void)
{
	struct ibv_qp_attr attr;
	struct ibv_wc wc;
	struct pair p;

	expect_case("rendezvous: matched in RTR, forgotten by RESET");
	pair_open(&p);
	both_to(&p, IBV_QPS_RESET);
	qp_connect(p.sender, p.receiver);
	attr = qp_attr_within(ctx, p.sender->qp_num);
	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	CHECK(!qp_bring_to(p.receiver, &attr, IBV_QPS_RTR));
	add(&p, 1, 9, 0, 100);
	request(&p, 9, 50, mr->rkey, 0);
	sent(&p);
	EXPECT_ENTRY(&p, 101, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, 9);
	both_to(&p, IBV_QPS_RESET);
	qp_connect(p.sender, p.receiver);
	qp_connect(p.receiver, p.sender);
	post_ordinary(&p, 201);
	header(IBV_TMH_EAGER, 10, 0);
	send_as(&p, IBV_WR_SEND, 20);
	sent(&p);
	EXPECT_ENTRY(&p, 201, IBV_WC_TM_RECV, 0, 0);
	EXPECT(empty(&p));
	EXPECT_EQ(ibv_poll_cq(p.scq, 1, &wc), 0); /* nor is it told that the data was read */
	pair_close(&p);
}

static void failures(void)
{
	struct ibv_wc wc;
	struct pair p;
	struct seen s;

	expect_case("eager: longer than the buffer");
	pair_open(&p);
	add(&p, 1, 9, 0, 100);
	header(IBV_TMH_EAGER, 9, 0);
	send_as(&p, IBV_WR_SEND, 16 + 101);
	EXPECT_STATUS(sender_wc(&p, &wc), IBV_WC_REM_INV_REQ_ERR);
	EXPECT(next(&p, &s));
	EXPECT_STATUS(s.status, IBV_WC_LOC_LEN_ERR);
	EXPECT_EQ(s.wr_id, 101);
	EXPECT_EQ(buffer[TAGGED], 0);
	pair_close(&p);

	expect_case("rendezvous: a key that the sender does not have");
	pair_open(&p);
	add(&p, 1, 9, 0, 100);
	request(&p, 9, 50, mr->rkey + 1, 0);
	sent(&p);
	EXPECT_ENTRY(&p, 101, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, 9);
	EXPECT(next(&p, &s));
	EXPECT_STATUS(s.status, IBV_WC_REM_ACCESS_ERR);
	EXPECT_EQ(s.wr_id, 101);
	pair_close(&p);

	expect_case("the receiver's queue pair is reset: the queue goes on");
	pair_open(&p);
	add(&p, 1, 9, 0, 100);
	{
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

		EXPECT_EQ(ibv_modify_qp(p.sender, &attr, IBV_QP_STATE), 0);
		EXPECT_EQ(ibv_modify_qp(p.receiver, &attr, IBV_QP_STATE), 0);
	}
	qp_connect(p.sender, p.receiver);
	qp_connect(p.receiver, p.sender);
	header(IBV_TMH_EAGER, 9, 0);
	send_as(&p, IBV_WR_SEND, 20);
	sent(&p);
	EXPECT_ENTRY(&p, 101, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID, 9);
	pair_close(&p);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	ctx = device_open();
	CHECK(!ibv_query_device_ex(ctx, NULL, &device));
	pd = ibv_alloc_pd(ctx);
	CHECK(pd);
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	CHECK(mr);
	creation();
	list_operations();
	eager();
	unexpected();
	rendezvous();
	send_queue_is_whole();
	failures();
	reset_forgets();
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}
