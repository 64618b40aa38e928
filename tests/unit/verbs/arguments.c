/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the verbs refuse themselves before they ask any device, and what they complete in a request
 * before they pass it on.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fake.h"

#define REFUSED(call, number)                    \
	do {                                     \
		fake.calls = 0;                  \
		errno = 0;                       \
		assert_null(call);               \
		assert_int_equal(errno, number); \
		assert_int_equal(fake.calls, 0); \
	} while (0)

#define REFUSED_INT(call, number)                \
	do {                                     \
		fake.calls = 0;                  \
		errno = 0;                       \
		assert_int_equal(call, number);  \
		assert_int_equal(errno, number); \
		assert_int_equal(fake.calls, 0); \
	} while (0)

static char bytes[64];

static void regions(void **state)
{
	struct ibv_mr_init_attr attr = {.addr = bytes, .length = sizeof(bytes)};

	(void)state;
	fake_reset();
	assert_non_null(ibv_reg_mr(&fake.pd, bytes, 0, IBV_ACCESS_REMOTE_READ));
	assert_int_equal(fake.iova, (uintptr_t)bytes);
	assert_non_null(ibv_reg_mr_iova(&fake.pd, bytes, 8, 0x5000, IBV_ACCESS_RELAXED_ORDERING));
	assert_int_equal(fake.iova, 0x5000);
	assert_int_equal(fake.access, IBV_ACCESS_RELAXED_ORDERING);

	REFUSED(ibv_reg_mr_ex(&fake.pd, &attr), EINVAL);
	attr.comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_FD;
	REFUSED(ibv_reg_mr_ex(&fake.pd, &attr), EINVAL);
	attr.comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_BUF | IBV_REG_MR_MASK_FD_OFFSET;
	REFUSED(ibv_reg_mr_ex(&fake.pd, &attr), EINVAL);
	attr.comp_mask = 1 << 20;
	REFUSED(ibv_reg_mr_ex(&fake.pd, &attr), EINVAL);
	attr.comp_mask = IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_FD_OFFSET;
	attr.fd_offset = 0x3000;
	assert_non_null(ibv_reg_mr_ex(&fake.pd, &attr));
	assert_int_equal(fake.iova, 0x3000);
	attr.comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_DMAH;
	REFUSED(ibv_reg_mr_ex(&fake.pd, &attr), EINVAL); /* no handle */
	attr.comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_BUF;
	REFUSED(ibv_reg_mr_ex(&fake.pd, &attr), EINVAL); /* no buffer */
	attr.comp_mask = IBV_REG_MR_MASK_ADDR;
	attr.iova = 0x7000;
	assert_non_null(ibv_reg_mr_ex(&fake.pd, &attr));
	assert_int_equal(fake.iova, (uintptr_t)bytes);
	attr.comp_mask |= IBV_REG_MR_MASK_IOVA;
	assert_non_null(ibv_reg_mr_ex(&fake.pd, &attr));
	assert_int_equal(fake.iova, 0x7000);
}

static void completion_queues(void **state)
{
	struct ibv_context *ctx = fake_reset();
	struct ibv_cq_init_attr_ex attr = {.cqe = 1, .flags = 0xff};
	struct ibv_modify_cq_attr modify = {.attr_mask = IBV_CQ_ATTR_RESERVED};

	(void)state;
	REFUSED(ibv_create_cq(ctx, 0, NULL, NULL, 0), EINVAL);
	REFUSED(ibv_create_cq(ctx, -1, NULL, NULL, 0), EINVAL);
	REFUSED(ibv_create_cq(ctx, 1, NULL, NULL, -1), EINVAL);
	assert_non_null(ibv_create_cq_ex(ctx, &attr));
	assert_int_equal(fake.cq_attr.flags, 0);
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	REFUSED(ibv_create_cq_ex(ctx, &attr), EINVAL);
	attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	assert_non_null(ibv_create_cq_ex(ctx, &attr));
	assert_int_equal(fake.cq_attr.flags, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
	attr.wc_flags = 1ULL << 40;
	REFUSED(ibv_create_cq_ex(ctx, &attr), EOPNOTSUPP);
	attr.wc_flags = 0;
	attr.comp_mask = 1 << 9;
	REFUSED(ibv_create_cq_ex(ctx, &attr), EINVAL);
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
	REFUSED(ibv_create_cq_ex(ctx, &attr), EINVAL);
	attr.comp_mask = 0;
	attr.cqe = 0;
	REFUSED(ibv_create_cq_ex(ctx, &attr), EINVAL);
	REFUSED_INT(ibv_resize_cq(&fake.cq, 0), EINVAL);
	REFUSED_INT(ibv_resize_cq(&fake.cq, -5), EINVAL);
	REFUSED_INT(ibv_modify_cq(&fake.cq, &modify), EINVAL);
}

static void queue_pairs(void **state)
{
	struct ibv_context *ctx = fake_reset();
	struct ibv_qp_init_attr_ex attr = {.create_flags = 0xff, .send_ops_flags = 1};

	(void)state;
	REFUSED(ibv_create_qp_ex(ctx, &attr), EINVAL); /* no PD */
	attr.comp_mask = 1 << 20;
	REFUSED(ibv_create_qp_ex(ctx, &attr), EINVAL);
	attr.pd = &fake.pd;
	attr.comp_mask = 0;
	attr.qp_type = IBV_QPT_XRC_RECV; /* needs an XRC domain and no PD */
	REFUSED(ibv_create_qp_ex(ctx, &attr), EINVAL);
	attr.qp_type = IBV_QPT_RC;
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
	REFUSED(ibv_create_qp_ex(ctx, &attr), EOPNOTSUPP);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	assert_non_null(ibv_create_qp_ex(ctx, &attr));
	assert_int_equal(fake.qp_attr.create_flags, 0);
	assert_int_equal(fake.qp_attr.send_ops_flags, 1);
	assert_int_equal(attr.cap.max_send_wr, 256);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	assert_non_null(ibv_create_qp_ex(ctx, &attr));
	assert_int_equal(fake.qp_attr.create_flags, 0xff);
	assert_int_equal(fake.qp_attr.send_ops_flags, 0);

	assert_null(ibv_qp_to_qp_ex(&fake.qp));
	fake.qp_ex.wr_start = (void (*)(struct ibv_qp_ex *))abort;
	assert_ptr_equal(ibv_qp_to_qp_ex(&fake.qp), &fake.qp_ex);
}

static void shared_receive_queues(void **state)
{
	struct ibv_context *ctx = fake_reset();
	struct ibv_srq_init_attr_ex attr = {.srq_type = (enum ibv_srq_type)(IBV_SRQT_TM + 1),
					    .pd = &fake.pd};
	struct ibv_srq_attr srq_attr = {0};

	(void)state;
	attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	REFUSED(ibv_create_srq_ex(ctx, &attr), EINVAL);
	attr.comp_mask = 1 << 12;
	REFUSED(ibv_create_srq_ex(ctx, &attr), EINVAL);
	attr.comp_mask = 0;
	REFUSED(ibv_create_srq_ex(ctx, &attr), EINVAL);
	attr.srq_type = IBV_SRQT_BASIC;
	attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	assert_non_null(ibv_create_srq_ex(ctx, &attr));
	assert_int_equal(attr.attr.max_wr, 128);
	REFUSED_INT(ibv_modify_srq(&fake.srq, &srq_attr, 1 << 5), EINVAL);
	REFUSED_INT(ibv_get_srq_num(&fake.srq, NULL), EINVAL);
}

static void multicast(void **state)
{
	union ibv_gid six = {.raw = {0xff, 0x02}};
	union ibv_gid four = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 224}};
	union ibv_gid host = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 192}};
	union ibv_gid global = {.raw = {0x20, 0x01}};

	(void)state;
	fake_reset();
	fake.qp.qp_type = IBV_QPT_UD;
	assert_int_equal(ibv_attach_mcast(&fake.qp, &six, 0), 0);
	assert_int_equal(ibv_attach_mcast(&fake.qp, &four, 0), 0);
	REFUSED_INT(ibv_attach_mcast(&fake.qp, &host, 0), EINVAL);
	REFUSED_INT(ibv_attach_mcast(&fake.qp, &global, 0), EINVAL);
	REFUSED_INT(ibv_detach_mcast(&fake.qp, &global, 0), EINVAL);
	fake.qp.qp_type = IBV_QPT_RC;
	REFUSED_INT(ibv_attach_mcast(&fake.qp, &six, 0), EINVAL);
}

/* What comes later says so, in the manner of each verb. */
static void counters(void **state)
{
	struct ibv_context *ctx = fake_reset();
	struct ibv_comp_cntr cntr = {.context = ctx};
	struct ibv_comp_cntr_init_attr attr = {.flags = 1};
	struct ibv_qp_attach_comp_cntr_attr ops = {.op_mask = 0};

	(void)state;
	REFUSED(ibv_create_comp_cntr(ctx, &attr), EINVAL);
	attr = (struct ibv_comp_cntr_init_attr){.type = (enum ibv_comp_cntr_type)7};
	REFUSED(ibv_create_comp_cntr(ctx, &attr), ENOTSUP);
	REFUSED(ibv_create_comp_cntr(ctx, NULL), EINVAL);
	REFUSED_INT(ibv_query_comp_cntr_caps(ctx, NULL), EINVAL);
	REFUSED_INT(ibv_read_comp_cntr(&cntr, NULL), EINVAL);
	REFUSED_INT(ibv_set_comp_cntr(NULL, 1), EINVAL);
	REFUSED_INT(ibv_qp_attach_comp_cntr(&fake.qp, &cntr, &ops), EINVAL);
	ops.op_mask = 1u << 20;
	REFUSED_INT(ibv_qp_attach_comp_cntr(&fake.qp, &cntr, &ops), ENOTSUP);
	REFUSED_INT(ibv_set_ece(&fake.qp, NULL), EINVAL);
	REFUSED_INT(ibv_query_ece(&fake.qp, NULL), EINVAL);
}

static void not_offered(void **state)
{
	struct ibv_context *ctx = fake_reset();

	(void)state;
	REFUSED(ibv_alloc_td(ctx, NULL), EINVAL);
	REFUSED(ibv_alloc_parent_domain(ctx, NULL), EINVAL);
	REFUSED(ibv_alloc_buf(&fake.pd, 8, NULL), EINVAL);
	REFUSED(ibv_alloc_dmah(ctx, NULL), EINVAL);
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regions),     cmocka_unit_test(completion_queues),
		cmocka_unit_test(queue_pairs), cmocka_unit_test(shared_receive_queues),
		cmocka_unit_test(multicast),   cmocka_unit_test(counters),
		cmocka_unit_test(not_offered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
