/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Closing a device whose objects were not destroyed: nothing of them works on, other contexts do.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include <infiniband/verbs.h>

static struct ibv_context *open_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	assert_non_null(list);
	assert_non_null(list[0]);
	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	assert_non_null(ctx);
	return ctx;
}

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint64_t word;
};

static void make(struct end *e)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
	};

	e->ctx = open_first();
	e->pd = ibv_alloc_pd(e->ctx);
	e->cq = ibv_create_cq(e->ctx, 8, NULL, NULL, 0);
	e->mr = ibv_reg_mr(e->pd, &e->word, sizeof(e->word),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	attr.send_cq = e->cq;
	attr.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &attr);
	assert_non_null(e->qp);
	assert_non_null(e->mr);
}

static void connect_to(struct end *e, const struct end *peer)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = peer->qp->qp_num,
				  .min_rnr_timer = 1,
				  .ah_attr = {.is_global = 1, .port_num = 1}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 8, .retry_cnt = 2};

	assert_int_equal(ibv_query_gid(e->ctx, 1, 0, &rtr.ah_attr.grh.dgid), 0);
	assert_int_equal(ibv_modify_qp(e->qp, &init,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	assert_int_equal(ibv_modify_qp(e->qp, &rtr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
			 0);
	assert_int_equal(ibv_modify_qp(e->qp, &rts,
				       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					       IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
}

static enum ibv_wc_status write_word(struct end *from, const struct end *to)
{
	struct ibv_sge sge = {(uintptr_t)&from->word, sizeof(from->word), from->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {(uintptr_t)&to->word, to->mr->rkey},
				 };
	struct ibv_wc wc;

	assert_int_equal(ibv_post_send(from->qp, &wr, &bad), 0);
	while (!ibv_poll_cq(from->cq, 1, &wc))
		;
	return wc.status;
}

/* The other context's write arrives before the close, and not after it. */
static void nothing_works_on(void **state)
{
	static struct end left, stays; /* what is left behind stays in memory */

	(void)state;
	make(&left);
	make(&stays);
	connect_to(&left, &stays);
	connect_to(&stays, &left);
	stays.word = 1;
	assert_int_equal(write_word(&stays, &left), IBV_WC_SUCCESS);
	assert_true(left.word == 1);
	assert_int_equal(ibv_close_device(left.ctx), 0);
	stays.word = 2;
	assert_int_not_equal(write_word(&stays, &left), IBV_WC_SUCCESS);
	assert_true(left.word == 1);
	assert_int_equal(ibv_destroy_qp(stays.qp), 0);
	assert_int_equal(ibv_destroy_cq(stays.cq), 0);
	assert_int_equal(ibv_dereg_mr(stays.mr), 0);
	assert_int_equal(ibv_dealloc_pd(stays.pd), 0);
	assert_int_equal(ibv_close_device(stays.ctx), 0);
}

static void descriptors_go(void **state)
{
	struct ibv_context *ctx = open_first();
	int async_fd = ctx->async_fd, cmd_fd = ctx->cmd_fd;

	(void)state;
	assert_true(fcntl(async_fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(cmd_fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(ibv_close_device(ctx), 0);
	assert_int_equal(fcntl(async_fd, F_GETFD), -1);
	assert_int_equal(fcntl(cmd_fd, F_GETFD), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptors_go),
		cmocka_unit_test(nothing_works_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
