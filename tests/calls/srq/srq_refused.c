/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What shared receive queues refuse, row by row, and that what was refused changed nothing:
 * ibv_create_srq(3), ibv_create_srq_ex(3), ibv_modify_srq(3), ibv_get_srq_num(3),
 * ibv_post_srq_ops(3).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* What two contexts of one device have; an object of the other one is none of the first. */
struct set {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_xrcd *xrcd;
};

static struct set own, other;
static struct ibv_device_attr_ex device;

static struct ibv_xrcd *private_domain(struct ibv_context *ctx)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	return ibv_open_xrcd(ctx, &attr);
}

static void set_open(struct set *s)
{
	s->ctx = device_open();
	s->pd = ibv_alloc_pd(s->ctx);
	s->cq = ibv_create_cq(s->ctx, 16, NULL, NULL, 0);
	s->xrcd = private_domain(s->ctx);
	CHECK(s->pd && s->cq && s->xrcd);
}

/* Each goes at once: nothing that was refused holds it. */
static void set_close(struct set *s)
{
	expect_case("nothing is held");
	EXPECT_EQ(ibv_close_xrcd(s->xrcd), 0);
	EXPECT_EQ(ibv_destroy_cq(s->cq), 0);
	EXPECT_EQ(ibv_dealloc_pd(s->pd), 0);
	EXPECT_EQ(ibv_close_device(s->ctx), 0);
}

static void creation(void)
{
	const uint32_t max_wr = (uint32_t)device.orig_attr.max_srq_wr;
	const uint32_t max_sge = (uint32_t)device.orig_attr.max_srq_sge;
	const struct {
		const char *what;
		uint32_t max_wr, max_sge;
		int err;
	} rows[] = {
		{"the smallest", 1, 1, 0},
		{"the most receives", max_wr, 1, 0},
		{"the most pieces", 1, max_sge, 0},
		{"no receives", 0, 1, EINVAL},
		{"one receive too many", max_wr + 1, 1, EINVAL},
		{"the largest number of receives", UINT32_MAX, 1, EINVAL},
		{"one piece too many", 1, max_sge + 1, EINVAL},
		{"the largest number of pieces", 1, UINT32_MAX, EINVAL},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ibv_srq_init_attr attr = {.srq_context = &own,
						 .attr = {rows[i].max_wr, rows[i].max_sge, 99}};
		struct ibv_srq_init_attr before;
		struct ibv_srq *srq;

		memcpy(&before, &attr, sizeof(attr));
		expect_case("create_srq: %s", rows[i].what);
		if (rows[i].err) {
			EXPECT_NULL(ibv_create_srq(own.pd, &attr), rows[i].err);
			EXPECT_UNTOUCHED(attr, before);
			continue;
		}
		srq = ibv_create_srq(own.pd, &attr);
		CHECK(srq);
		EXPECT(srq->srq_context == &own && srq->pd == own.pd);
		EXPECT_EQ(attr.attr.max_wr, rows[i].max_wr);
		EXPECT_EQ(attr.attr.max_sge, rows[i].max_sge);
		EXPECT_EQ(ibv_destroy_srq(srq), 0);
	}
}

#define ALL                                                                       \
	(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | \
	 IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM)

/* Everything right and every member set; a row spoils one thing. */
static struct ibv_srq_init_attr_ex good(enum ibv_srq_type type)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = ALL,
		.srq_type = type,
		.pd = own.pd,
		.xrcd = own.xrcd,
		.cq = own.cq,
		.tm_cap = {.max_num_tags = 4, .max_ops = 4},
	};

	return attr;
}

enum spoil {
	NOTHING,
	MASK,
	TYPE,
	PD,
	XRCD,
	CQ,
	MAX_WR,
	MAX_SGE,
	TAGS,
	OPS,
};

static void spoil(struct ibv_srq_init_attr_ex *attr, enum spoil what, uint32_t value)
{
	const struct set none = {.ctx = NULL}, *from = value ? &other : &none;

	switch (what) {
	case MASK:
		attr->comp_mask ^= value;
		break;
	case TYPE:
		attr->srq_type = (enum ibv_srq_type)value;
		break;
	case PD:
		attr->pd = from->pd;
		break;
	case XRCD:
		attr->xrcd = from->xrcd;
		break;
	case CQ:
		attr->cq = from->cq;
		break;
	case MAX_WR:
		attr->attr.max_wr = value;
		break;
	case MAX_SGE:
		attr->attr.max_sge = value;
		break;
	case TAGS:
		attr->tm_cap.max_num_tags = value;
		break;
	case OPS:
		attr->tm_cap.max_ops = value;
		break;
	default:
		break;
	}
}

#define BASIC IBV_SRQT_BASIC
#define XRC   IBV_SRQT_XRC
#define TM    IBV_SRQT_TM

/* For PD, XRCD and CQ: value 0 is NULL, 1 the other context's. */
static void creation_ex(void)
{
	const uint32_t max_wr = (uint32_t)device.orig_attr.max_srq_wr;
	const uint32_t max_sge = (uint32_t)device.orig_attr.max_srq_sge;
	const struct {
		const char *name;
		enum ibv_srq_type type;
		enum spoil what;
		uint32_t value;
		int err;
	} rows[] = {
		{"basic: all right", BASIC, NOTHING, 0, 0},
		{"XRC: all right", XRC, NOTHING, 0, 0},
		{"tags: all right", TM, NOTHING, 0, 0},
		{"basic: the first unknown mask bit", BASIC, MASK, IBV_SRQ_INIT_ATTR_RESERVED,
		 EINVAL},
		{"XRC: the first unknown mask bit", XRC, MASK, IBV_SRQ_INIT_ATTR_RESERVED, EINVAL},
		{"tags: the last mask bit", TM, MASK, 1u << 31, EINVAL},
		{"the first type that is none", BASIC, TYPE, TM + 1, EINVAL},
		{"type -1", BASIC, TYPE, UINT32_MAX, EINVAL},
		{"XRC without the type's bit is basic", XRC, MASK, IBV_SRQ_INIT_ATTR_TYPE, 0},
		{"basic: no pd bit", BASIC, MASK, IBV_SRQ_INIT_ATTR_PD, EINVAL},
		{"XRC: no pd bit", XRC, MASK, IBV_SRQ_INIT_ATTR_PD, EINVAL},
		{"tags: no pd bit", TM, MASK, IBV_SRQ_INIT_ATTR_PD, EINVAL},
		{"basic: no pd", BASIC, PD, 0, EINVAL},
		{"XRC: no pd", XRC, PD, 0, EINVAL},
		{"tags: no pd", TM, PD, 0, EINVAL},
		{"basic: another context's pd", BASIC, PD, 1, ENOENT},
		{"XRC: another context's pd", XRC, PD, 1, ENOENT},
		{"tags: another context's pd", TM, PD, 1, ENOENT},
		{"XRC: no xrcd bit", XRC, MASK, IBV_SRQ_INIT_ATTR_XRCD, EINVAL},
		{"XRC: no xrcd", XRC, XRCD, 0, EINVAL},
		{"XRC: another context's xrcd", XRC, XRCD, 1, ENOENT},
		{"XRC: no cq bit", XRC, MASK, IBV_SRQ_INIT_ATTR_CQ, EINVAL},
		{"XRC: no cq", XRC, CQ, 0, EINVAL},
		{"XRC: another context's cq", XRC, CQ, 1, ENOENT},
		{"XRC: capabilities for tags are not looked at", XRC, TAGS, 0, 0},
		{"tags: no cq bit", TM, MASK, IBV_SRQ_INIT_ATTR_CQ, EINVAL},
		{"tags: no cq", TM, CQ, 0, EINVAL},
		{"tags: another context's cq", TM, CQ, 1, ENOENT},
		{"tags: no capabilities", TM, MASK, IBV_SRQ_INIT_ATTR_TM, EINVAL},
		{"tags: none", TM, TAGS, 0, EINVAL},
		{"tags: all", TM, TAGS, device.tm_caps.max_num_tags, 0},
		{"tags: one too many", TM, TAGS, device.tm_caps.max_num_tags + 1, EINVAL},
		{"tags: the largest number", TM, TAGS, UINT32_MAX, EINVAL},
		{"tags: no operations", TM, OPS, 0, 0},
		{"tags: all operations", TM, OPS, device.tm_caps.max_ops, 0},
		{"tags: one operation too many", TM, OPS, device.tm_caps.max_ops + 1, EINVAL},
		{"tags: a domain is not looked at", TM, XRCD, 1, 0},
		{"basic: a domain is not looked at", BASIC, XRCD, 1, 0},
		{"basic: a cq is not looked at", BASIC, CQ, 1, 0},
		{"XRC: no receives", XRC, MAX_WR, 0, EINVAL},
		{"XRC: the most receives", XRC, MAX_WR, max_wr, 0},
		{"XRC: one receive too many", XRC, MAX_WR, max_wr + 1, EINVAL},
		{"XRC: one piece too many", XRC, MAX_SGE, max_sge + 1, EINVAL},
		{"tags: no receives", TM, MAX_WR, 0, EINVAL},
		{"tags: one receive too many", TM, MAX_WR, max_wr + 1, EINVAL},
		{"tags: one piece too many", TM, MAX_SGE, max_sge + 1, EINVAL},
		{"basic: one receive too many", BASIC, MAX_WR, max_wr + 1, EINVAL},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ibv_srq_init_attr_ex attr = good(rows[i].type), before;

		spoil(&attr, rows[i].what, rows[i].value);
		memcpy(&before, &attr, sizeof(attr));
		expect_case("create_srq_ex: %s", rows[i].name);
		if (rows[i].err) {
			EXPECT_NULL(ibv_create_srq_ex(own.ctx, &attr), rows[i].err);
		} else {
			struct ibv_srq *srq = ibv_create_srq_ex(own.ctx, &attr);

			if (EXPECT(srq != NULL))
				EXPECT_EQ(ibv_destroy_srq(srq), 0);
		}
		EXPECT_UNTOUCHED(attr, before);
	}
}

static int post(struct ibv_srq *srq, uint64_t wr_id)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id}, *bad = NULL;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

static bool shows(struct ibv_srq *srq, uint32_t max_wr, uint32_t limit)
{
	struct ibv_srq_attr shown = {0};

	return EXPECT_EQ(ibv_query_srq(srq, &shown), 0) && EXPECT_EQ(shown.max_wr, max_wr) &&
	       EXPECT_EQ(shown.max_sge, 2) && EXPECT_EQ(shown.srq_limit, limit);
}

/* A queue of 8 with 4 posted that is armed with 2; each row begins with it. */
static void modify(enum ibv_srq_type type)
{
	const uint32_t most = (uint32_t)device.orig_attr.max_srq_wr;
	const struct {
		const char *what;
		int mask;
		uint32_t max_wr, limit;
		int err;
		uint32_t then_wr, then_limit;
	} rows[] = {
		{"nothing", 0, 99, 99, 0, 8, 2},
		{"the first unknown bit", 1 << 2, 8, 2, EINVAL, 8, 2},
		{"an unknown bit beside known ones", 7, 16, 3, EINVAL, 8, 2},
		{"the last bit", (int)(1u << 31), 8, 2, EINVAL, 8, 2},
		{"no receives", IBV_SRQ_MAX_WR, 0, 0, EINVAL, 8, 2},
		{"one less than are posted", IBV_SRQ_MAX_WR, 3, 0, EINVAL, 8, 2},
		{"as many as are posted", IBV_SRQ_MAX_WR, 4, 0, 0, 4, 2},
		{"the most receives", IBV_SRQ_MAX_WR, most, 0, 0, most, 2},
		{"one receive too many", IBV_SRQ_MAX_WR, most + 1, 0, EINVAL, 8, 2},
		{"the largest number", IBV_SRQ_MAX_WR, UINT32_MAX, 0, EINVAL, 8, 2},
		{"a limit of as many as are posted", IBV_SRQ_LIMIT, 0, 4, 0, 8, 4},
		{"a limit above the size", IBV_SRQ_LIMIT, 0, 9, EINVAL, 8, 2},
		{"the largest limit", IBV_SRQ_LIMIT, 0, UINT32_MAX, EINVAL, 8, 2},
		{"disarmed", IBV_SRQ_LIMIT, 0, 0, 0, 8, 0},
		{"both", IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT, 16, 4, 0, 16, 4},
		{"a good size, a limit above it", IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT, 6, 7, EINVAL, 8,
		 2},
		{"a bad size, a good limit", IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT, 3, 3, EINVAL, 8, 2},
		{"no size, a good limit", IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT, 0, 3, EINVAL, 8, 2},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ibv_srq_init_attr_ex init = good(type);
		struct ibv_srq_attr attr = {.srq_limit = 2}, before;
		struct ibv_srq *srq;

		init.attr = (struct ibv_srq_attr){.max_wr = 8, .max_sge = 2};
		srq = ibv_create_srq_ex(own.ctx, &init);
		CHECK(srq);
		for (uint64_t n = 0; n < 4; n++)
			CHECK(post(srq, n) == 0);
		CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) == 0);
		expect_case("modify_srq: type %d: %s", (int)type, rows[i].what);
		attr = (struct ibv_srq_attr){rows[i].max_wr, 77, rows[i].limit};
		memcpy(&before, &attr, sizeof(attr));
		if (rows[i].err)
			EXPECT_REFUSED(ibv_modify_srq(srq, &attr, rows[i].mask), rows[i].err);
		else
			EXPECT_EQ(ibv_modify_srq(srq, &attr, rows[i].mask), 0);
		EXPECT_UNTOUCHED(attr, before);
		shows(srq, rows[i].then_wr, rows[i].then_limit);
		/* It takes as many more as it says. */
		if (rows[i].then_wr <= 16) {
			for (uint32_t n = 4; n < rows[i].then_wr; n++)
				EXPECT_EQ(post(srq, n), 0);
			EXPECT_EQ(post(srq, 99), ENOMEM);
		}
		EXPECT_EQ(ibv_destroy_srq(srq), 0);
	}
}

/* A limit above what is posted tells at once, a single time, and is gone (ibv_modify_srq(3)). */
static void limit_at_once(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 2}};
	struct ibv_srq *srq = ibv_create_srq(own.pd, &init);
	struct ibv_srq_attr attr = {.srq_limit = 1};
	struct ibv_async_event event;

	expect_case("a limit that is reached already");
	CHECK(srq);
	EXPECT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	shows(srq, 8, 0);
	CHECK(ibv_get_async_event(own.ctx, &event) == 0);
	EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	EXPECT(event.element.srq == srq);
	ibv_ack_async_event(&event);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

static void handles(enum ibv_srq_type type)
{
	struct ibv_srq_init_attr_ex init = good(type);
	struct ibv_srq *srq = ibv_create_srq_ex(own.ctx, &init);
	struct ibv_srq_attr attr = {7, 7, 7};
	uint32_t number = UINT32_MAX;
	uint32_t handle;

	CHECK(srq);
	expect_case("handle overwritten: type %d", (int)type);
	handle = srq->handle;
	srq->handle = 0xdeadbeef;
	EXPECT_REFUSED(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), ENOENT);
	EXPECT_REFUSED(ibv_query_srq(srq, &attr), ENOENT);
	EXPECT(attr.max_wr == 7 && attr.max_sge == 7 && attr.srq_limit == 7);
	EXPECT_REFUSED(ibv_get_srq_num(srq, &number), ENOENT);
	EXPECT_REFUSED(ibv_destroy_srq(srq), ENOENT);
	srq->handle = handle;
	expect_case("the number of a queue of type %d", (int)type);
	if (type == XRC)
		EXPECT_EQ(ibv_get_srq_num(srq, &number), 0);
	else
		EXPECT_REFUSED(ibv_get_srq_num(srq, &number), EINVAL);
	EXPECT(type == XRC ? number && !(number >> 24) : number == UINT32_MAX);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

/* A list of four entries at most, none of them there; ibv_post_srq_ops(3). */
static void operations(void)
{
	const struct {
		const char *what;
		uint32_t opcode;
		int flags, num_sge;
		int err;
	} rows[] = {
		{"add: no pieces", IBV_WR_TAG_ADD, 0, 0, 0},
		{"add: as many pieces as there may be", IBV_WR_TAG_ADD, 0,
		 (int)device.tm_caps.max_sge, 0},
		{"add: one piece too many", IBV_WR_TAG_ADD, 0, (int)device.tm_caps.max_sge + 1,
		 EINVAL},
		{"add: -1 pieces", IBV_WR_TAG_ADD, 0, -1, EINVAL},
		{"add: the first unknown flag", IBV_WR_TAG_ADD, 1 << 2, 1, EINVAL},
		{"add: the last flag", IBV_WR_TAG_ADD, (int)(1u << 31), 1, EINVAL},
		{"delete: no such place in the list", IBV_WR_TAG_DEL, 0, 0, EINVAL},
		{"delete: an unknown flag", IBV_WR_TAG_DEL, 1 << 2, 0, EINVAL},
		{"sync: nothing", IBV_WR_TAG_SYNC, 0, 0, 0},
		{"sync: an unknown flag", IBV_WR_TAG_SYNC, 1 << 2, 0, EINVAL},
		{"the first operation that is none", IBV_WR_TAG_SYNC + 1, 0, 0, EINVAL},
		{"operation -1", UINT32_MAX, 0, 0, EINVAL},
	};
	static struct ibv_sge sge[64];

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ibv_srq_init_attr_ex init = good(TM);
		struct ibv_ops_wr wr = {
			.opcode = (enum ibv_ops_wr_opcode)rows[i].opcode,
			.flags = rows[i].flags,
			.tm = {.handle = 0x7fff0004,
			       .add = {.sg_list = sge, .num_sge = rows[i].num_sge}}};
		struct ibv_srq *srq = ibv_create_srq_ex(own.ctx, &init);
		struct ibv_ops_wr *bad = NULL;
		struct ibv_wc wc;

		CHECK(srq);
		expect_case("post_srq_ops: %s", rows[i].what);
		EXPECT_EQ(ibv_post_srq_ops(srq, &wr, &bad), rows[i].err);
		EXPECT(bad == (rows[i].err ? &wr : NULL));
		if (rows[i].err)
			EXPECT_EQ(wr.tm.handle, 0x7fff0004);
		EXPECT_EQ(ibv_poll_cq(own.cq, 1, &wc), 0);
		EXPECT_EQ(ibv_destroy_srq(srq), 0);
	}
}

static void operations_on_xrc(void)
{
	struct ibv_srq_init_attr_ex init = good(XRC);
	struct ibv_srq *srq = ibv_create_srq_ex(own.ctx, &init);
	struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_SYNC}, *bad = NULL;

	expect_case("list operations on an XRC queue");
	CHECK(srq);
	EXPECT_REFUSED(ibv_post_srq_ops(srq, &wr, &bad), EINVAL);
	EXPECT(bad == &wr);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
	expect_case("list operations that go well leave bad_op alone");
	init = good(TM);
	srq = ibv_create_srq_ex(own.ctx, &init);
	CHECK(srq);
	bad = NULL;
	EXPECT_EQ(ibv_post_srq_ops(srq, &wr, &bad), 0);
	EXPECT(!bad);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

int main(int argc, char **argv)
{
	static const enum ibv_srq_type types[] = {BASIC, XRC, TM};

	ep_main(argc, argv);
	set_open(&own);
	set_open(&other);
	CHECK(ibv_query_device_ex(own.ctx, NULL, &device) == 0);
	creation();
	creation_ex();
	for (size_t i = 0; i < COUNT(types); i++) {
		modify(types[i]);
		handles(types[i]);
	}
	limit_at_once();
	operations();
	operations_on_xrc();
	set_close(&own);
	set_close(&other);
	return expect_done();
}
