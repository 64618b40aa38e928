/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: in a forked child every call that names an inherited object of memory, of counting, of
 * work queues or of XRC is refused with ENODEV, in the manner of the call, before the context
 * re-opens itself and after that; what is handed over stays as it was, and the parent's objects go
 * on. Queue pairs, completion queues and shared receive queues: fork_inherited.c.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"
#include "support/xrc.h"

enum { BYTES = 8192 };

static struct resources r;
static char memory[BYTES];

static struct ibv_mr *mr, *null_mr, *dm_mr, *buf_mr;
static struct ibv_dm *dm;
static struct ibv_buf *buf;
static char *buf_addr;
static struct ibv_dmah *dmah;
static struct ibv_mw *mw;
static struct ibv_qp *qp;
static struct ibv_comp_cntr *cntr;
static struct ibv_counters *counters;
static struct ibv_wq *wq;
static struct ibv_rwq_ind_table *table;
static struct ibv_xrcd *xrcd;
static struct ibv_srq *xsrq;

static void make_memory(void)
{
	struct ibv_alloc_dm_attr dm_attr = {.length = BYTES};
	struct ibv_dmah_init_attr dmah_attr = {.comp_mask = 0};

	mr = ibv_reg_mr(r.pd, memory, BYTES, EP_ACCESS | IBV_ACCESS_MW_BIND);
	null_mr = ibv_alloc_null_mr(r.pd);
	dm = ibv_alloc_dm(r.context, &dm_attr);
	CHECK(mr && null_mr && dm);
	dm_mr = ibv_reg_dm_mr(r.pd, dm, 0, BYTES, EP_ACCESS | IBV_ACCESS_ZERO_BASED);
	buf_addr = ibv_alloc_buf(r.pd, BYTES, &buf);
	CHECK(dm_mr && buf_addr);
	buf_mr = ibv_reg_buf_mr(r.pd, buf, buf_addr, BYTES, EP_ACCESS);
	dmah = ibv_alloc_dmah(r.context, &dmah_attr);
	mw = ibv_alloc_mw(r.pd, IBV_MW_TYPE_1);
	CHECK(buf_mr && dmah && mw);
}

static void make_queues(void)
{
	struct ibv_qp_init_attr qp_attr = {
		.send_cq = r.cq,
		.recv_cq = r.cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_comp_cntr_init_attr cntr_attr = {.type = IBV_COMP_CNTR_TYPE_BYTES};
	struct ibv_counters_init_attr counters_attr = {.comp_mask = 0};
	struct ibv_wq_init_attr wq_attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = r.pd, .cq = r.cq};
	struct ibv_rwq_ind_table_init_attr table_attr = {.ind_tbl = &wq};
	struct ibv_xrcd_init_attr xrcd_attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex srq_attr = xrc_srq_attr(&r, NULL);

	qp = ibv_create_qp(r.pd, &qp_attr);
	cntr = ibv_create_comp_cntr(r.context, &cntr_attr);
	counters = ibv_create_counters(r.context, &counters_attr);
	wq = ibv_create_wq(r.context, &wq_attr);
	xrcd = ibv_open_xrcd(r.context, &xrcd_attr);
	CHECK(qp && cntr && counters && wq && xrcd);
	table = ibv_create_rwq_ind_table(r.context, &table_attr);
	srq_attr.xrcd = xrcd;
	xsrq = ibv_create_srq_ex(r.context, &srq_attr);
	CHECK(table && xsrq);
}

#define ERRNO(call)                                                    \
	do {                                                           \
		int got_ = call;                                       \
                                                                       \
		CHECK_SAY(got_ == ENODEV, "%s gives %d", #call, got_); \
	} while (0)

#define TOLD(call, answer)                                                                      \
	do {                                                                                    \
		errno = 0;                                                                      \
		CHECK_SAY((call) == (answer) && errno == ENODEV, "%s: errno %d", #call, errno); \
	} while (0)

static void memory_refused(void)
{
	struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
	struct ibv_mr_init_attr with_dmah = {.comp_mask = IBV_REG_MR_MASK_ADDR |
							  IBV_REG_MR_MASK_DMAH,
					     .addr = memory,
					     .length = 8,
					     .dmah = dmah};
	struct ibv_mw_bind bind = {.bind_info = {.mr = mr}};
	uint64_t word = 5;

	ERRNO(ibv_dereg_mr(mr));
	ERRNO(ibv_dereg_mr(null_mr));
	ERRNO(ibv_dereg_mr(dm_mr));
	ERRNO(ibv_dereg_mr(buf_mr));
	CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		 IBV_REREG_MR_ERR_INPUT);
	ERRNO(ibv_free_dm(dm));
	ERRNO(ibv_memcpy_to_dm(dm, 0, &word, sizeof(word)));
	ERRNO(ibv_memcpy_from_dm(&word, dm, 0, sizeof(word)));
	CHECK(word == 5);
	TOLD(ibv_reg_dm_mr(r.pd, dm, 0, 8, IBV_ACCESS_ZERO_BASED), NULL);
	TOLD(ibv_dm_export_dmabuf_fd(dm), -1);
	TOLD(ibv_reg_buf_mr(r.pd, buf, buf_addr, 8, 0), NULL);
	TOLD(ibv_export_buf_dmabuf_fd(buf), -1);
	TOLD((ibv_free_buf(buf), 0), 0);
	ERRNO(ibv_dealloc_dmah(dmah));
	TOLD(ibv_reg_mr_ex(r.pd, &with_dmah), NULL);
	ERRNO(ibv_dealloc_mw(mw));
	ERRNO(ibv_bind_mw(qp, mw, &bind));
	CHECK(ibv_advise_mr(r.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1) != 0);
}

static void queues_refused(void)
{
	struct ibv_wq_attr wq_attr = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};
	struct ibv_counter_attach_attr point = {.counter_desc = IBV_COUNTER_PACKETS};
	struct ibv_qp_attach_comp_cntr_attr attach = {.op_mask = 1};
	struct ibv_qp_rate_limit_attr rate = {.rate_limit = 0};
	struct ibv_ece ece = {.options = 7};
	union ibv_gid group = {.raw = {0xff, 0x0e}};
	uint64_t value = 5;
	uint32_t number = 5;

	ERRNO(ibv_set_comp_cntr(cntr, 1));
	ERRNO(ibv_inc_err_comp_cntr(cntr, 1));
	ERRNO(ibv_read_comp_cntr(cntr, &value));
	CHECK(value == 5);
	ERRNO(ibv_qp_attach_comp_cntr(qp, cntr, &attach));
	ERRNO(ibv_destroy_comp_cntr(cntr));
	ERRNO(ibv_attach_counters_point_flow(counters, &point, NULL));
	ERRNO(ibv_read_counters(counters, &value, 1, 0));
	CHECK(value == 5);
	ERRNO(ibv_destroy_counters(counters));
	ERRNO(ibv_modify_wq(wq, &wq_attr));
	ERRNO(ibv_destroy_wq(wq));
	ERRNO(ibv_destroy_rwq_ind_table(table));
	ERRNO(ibv_get_srq_num(xsrq, &number));
	CHECK(number == 5);
	ERRNO(ibv_destroy_srq(xsrq));
	ERRNO(ibv_close_xrcd(xrcd));
	ERRNO(ibv_modify_qp_rate_limit(qp, &rate));
	ERRNO(ibv_set_ece(qp, &ece));
	ERRNO(ibv_query_ece(qp, &ece));
	CHECK(ece.options == 7);
	CHECK_EQ(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0), 0);
	CHECK_EQ(ibv_attach_mcast(qp, &group, 0),
		 EINVAL); /* the type of the queue pair comes first */
	ERRNO(ibv_destroy_qp(qp));
}

/*
 * Posting and polling do not go through the context; on an inherited queue they are refused all the
 * same.
 */
static void posts_refused(void)
{
	struct ibv_modify_cq_attr moderate = {.attr_mask = IBV_CQ_ATTR_MODERATE};
	struct ibv_ops_wr op = {.opcode = IBV_WR_TAG_SYNC}, *bad_op = NULL;
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad = NULL;
	struct ibv_wc wc = {.wr_id = 5};

	ERRNO(ibv_post_wq_recv(wq, &recv, &bad));
	CHECK(bad == &recv);
	bad = NULL;
	ERRNO(ibv_post_srq_recv(xsrq, &recv, &bad));
	CHECK(bad == &recv);
	ERRNO(ibv_post_srq_ops(xsrq, &op, &bad_op));
	CHECK(bad_op == &op);
	CHECK_EQ(ibv_poll_cq(r.cq, 1, &wc), -ENODEV);
	CHECK_EQ(wc.wr_id, 5);
	ERRNO(ibv_req_notify_cq(r.cq, 0));
	ERRNO(ibv_modify_cq(r.cq, &moderate));
	ERRNO(ibv_resize_cq(r.cq, 8));
	ERRNO(ibv_destroy_cq(r.cq));
}

/* What a child makes anew cannot lean on what it inherited, but for domains. */
static void mixtures_refused(void)
{
	struct ibv_wq_init_attr wq_attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = r.pd, .cq = r.cq};
	struct ibv_rwq_ind_table_init_attr table_attr = {.ind_tbl = &wq};
	struct ibv_srq_init_attr_ex srq_attr = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = r.pd,
		.cq = r.cq,
		.xrcd = xrcd,
		.tm_cap = {.max_num_tags = 1},
	};

	TOLD(ibv_create_wq(r.context, &wq_attr), NULL);
	TOLD(ibv_create_rwq_ind_table(r.context, &table_attr), NULL);
	TOLD(ibv_create_srq_ex(r.context, &srq_attr), NULL);
	srq_attr.srq_type = IBV_SRQT_XRC;
	TOLD(ibv_create_srq_ex(r.context, &srq_attr), NULL);
	srq_attr.cq = ibv_create_cq(r.context, 4, NULL, NULL, 0);
	CHECK(srq_attr.cq);
	TOLD(ibv_create_srq_ex(r.context, &srq_attr), NULL);
	CHECK_ZERO(ibv_destroy_cq(srq_attr.cq));
}

static void in_child(void)
{
	struct ibv_pd *mine;

	watchdog(60);
	promise("inherited objects are refused before the context re-opens itself");
	memory_refused();
	queues_refused();
	posts_refused();
	mine = ibv_alloc_pd(r.context);
	CHECK(mine);
	promise("inherited objects are refused after the context has re-opened itself");
	memory_refused();
	queues_refused();
	posts_refused();
	promise("what a child makes cannot use what it inherited");
	mixtures_refused();
	CHECK_ZERO(ibv_dealloc_pd(mine));
	CHECK_ZERO(ibv_close_device(r.context));
}

static void parent_goes_on(void)
{
	uint64_t word = 77, back = 0;

	promise("the parent's objects are what they were");
	CHECK_ZERO(ibv_memcpy_to_dm(dm, 0, &word, sizeof(word)));
	CHECK_ZERO(ibv_memcpy_from_dm(&back, dm, 0, sizeof(back)));
	CHECK(back == 77);
	CHECK_ZERO(ibv_destroy_srq(xsrq));
	CHECK_ZERO(ibv_close_xrcd(xrcd));
	CHECK_ZERO(ibv_destroy_rwq_ind_table(table));
	CHECK_ZERO(ibv_destroy_wq(wq));
	CHECK_ZERO(ibv_destroy_counters(counters));
	CHECK_ZERO(ibv_destroy_qp(qp));
	CHECK_ZERO(ibv_destroy_comp_cntr(cntr));
	CHECK_ZERO(ibv_dealloc_mw(mw));
	CHECK_ZERO(ibv_dealloc_dmah(dmah));
	CHECK_ZERO(ibv_dereg_mr(buf_mr));
	errno = 0;
	ibv_free_buf(buf);
	CHECK_EQ(errno, 0);
	CHECK_ZERO(ibv_dereg_mr(dm_mr));
	CHECK_ZERO(ibv_free_dm(dm));
	CHECK_ZERO(ibv_dereg_mr(null_mr));
	CHECK_ZERO(ibv_dereg_mr(mr));
}

int main(void)
{
	struct process child = {.sock = -1};

	watchdog(100);
	resources_open(&r, 64, false);
	make_memory();
	make_queues();
	fflush(NULL);
	child.pid = fork();
	if (child.pid == 0) {
		in_child();
		_exit(0);
	}
	CHECK(child.pid > 0);
	process_adopt(child.pid);
	process_expect_success(&child, PROCESS_PATIENCE_MS);
	parent_goes_on();
	resources_close(&r);
	return 0;
}
