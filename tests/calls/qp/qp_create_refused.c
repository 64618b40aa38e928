/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_create_qp(3), ibv_create_qp_ex(3): for every type what it does not take, each limit at its
 * edge, objects that are not this context's. A refused call leaves its attributes as they were and
 * no hold on any object.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define RC       (1u << IBV_QPT_RC)
#define UC       (1u << IBV_QPT_UC)
#define UD       (1u << IBV_QPT_UD)
#define RAW      (1u << IBV_QPT_RAW_PACKET)
#define XS       (1u << IBV_QPT_XRC_SEND)
#define XR       (1u << IBV_QPT_XRC_RECV)
#define RECEIVES (RC | UC | UD)
#define SENDS    (RC | UC | UD | XS)
#define NOBODY   65534
#define EVERY    (RC | UC | UD | RAW | XS | XR)

static const enum ibv_qp_type types[] = {IBV_QPT_RC,         IBV_QPT_UC,       IBV_QPT_UD,
					 IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV};

/* One context's objects. */
struct objects {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq, *tag_srq, *xrc_srq;
	struct ibv_xrcd *xrcd;
};

static struct objects own, foreign;
static struct ibv_device_attr device;

static struct ibv_srq *queue_of(const struct objects *o, enum ibv_srq_type type)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = type,
		.pd = o->pd,
		.cq = o->cq,
		.xrcd = o->xrcd,
		.tm_cap = {.max_num_tags = 4, .max_ops = 4},
	};
	struct ibv_srq *srq;

	if (type == IBV_SRQT_XRC)
		attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	if (type == IBV_SRQT_TM)
		attr.comp_mask |= IBV_SRQ_INIT_ATTR_TM | IBV_SRQ_INIT_ATTR_CQ;
	srq = ibv_create_srq_ex(o->ctx, &attr);
	CHECK(srq);
	return srq;
}

static void objects_open(struct objects *o)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	o->ctx = device_open();
	o->pd = ibv_alloc_pd(o->ctx);
	o->cq = ibv_create_cq(o->ctx, 16, NULL, NULL, 0);
	o->xrcd = ibv_open_xrcd(o->ctx, &domain);
	CHECK(o->pd && o->cq && o->xrcd);
	o->srq = queue_of(o, IBV_SRQT_BASIC);
	o->tag_srq = queue_of(o, IBV_SRQT_TM);
	o->xrc_srq = queue_of(o, IBV_SRQT_XRC);
}

/* Each would be EBUSY if a refused creation had kept a hold on it. */
static void objects_close(struct objects *o)
{
	EXPECT_EQ(ibv_destroy_srq(o->srq), 0);
	EXPECT_EQ(ibv_destroy_srq(o->tag_srq), 0);
	EXPECT_EQ(ibv_destroy_srq(o->xrc_srq), 0);
	EXPECT_EQ(ibv_close_xrcd(o->xrcd), 0);
	EXPECT_EQ(ibv_destroy_cq(o->cq), 0);
	EXPECT_EQ(ibv_dealloc_pd(o->pd), 0);
	EXPECT_EQ(ibv_close_device(o->ctx), 0);
}

static struct ibv_qp_init_attr_ex good(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = {.qp_context = &own, .qp_type = type};

	if (type == IBV_QPT_XRC_RECV) {
		attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		attr.xrcd = own.xrcd;
		return attr;
	}
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr.pd = own.pd;
	attr.send_cq = attr.recv_cq = own.cq;
	attr.cap = (struct ibv_qp_cap){4, 4, 2, 2, 16};
	if (type == IBV_QPT_XRC_SEND)
		attr.recv_cq = NULL;
	return attr;
}

/* Whether the type can be made here at all: frames need a privilege. */
static bool possible(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = good(type);
	struct ibv_qp *qp = ibv_create_qp_ex(own.ctx, &attr);

	if (!qp && type == IBV_QPT_RAW_PACKET) {
		EXPECT_EQ(errno, EPERM);
		return false;
	}
	CHECK(qp);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	return true;
}

/* One thing wrong: for these types, with this errno. */
struct wrong {
	const char *name;
	uint32_t types;
	int err;
	void (*spoil)(struct ibv_qp_init_attr_ex *a);
};

#define SPOIL(name, ...)                                \
	static void name(struct ibv_qp_init_attr_ex *a) \
	{                                               \
		__VA_ARGS__;                            \
	}

/* A size at its limit, or one above, or all bits. */
SPOIL(send_wr_high, a->cap.max_send_wr = (uint32_t)device.max_qp_wr + 1)
SPOIL(send_wr_all, a->cap.max_send_wr = UINT32_MAX)
SPOIL(recv_wr_high, a->cap.max_recv_wr = (uint32_t)device.max_qp_wr + 1)
SPOIL(recv_wr_all, a->cap.max_recv_wr = UINT32_MAX)
SPOIL(send_sge_high, a->cap.max_send_sge = (uint32_t)device.max_sge + 1)
SPOIL(send_sge_all, a->cap.max_send_sge = UINT32_MAX)
SPOIL(recv_sge_high, a->cap.max_recv_sge = (uint32_t)device.max_sge + 1)
SPOIL(recv_sge_all, a->cap.max_recv_sge = UINT32_MAX)
SPOIL(inline_high, a->cap.max_inline_data = 513)
SPOIL(inline_all, a->cap.max_inline_data = UINT32_MAX)
/* What is missing. */
SPOIL(no_send_cq, a->send_cq = NULL)
SPOIL(no_recv_cq, a->recv_cq = NULL)
SPOIL(no_pd, a->pd = NULL)
SPOIL(no_pd_bit, a->comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_PD)
SPOIL(no_xrcd, a->xrcd = NULL)
SPOIL(no_xrcd_bit, a->comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_XRCD)
/* What another type has. */
SPOIL(xrcd_given, a->comp_mask |= IBV_QP_INIT_ATTR_XRCD; a->xrcd = own.xrcd)
SPOIL(pd_given, a->comp_mask |= IBV_QP_INIT_ATTR_PD; a->pd = own.pd)
SPOIL(ops_given, a->comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
      a->send_ops_flags = IBV_QP_EX_WITH_SEND)
SPOIL(table_given, a->comp_mask |= IBV_QP_INIT_ATTR_IND_TABLE)
SPOIL(hash_given, a->comp_mask |= IBV_QP_INIT_ATTR_RX_HASH)
SPOIL(srq_given, a->srq = own.srq)
SPOIL(tag_srq_given, a->srq = own.tag_srq)
SPOIL(xrc_srq_given, a->srq = own.xrc_srq)
/* Attributes that no type has. */
SPOIL(tso_given, a->comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER; a->max_tso_header = 64)
SPOIL(bit_7, a->comp_mask |= 1u << 7)
SPOIL(bit_31, a->comp_mask |= 1u << 31)
SPOIL(type_none, a->qp_type = (enum ibv_qp_type)0)
SPOIL(type_1, a->qp_type = (enum ibv_qp_type)1)
SPOIL(type_above, a->qp_type = (enum ibv_qp_type)11)
SPOIL(type_driver, a->qp_type = IBV_QPT_DRIVER)
SPOIL(type_all, a->qp_type = (enum ibv_qp_type)UINT32_MAX)
/* Of another context. */
SPOIL(foreign_pd, a->pd = foreign.pd)
SPOIL(foreign_send_cq, a->send_cq = foreign.cq)
SPOIL(foreign_recv_cq, a->recv_cq = foreign.cq)
SPOIL(foreign_srq, a->srq = foreign.srq)
SPOIL(foreign_xrcd, a->xrcd = foreign.xrcd)

static const struct wrong wrongs[] = {
	{"max_send_wr one above", SENDS | RAW, EINVAL, send_wr_high},
	{"max_send_wr of all bits", SENDS | RAW, EINVAL, send_wr_all},
	{"max_recv_wr one above", RECEIVES | RAW, EINVAL, recv_wr_high},
	{"max_recv_wr of all bits", RECEIVES | RAW, EINVAL, recv_wr_all},
	{"max_send_sge one above", SENDS | RAW, EINVAL, send_sge_high},
	{"max_send_sge of all bits", SENDS | RAW, EINVAL, send_sge_all},
	{"max_recv_sge one above", RECEIVES | RAW, EINVAL, recv_sge_high},
	{"max_recv_sge of all bits", RECEIVES | RAW, EINVAL, recv_sge_all},
	{"max_inline_data one above", SENDS | RAW, EINVAL, inline_high},
	{"max_inline_data of all bits", SENDS | RAW, EINVAL, inline_all},
	{"no send_cq", SENDS | RAW, EINVAL, no_send_cq},
	{"no recv_cq", RECEIVES | RAW, EINVAL, no_recv_cq},
	{"pd is NULL", SENDS | RAW, EINVAL, no_pd},
	{"pd is not named in comp_mask", SENDS | RAW, EINVAL, no_pd_bit},
	{"xrcd is NULL", XR, EINVAL, no_xrcd},
	{"xrcd is not named in comp_mask", XR, EINVAL, no_xrcd_bit},
	{"an XRC domain", SENDS | RAW, EINVAL, xrcd_given},
	{"a protection domain", XR, EINVAL, pd_given},
	{"send operations", XR, EINVAL, ops_given},
	{"an indirection table", EVERY & ~RAW, EINVAL, table_given},
	{"a hash", EVERY & ~RAW, EINVAL, hash_given},
	{"a table without its hash", RAW, EINVAL, table_given},
	{"a hash without its table", RAW, EINVAL, hash_given},
	{"a shared receive queue", XS | RAW, EINVAL, srq_given},
	{"a tag-matching queue", UC | UD | XS | RAW, EINVAL, tag_srq_given},
	{"a queue of an XRC domain", SENDS | RAW, EINVAL, xrc_srq_given},
	{"room for TSO headers", EVERY, EOPNOTSUPP, tso_given},
	{"comp_mask bit 7", EVERY, EINVAL, bit_7},
	{"comp_mask bit 31", EVERY, EINVAL, bit_31},
	{"type 0", RC, EINVAL, type_none},
	{"type 1", RC, EINVAL, type_1},
	{"type 11", RC, EINVAL, type_above},
	{"type DRIVER", RC, EOPNOTSUPP, type_driver},
	{"type of all bits", RC, EINVAL, type_all},
	{"another context's pd", SENDS | RAW, ENOENT, foreign_pd},
	{"another context's send_cq", SENDS | RAW, ENOENT, foreign_send_cq},
	{"another context's recv_cq", RECEIVES | RAW, ENOENT, foreign_recv_cq},
	{"another context's srq", RECEIVES, ENOENT, foreign_srq},
	{"another context's xrcd", XR, ENOENT, foreign_xrcd},
};

/* Byte for byte: whatever was written, padding too, would be seen. */
static bool same_bytes(const void *a, const void *b, size_t length)
{
	return !memcmp(a, b, length);
}

static void refused(enum ibv_qp_type type)
{
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		struct ibv_qp_init_attr_ex attr = good(type), before;

		if (!(wrongs[i].types & 1u << type))
			continue;
		expect_case("type %d: %s", (int)type, wrongs[i].name);
		wrongs[i].spoil(&attr);
		memcpy(&before, &attr, sizeof(attr));
		EXPECT_NULL(ibv_create_qp_ex(own.ctx, &attr), wrongs[i].err);
		EXPECT_SAY(same_bytes(&before, &attr, sizeof(attr)), "attributes were changed");
	}
}

/*
 * ibv_create_qp_ex(3): which flag is for which type; a flag without its bit in comp_mask means
 * nothing.
 */
static void flags(enum ibv_qp_type type)
{
	for (int bit = 0; bit < 32; bit++) {
		struct ibv_qp_init_attr_ex attr = good(type);
		bool taken =
			(type == IBV_QPT_UD && 1u << bit == IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) ||
			(type == IBV_QPT_RAW_PACKET && 1u << bit == IBV_QP_CREATE_CVLAN_STRIPPING);
		struct ibv_qp *qp;

		expect_case("type %d: create_flags bit %d", (int)type, bit);
		attr.create_flags = 1u << bit;
		attr.source_qpn = 77;
		if (bit < 2) {
			qp = ibv_create_qp_ex(own.ctx, &attr);
			if (EXPECT_SAY(qp != NULL, "refused without its bit"))
				EXPECT_EQ(ibv_destroy_qp(qp), 0);
		}
		attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		if (!taken) {
			EXPECT_NULL(ibv_create_qp_ex(own.ctx, &attr), EOPNOTSUPP);
			continue;
		}
		qp = ibv_create_qp_ex(own.ctx, &attr);
		if (EXPECT(qp != NULL))
			EXPECT_EQ(ibv_destroy_qp(qp), 0);
	}
}

/* Only a process that may open a packet socket can send frames. */
static void privilege(void)
{
	struct ibv_qp_init_attr_ex attr = good(IBV_QPT_RAW_PACKET);

	/* possible() has seen it, or there is something that cannot be put down here. */
	if (getuid() != 0)
		return;
	expect_case("RAW_PACKET without the privilege");
	CHECK(seteuid(NOBODY) == 0);
	EXPECT_NULL(ibv_create_qp_ex(own.ctx, &attr), EPERM);
	CHECK(seteuid(0) == 0);
}

/*
 * What is granted, at each edge: as many requests as were asked for, and of elements and inline
 * data not less (limits_exact.c has what is more); what the type has no use for is not looked at.
 */
struct granted {
	const char *name;
	uint32_t types;
	struct ibv_qp_cap ask, get;
	bool srq;
};

static struct granted grants[] = {
	{"nothing", SENDS | RAW, {0}, {0}, false},
	{"one of each", RECEIVES | RAW, {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}, false},
	{"no receive side", XS, {1, UINT32_MAX, 1, UINT32_MAX, 1}, {1, 0, 1, 0, 1}, false},
	{"beside a shared queue",
	 RECEIVES,
	 {3, UINT32_MAX, 2, UINT32_MAX, 7},
	 {3, 0, 2, 0, 7},
	 true},
	{"elements and inline data at their limits",
	 RECEIVES | RAW,
	 {1, 1, 32, 32, 512},
	 {1, 1, 32, 32, 512},
	 false},
	{"no queues at all",
	 XR,
	 {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
	 {0},
	 false},
};

static bool at_least(const struct ibv_qp_cap *got, const struct ibv_qp_cap *least)
{
	return got->max_send_wr == least->max_send_wr && got->max_recv_wr == least->max_recv_wr &&
	       got->max_send_sge >= least->max_send_sge && got->max_send_sge <= 32 &&
	       got->max_recv_sge >= least->max_recv_sge && got->max_recv_sge <= 32 &&
	       got->max_inline_data >= least->max_inline_data && got->max_inline_data <= 512 &&
	       (least->max_send_wr || !(got->max_send_sge | got->max_inline_data)) &&
	       (least->max_recv_wr || !got->max_recv_sge);
}

static void granted(enum ibv_qp_type type)
{
	for (size_t i = 0; i < sizeof(grants) / sizeof(grants[0]); i++) {
		struct ibv_qp_init_attr_ex attr = good(type);
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr shown;
		struct ibv_qp *qp;

		if (!(grants[i].types & 1u << type))
			continue;
		expect_case("type %d granted: %s", (int)type, grants[i].name);
		attr.cap = grants[i].ask;
		attr.srq = grants[i].srq ? own.srq : NULL;
		qp = ibv_create_qp_ex(own.ctx, &attr);
		CHECK(qp);
		EXPECT(at_least(&attr.cap, &grants[i].get));
		EXPECT_EQ(ibv_query_qp(qp, &shown, IBV_QP_CAP, &init), 0);
		EXPECT(!memcmp(&shown.cap, &attr.cap, sizeof(attr.cap)));
		EXPECT(!memcmp(&init.cap, &attr.cap, sizeof(attr.cap)));
		EXPECT(qp->qp_context == &own && init.qp_context == &own && init.qp_type == type);
		EXPECT_EQ(ibv_destroy_qp(qp), 0);
	}
}

/* ibv_create_qp() has a protection domain and nothing else of the extended members. */
static void plain(void)
{
	static const struct {
		enum ibv_qp_type type;
		struct ibv_srq **srq;
		int err;
	} rows[] = {
		{IBV_QPT_RC, &own.srq, 0},          {IBV_QPT_UC, &own.srq, 0},
		{IBV_QPT_UD, &own.srq, 0},          {IBV_QPT_RC, &own.tag_srq, 0},
		{IBV_QPT_UD, &own.tag_srq, EINVAL}, {IBV_QPT_RC, &own.xrc_srq, EINVAL},
		{IBV_QPT_XRC_SEND, NULL, 0},        {IBV_QPT_XRC_SEND, &own.srq, EINVAL},
		{IBV_QPT_XRC_RECV, NULL, EINVAL}, /* where would its domain be? */
		{IBV_QPT_DRIVER, NULL, EOPNOTSUPP}, {IBV_QPT_RC, &foreign.srq, ENOENT},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_qp_init_attr attr = {.qp_type = rows[i].type,
						.send_cq = own.cq,
						.recv_cq = own.cq,
						.srq = rows[i].srq ? *rows[i].srq : NULL};
		struct ibv_qp *qp;

		expect_case("ibv_create_qp: type %d, row %zu", (int)rows[i].type, i);
		if (rows[i].err) {
			EXPECT_NULL(ibv_create_qp(own.pd, &attr), rows[i].err);
			continue;
		}
		qp = ibv_create_qp(own.pd, &attr);
		if (EXPECT_SAY(qp != NULL, "errno %d", errno))
			EXPECT_EQ(ibv_destroy_qp(qp), 0);
	}
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	objects_open(&own);
	objects_open(&foreign);
	CHECK(ibv_query_device(own.ctx, &device) == 0);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		expect_case("type %d can be made", (int)types[i]);
		if (!possible(types[i]))
			continue;
		refused(types[i]);
		flags(types[i]);
		granted(types[i]);
	}
	privilege();
	plain();
	expect_case("nothing is held");
	objects_close(&own);
	objects_close(&foreign);
	return expect_done();
}
