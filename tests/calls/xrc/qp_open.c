/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_open_qp(3): every attribute that names the queue pair is required, and the queue pair must be
 * of that domain; and how many queue pairs a shared domain holds.
 */
#include <fcntl.h>
#include <stdio.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static struct ibv_context *ctx;
static struct ibv_xrcd *xrcd, *foreign; /* the other one is another context's */

static struct ibv_xrcd *domain_open(struct ibv_context *context, int fd)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *domain = ibv_open_xrcd(context, &attr);

	CHECK(domain);
	return domain;
}

static struct ibv_qp_init_attr_ex receiver(struct ibv_xrcd *domain)
{
	return (struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = domain,
	};
}

/* ibv_open_qp(3): everything that leads to the queue pair is needed. */
static void opening(void)
{
	const uint32_t needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
				IBV_QP_OPEN_ATTR_TYPE;
	struct ibv_qp_init_attr_ex init = receiver(xrcd);
	struct ibv_qp *made = ibv_create_qp_ex(ctx, &init), *qp;
	struct ibv_qp_open_attr right, attr;

	CHECK(made);
	right = (struct ibv_qp_open_attr){.comp_mask = needed,
					  .qp_num = made->qp_num,
					  .xrcd = xrcd,
					  .qp_context = &right,
					  .qp_type = IBV_QPT_XRC_RECV};
#define OPEN_REFUSED(change, err)                          \
	do {                                               \
		expect_case("open_qp: " #change);          \
		attr = right;                              \
		change;                                    \
		EXPECT_NULL(ibv_open_qp(ctx, &attr), err); \
	} while (0)
	OPEN_REFUSED(attr.comp_mask = 0, EINVAL);
	OPEN_REFUSED(attr.comp_mask &= ~(uint32_t)IBV_QP_OPEN_ATTR_NUM, EINVAL);
	OPEN_REFUSED(attr.comp_mask &= ~(uint32_t)IBV_QP_OPEN_ATTR_XRCD, EINVAL);
	OPEN_REFUSED(attr.comp_mask &= ~(uint32_t)IBV_QP_OPEN_ATTR_TYPE, EINVAL);
	OPEN_REFUSED(attr.comp_mask |= IBV_QP_OPEN_ATTR_RESERVED, EINVAL);
	OPEN_REFUSED(attr.comp_mask |= 1u << 31, EINVAL);
	OPEN_REFUSED(attr.qp_type = IBV_QPT_XRC_SEND, EINVAL);
	OPEN_REFUSED(attr.qp_type = IBV_QPT_RC, EINVAL);
	OPEN_REFUSED(attr.xrcd = NULL, EINVAL);
	OPEN_REFUSED(attr.qp_num = 0, EINVAL);
	OPEN_REFUSED(attr.qp_num = made->qp_num ^ 1, EINVAL);
	OPEN_REFUSED(attr.qp_num = made->qp_num | 1u << 24, EINVAL);
	OPEN_REFUSED(attr.qp_num = UINT32_MAX, EINVAL);
	OPEN_REFUSED(attr.xrcd = foreign, ENOENT);
	expect_case("open_qp: the context pointer only with its bit");
	qp = ibv_open_qp(ctx, &right);
	CHECK(qp);
	EXPECT(qp->qp_num == made->qp_num && qp->qp_context == NULL);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	right.comp_mask |= IBV_QP_OPEN_ATTR_CONTEXT;
	qp = ibv_open_qp(ctx, &right);
	CHECK(qp);
	EXPECT(qp->qp_context == &right && qp->qp_type == IBV_QPT_XRC_RECV);
	EXPECT_EQ(ibv_destroy_qp(made), 0);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	expect_case("open_qp: after the last one is destroyed");
	EXPECT_NULL(ibv_open_qp(ctx, &right), EINVAL);
}

/*
 * A domain that processes share has room for so many receivers; the next is refused and fits when
 * one went.
 */
static void domain_full(void)
{
	enum { ROOM = 1024 };
	FILE *file = tmpfile();
	struct ibv_qp_init_attr_ex attr = receiver(NULL);
	struct ibv_qp *made[ROOM + 1] = {NULL};
	int n = 0;

	expect_case("a shared XRC domain is full");
	CHECK(file);
	attr.xrcd = domain_open(ctx, fileno(file));
	while (n <= ROOM && (made[n] = ibv_create_qp_ex(ctx, &attr)))
		n++;
	EXPECT_EQ(n, ROOM);
	EXPECT_NULL(ibv_create_qp_ex(ctx, &attr), ENOMEM);
	EXPECT_EQ(ibv_destroy_qp(made[ROOM / 2]), 0);
	made[ROOM / 2] = ibv_create_qp_ex(ctx, &attr);
	CHECK(made[ROOM / 2]);
	while (n-- > 0)
		EXPECT_EQ(ibv_destroy_qp(made[n]), 0);
	EXPECT_EQ(ibv_close_xrcd(attr.xrcd), 0);
	fclose(file);
}

int main(int argc, char **argv)
{
	struct ibv_context *other;

	ep_main(argc, argv);
	ctx = device_open();
	other = device_open();
	xrcd = domain_open(ctx, -1);
	foreign = domain_open(other, -1);
	opening();
	domain_full();
	expect_case("nothing is held");
	EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
	EXPECT_EQ(ibv_close_xrcd(foreign), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	EXPECT_EQ(ibv_close_device(other), 0);
	return expect_done();
}
