/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Creating and destroying queue pairs: types, caps, numbers, extended creation, foreign objects. */
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_device_attr device;

static struct ibv_qp_init_attr good(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = &device,
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.cap = {.max_send_wr = 10,
			.max_recv_wr = 11,
			.max_send_sge = 2,
			.max_recv_sge = 3,
			.max_inline_data = 20},
	};

	return attr;
}

static void fresh(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = good(type), init;
	struct ibv_qp_attr shown;
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	expect_case("fresh QP of type %d", (int)type);
	CHECK(qp);
	EXPECT(qp->qp_num > 1 && qp->qp_num < 0xffffff);
	EXPECT_EQ(qp->state, IBV_QPS_RESET);
	EXPECT_EQ(qp->qp_type, type);
	EXPECT(qp->pd == pd && qp->context == ctx && qp->send_cq == cq && qp->recv_cq == cq);
	EXPECT(qp->qp_context == &device && qp->srq == NULL);
	EXPECT(attr.cap.max_send_wr >= 10 && attr.cap.max_recv_wr >= 11);
	EXPECT(attr.cap.max_send_sge >= 2 && attr.cap.max_recv_sge >= 3);
	EXPECT(attr.cap.max_inline_data >= 20);
	EXPECT_EQ(ibv_query_qp(qp, &shown, IBV_QP_STATE | IBV_QP_CAP, &init), 0);
	EXPECT_EQ(shown.qp_state, IBV_QPS_RESET);
	EXPECT(!memcmp(&shown.cap, &attr.cap, sizeof(attr.cap)));
	EXPECT(!memcmp(&init.cap, &attr.cap, sizeof(attr.cap)));
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

#define REFUSE(change, err)                                                                  \
	do {                                                                                 \
		struct ibv_qp_init_attr a = good(IBV_QPT_RC);                                \
		struct ibv_qp_cap asked;                                                     \
                                                                                             \
		expect_case("refused: " #change);                                            \
		change;                                                                      \
		asked = a.cap;                                                               \
		EXPECT_NULL(ibv_create_qp(pd, &a), err);                                     \
		EXPECT_SAY(!memcmp(&asked, &a.cap, sizeof(asked)), "a refusal changed cap"); \
	} while (0)

static void refused(void)
{
	REFUSE(a.send_cq = NULL, EINVAL);
	REFUSE(a.recv_cq = NULL, EINVAL);
	REFUSE(a.qp_type = (enum ibv_qp_type)0xf0, EINVAL);
	REFUSE(a.cap.max_send_wr = (uint32_t)device.max_qp_wr + 1, EINVAL);
	REFUSE(a.cap.max_recv_wr = (uint32_t)device.max_qp_wr + 1, EINVAL);
	REFUSE(a.cap.max_send_wr = 0xffffffff, EINVAL);
	REFUSE(a.cap.max_recv_wr = 0xffffffff, EINVAL);
	REFUSE(a.cap.max_send_sge = (uint32_t)device.max_sge + 1, EINVAL);
	REFUSE(a.cap.max_recv_sge = (uint32_t)device.max_sge + 1, EINVAL);
	REFUSE(a.cap.max_send_sge = 0xffffffff, EINVAL);
	REFUSE(a.cap.max_recv_sge = 0xffffffff, EINVAL);
	REFUSE(a.cap.max_inline_data = 1u << 30, EINVAL);
	REFUSE(a.cap.max_inline_data = 0xffffffff, EINVAL);
}

/* Zero is a legal size of every queue and list. */
static void zeros(void)
{
	struct ibv_qp_init_attr attr = good(IBV_QPT_RC);
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad = NULL;
	struct ibv_qp *qp;

	expect_case("zeros");
	attr.cap.max_send_wr = 0;
	attr.cap.max_recv_wr = 0;
	attr.cap.max_send_sge = 0;
	attr.cap.max_recv_sge = 0;
	attr.cap.max_inline_data = 0;
	qp = ibv_create_qp(pd, &attr);
	CHECK(qp);
	if (!attr.cap.max_recv_wr) {
		struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};

		EXPECT_EQ(ibv_modify_qp(qp, &init,
					IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						IBV_QP_ACCESS_FLAGS),
			  0);
		EXPECT_EQ(ibv_post_recv(qp, &recv, &bad), ENOMEM);
		EXPECT(bad == &recv);
	}
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

static void maxima(void)
{
	struct ibv_qp_init_attr attr = good(IBV_QPT_RC);
	struct ibv_qp *qp;

	expect_case("exactly max_qp_wr");
	attr.cap.max_send_wr = (uint32_t)device.max_qp_wr;
	attr.cap.max_recv_wr = (uint32_t)device.max_qp_wr;
	attr.cap.max_inline_data = 0;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
	qp = ibv_create_qp(pd, &attr);
	if (EXPECT(qp != NULL)) {
		EXPECT(attr.cap.max_send_wr >= (uint32_t)device.max_qp_wr);
		EXPECT_EQ(ibv_destroy_qp(qp), 0);
	}
	expect_case("exactly max_sge");
	attr = good(IBV_QPT_RC);
	attr.cap.max_send_sge = attr.cap.max_recv_sge = (uint32_t)device.max_sge;
	qp = ibv_create_qp(pd, &attr);
	if (EXPECT(qp != NULL))
		EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

/* Programs look for the inline limit by halving: refused above, granted at and below it. */
static void inline_limit(void)
{
	uint32_t low = 0, high = 1 << 20;

	expect_case("inline limit by bisection");
	while (high - low > 1) {
		struct ibv_qp_init_attr attr = good(IBV_QPT_RC);
		uint32_t middle = (low + high) / 2;
		struct ibv_qp *qp;

		attr.cap.max_inline_data = middle;
		errno = 0;
		qp = ibv_create_qp(pd, &attr);
		if (qp) {
			EXPECT(attr.cap.max_inline_data >= middle);
			EXPECT_EQ(ibv_destroy_qp(qp), 0);
			low = middle;
		} else {
			EXPECT_EQ(errno, EINVAL);
			high = middle;
		}
	}
	EXPECT_SAY(low >= 64, "inline limit is %u bytes", low);
}

static void with_srq(void)
{
	struct ibv_qp_init_attr attr = good(IBV_QPT_RC);
	struct ibv_qp *qp;

	expect_case("SRQ: the own receive queue is ignored");
	attr.srq = srq;
	attr.cap.max_recv_wr = 0xffffffff;
	attr.cap.max_recv_sge = 0xffffffff;
	qp = ibv_create_qp(pd, &attr);
	CHECK(qp);
	EXPECT_EQ(attr.cap.max_recv_wr, 0);
	EXPECT_EQ(attr.cap.max_recv_sge, 0);
	EXPECT(qp->srq == srq);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

static void numbers(void)
{
	enum { COUNT = 64 };
	struct ibv_qp_init_attr attr = good(IBV_QPT_RC);
	struct ibv_qp *qp[COUNT];
	uint32_t gone;

	expect_case("numbers differ");
	for (int i = 0; i < COUNT; i++) {
		qp[i] = ibv_create_qp(pd, &attr);
		CHECK(qp[i]);
		for (int j = 0; j < i; j++)
			EXPECT(qp[i]->qp_num != qp[j]->qp_num);
	}
	gone = qp[0]->qp_num;
	for (int i = 0; i < COUNT; i++)
		EXPECT_EQ(ibv_destroy_qp(qp[i]), 0);
	expect_case("a number is not given out again at once");
	for (int i = 0; i < COUNT; i++) {
		qp[0] = ibv_create_qp(pd, &attr);
		CHECK(qp[0]);
		EXPECT(qp[0]->qp_num != gone);
		EXPECT_EQ(ibv_destroy_qp(qp[0]), 0);
	}
}

/* More than max_qp in sequence does not hurt the living ones. */
static void many_in_sequence(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_qp_init_attr attr = good(IBV_QPT_UD);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, NULL, 0);
	int rounds = device.max_qp < 20000 ? 2 * device.max_qp : 20000;
	struct ibv_wc wc;
	struct endpoint ep;

	expect_case("many in sequence, one lives");
	ep_open(&ep, &config, EP_HERE);
	ep_link(&ep, &ep);
	for (int i = 0; i < rounds; i++) {
		struct ibv_qp *qp = ibv_create_qp(pd, &attr);

		CHECK(qp);
		CHECK(ibv_destroy_qp(qp) == 0);
		if (i % 1000)
			continue;
		CHECK(ep_post_recv(&ep, 1, NULL, 0) == 0);
		CHECK(ep_post_send(&ep, &wr) == 0);
		EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_STATUS(ep_poll_one(&ep, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	}
	ep_close(&ep);
}

struct ex_case {
	enum ibv_qp_type type;
	uint64_t ops;
	int err;
};

/* ibv_wr_post(3): which operations exist for which type. */
static const struct ex_case ex_cases[] = {
	{IBV_QPT_RC,
	 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |
		 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
		 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	 0},
	{IBV_QPT_UC,
	 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |
		 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
	 0},
	{IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM, 0},
	{IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ, EOPNOTSUPP},
	{IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, EOPNOTSUPP},
	{IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, EOPNOTSUPP},
	{IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE, EOPNOTSUPP},
	{IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, EOPNOTSUPP},
	{IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_READ, EOPNOTSUPP},
	{IBV_QPT_UD, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, EOPNOTSUPP},
	{IBV_QPT_UD, IBV_QP_EX_WITH_LOCAL_INV, EOPNOTSUPP},
	{IBV_QPT_UD, IBV_QP_EX_WITH_BIND_MW, EOPNOTSUPP},
	{IBV_QPT_UD, IBV_QP_EX_WITH_SEND_WITH_INV, EOPNOTSUPP},
	{IBV_QPT_RC, IBV_QP_EX_WITH_TSO, EOPNOTSUPP},
	{IBV_QPT_RC, 1ull << 50, EOPNOTSUPP},
};

static struct ibv_qp_init_attr_ex good_ex(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr plain = good(type);
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = plain.qp_context,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = plain.cap,
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};

	return attr;
}

static void extended(void)
{
	struct ibv_qp_init_attr_ex attr;
	struct ibv_qp *qp;

	for (size_t i = 0; i < sizeof(ex_cases) / sizeof(ex_cases[0]); i++) {
		attr = good_ex(ex_cases[i].type);
		attr.send_ops_flags = ex_cases[i].ops;
		expect_case("extended: type %d ops %#llx", (int)ex_cases[i].type,
			    (unsigned long long)ex_cases[i].ops);
		if (ex_cases[i].err) {
			EXPECT_NULL(ibv_create_qp_ex(ctx, &attr), ex_cases[i].err);
			continue;
		}
		qp = ibv_create_qp_ex(ctx, &attr);
		if (!EXPECT_SAY(qp != NULL, "refused, errno %d", errno))
			continue;
		EXPECT(ibv_qp_to_qp_ex(qp) != NULL);
		EXPECT_EQ(ibv_destroy_qp(qp), 0);
	}
	expect_case("extended: without send operations it is a plain one");
	attr = good_ex(IBV_QPT_RC);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	qp = ibv_create_qp_ex(ctx, &attr);
	if (EXPECT(qp != NULL)) {
		EXPECT(ibv_qp_to_qp_ex(qp) == NULL);
		EXPECT_EQ(ibv_destroy_qp(qp), 0);
	}
	expect_case("extended: no PD");
	attr = good_ex(IBV_QPT_RC);
	attr.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	EXPECT_NULL(ibv_create_qp_ex(ctx, &attr), EINVAL);
	expect_case("extended: creation flags");
	attr = good_ex(IBV_QPT_RC);
	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = 1u << 30;
	errno = 0;
	qp = ibv_create_qp_ex(ctx, &attr);
	EXPECT(qp == NULL && (errno == EOPNOTSUPP || errno == EINVAL));
	expect_case("extended: unknown comp_mask");
	attr = good_ex(IBV_QPT_RC);
	attr.comp_mask |= 1u << 30;
	errno = 0;
	qp = ibv_create_qp_ex(ctx, &attr);
	EXPECT(qp == NULL && (errno == EOPNOTSUPP || errno == EINVAL));
}

static void foreign(void)
{
	struct ibv_qp_init_attr attr = good(IBV_QPT_RC), init;
	struct ibv_context *other = device_open();
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);
	struct ibv_qp_attr shown;
	uint32_t handle;
	int rc;

	expect_case("handle overwritten: QP");
	CHECK(qp);
	handle = qp->handle;
	qp->handle = 0xdeadbeef;
	EXPECT_REFUSED(ibv_destroy_qp(qp), ENOENT);
	rc = ibv_query_qp(qp, &shown, IBV_QP_STATE, &init);
	EXPECT(rc == ENOENT || rc == EINVAL);
	qp->handle = handle;
	qp->context = other;
	EXPECT_REFUSED(ibv_destroy_qp(qp), ENOENT);
	qp->context = ctx;
	EXPECT_EQ(ibv_query_qp(qp, &shown, IBV_QP_STATE, &init), 0);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);

	expect_case("handle overwritten: CQ");
	handle = cq->handle;
	cq->handle = 0xdeadbeef;
	EXPECT(ibv_create_qp(pd, &attr) == NULL);
	cq->handle = handle;
	expect_case("handle overwritten: SRQ");
	attr.srq = srq;
	handle = srq->handle;
	srq->handle = 0xdeadbeef;
	EXPECT(ibv_create_qp(pd, &attr) == NULL);
	srq->handle = handle;
	expect_case("handle overwritten: PD");
	handle = pd->handle;
	pd->handle = 0xdeadbeef;
	EXPECT(ibv_create_qp(pd, &attr) == NULL);
	pd->handle = handle;
	EXPECT_EQ(ibv_close_device(other), 0);
}

int main(int argc, char **argv)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 8, .max_sge = 1}};

	ep_main(argc, argv);
	ctx = device_open();
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	CHECK(pd && cq);
	srq = ibv_create_srq(pd, &srq_attr);
	CHECK(srq);
	CHECK(ibv_query_device(ctx, &device) == 0);
	fresh(IBV_QPT_RC);
	fresh(IBV_QPT_UC);
	fresh(IBV_QPT_UD);
	refused();
	zeros();
	maxima();
	inline_limit();
	with_srq();
	numbers();
	many_in_sequence();
	extended();
	foreign();
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}
