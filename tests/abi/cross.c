/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program that uses what compiled programs reach into: lists, queries, both kinds of queues, a
 * message from one QP to another and back through the builder. It is compiled against our headers
 * and against the installed ones, and run with both libraries.
 *
 * usage: cross [devices]: fails if fewer devices are listed; without any it ends after the list.
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(condition)                                                            \
	do {                                                                       \
		if (!(condition)) {                                                \
			fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, \
				strerror(errno));                                  \
			exit(1);                                                   \
		}                                                                  \
	} while (0)

enum { BYTES = 64, DEPTH = 8, SPIN = 200000000 };

static char buffer[2][BYTES];

static void show_device(struct ibv_context *ctx)
{
	struct ibv_device_attr plain;
	struct ibv_device_attr_ex attr;
	struct ibv_port_attr port;
	struct ibv_gid_entry table[64];
	union ibv_gid gid;
	ssize_t gids;

	MUST(!ibv_query_device(ctx, &plain));
	memset(&attr, 0xff, sizeof(attr));
	MUST(!ibv_query_device_ex(ctx, NULL, &attr));
	MUST(plain.node_guid == attr.orig_attr.node_guid && plain.max_qp == attr.orig_attr.max_qp);
	MUST(plain.phys_port_cnt == attr.orig_attr.phys_port_cnt);
	MUST(plain.max_qp > 1 && plain.phys_port_cnt >= 1);
	memset(&port, 0xff, sizeof(port));
	MUST(!ibv_query_port(ctx, 1, &port));
	MUST(port.link_layer == IBV_LINK_LAYER_ETHERNET && port.gid_tbl_len > 0);
	MUST(!ibv_query_gid(ctx, 1, 0, &gid));
	gids = ibv_query_gid_table(ctx, table, 64, 0);
	MUST(gids > 0 && !memcmp(&table[0].gid, &gid, sizeof(gid)));
	MUST(!ibv_query_gid_ex(ctx, 1, 0, &table[1], 0));
	MUST(!memcmp(&table[0], &table[1], sizeof(table[0])));
}

static void connect_qp(struct ibv_qp *qp, uint32_t peer, const union ibv_gid *gid)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	MUST(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = peer;
	attr.min_rnr_timer = 12;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = *gid;
	attr.ah_attr.grh.hop_limit = 1;
	MUST(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	MUST(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
	MUST(qp->state == IBV_QPS_RTS);
}

static void post_recv(struct ibv_qp *qp, const struct ibv_mr *mr, uint64_t wr_id)
{
	struct ibv_sge sge = {.addr = (uintptr_t)mr->addr, .length = BYTES, .lkey = mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	MUST(!ibv_post_recv(qp, &wr, &bad));
}

static void poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int found = 0;

	for (long i = 0; !found && i < SPIN; i++)
		found = ibv_poll_cq(cq, 1, wc);
	MUST(found == 1 && wc->status == IBV_WC_SUCCESS);
}

/* A SEND with immediate by ibv_post_send(); completions through the plain queue. */
static void there(struct ibv_qp *from, struct ibv_qp *to, struct ibv_mr **mr, struct ibv_cq *cq)
{
	struct ibv_sge sge = {.addr = (uintptr_t)buffer[0], .length = BYTES, .lkey = mr[0]->lkey};
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_wc wc;
	int seen = 0;

	post_recv(to, mr[1], 2);
	memset(buffer[0], 'a', BYTES);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.imm_data = 0x01020304;
	MUST(!ibv_post_send(from, &wr, &bad));
	while (seen != 3) {
		poll_one(cq, &wc);
		MUST(wc.wr_id == 1 || wc.wr_id == 2);
		seen |= (int)wc.wr_id;
		if (wc.wr_id == 1)
			continue;
		MUST(wc.opcode == IBV_WC_RECV && wc.byte_len == BYTES);
		MUST(wc.wc_flags == IBV_WC_WITH_IMM && wc.imm_data == 0x01020304);
		MUST(wc.qp_num == to->qp_num);
	}
	MUST(!memcmp(buffer[0], buffer[1], BYTES));
}

/* The way back: ibv_wr_send(), its completion through the readers of the extended queue. */
static void back(struct ibv_qp *from, struct ibv_qp *to, struct ibv_mr **mr, struct ibv_cq_ex *cqx,
		 struct ibv_cq *cq)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(from);
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_wc wc;
	int err = ENOENT;

	MUST(qpx && !ibv_qp_to_qp_ex(to));
	post_recv(to, mr[0], 3);
	memset(buffer[1], 'b', BYTES);
	ibv_wr_start(qpx);
	qpx->wr_id = 4;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, mr[1]->lkey, (uintptr_t)buffer[1], BYTES);
	MUST(!ibv_wr_complete(qpx));
	poll_one(cq, &wc);
	MUST(wc.wr_id == 3);
	MUST(!memcmp(buffer[0], buffer[1], BYTES));
	for (long i = 0; err == ENOENT && i < SPIN; i++)
		err = ibv_start_poll(cqx, &attr);
	MUST(!err && cqx->wr_id == 4 && cqx->status == IBV_WC_SUCCESS);
	MUST(ibv_wc_read_opcode(cqx) == IBV_WC_SEND);
	MUST(ibv_wc_read_qp_num(cqx) == from->qp_num);
	MUST(ibv_next_poll(cqx) == ENOENT);
	ibv_end_poll(cqx);
}

static void exchange(struct ibv_context *ctx)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, DEPTH, NULL, NULL, 0);
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = DEPTH, .wc_flags = IBV_WC_EX_WITH_QP_NUM};
	struct ibv_cq_ex *cqx = ibv_create_cq_ex(ctx, &cq_attr);
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
	struct ibv_qp_init_attr_ex init_ex = {.qp_type = IBV_QPT_RC, .pd = pd};
	volatile int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING;
	struct ibv_qp *qp[2];
	struct ibv_mr *mr[2];
	union ibv_gid gid;

	MUST(pd && cq && cqx && cq->cqe >= DEPTH);
	mr[0] = ibv_reg_mr(pd, buffer[0], BYTES, IBV_ACCESS_LOCAL_WRITE);
	mr[1] = ibv_reg_mr(pd, buffer[1], BYTES, access);
	MUST(mr[0] && mr[1] && mr[1]->length == BYTES);

	init.cap.max_send_wr = init.cap.max_recv_wr = DEPTH;
	init.cap.max_send_sge = init.cap.max_recv_sge = 1;
	qp[0] = ibv_create_qp(pd, &init);
	init_ex.send_cq = ibv_cq_ex_to_cq(cqx);
	init_ex.recv_cq = cq;
	init_ex.cap = init.cap;
	init_ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	init_ex.send_ops_flags = IBV_QP_EX_WITH_SEND;
	qp[1] = ibv_create_qp_ex(ctx, &init_ex);
	MUST(qp[0] && qp[1] && qp[0]->qp_num != qp[1]->qp_num);

	MUST(!ibv_query_gid(ctx, 1, 0, &gid));
	connect_qp(qp[0], qp[1]->qp_num, &gid);
	connect_qp(qp[1], qp[0]->qp_num, &gid);
	there(qp[0], qp[1], mr, cq);
	back(qp[1], qp[0], mr, cqx, cq);

	MUST(ibv_dealloc_pd(pd) == EBUSY);
	MUST(!ibv_destroy_qp(qp[0]) && !ibv_destroy_qp(qp[1]));
	MUST(!ibv_destroy_cq(cq) && !ibv_destroy_cq(ibv_cq_ex_to_cq(cqx)));
	MUST(!ibv_dereg_mr(mr[0]) && !ibv_dereg_mr(mr[1]) && !ibv_dealloc_pd(pd));
}

/*
 * A window of one domain and a region of the other, where one is the parent domain of the other.
 * The inline of rdma-core's header compares their pd itself.
 */
static void bind(struct ibv_qp *qp, struct ibv_cq *cq, struct ibv_pd *windows,
		 struct ibv_pd *regions)
{
	struct ibv_mw *mw = ibv_alloc_mw(windows, IBV_MW_TYPE_1);
	struct ibv_mr *mr =
		ibv_reg_mr(regions, buffer[0], BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw_bind bind = {.wr_id = 5, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;

	MUST(mw && mr);
	bind.bind_info.mr = mr;
	bind.bind_info.addr = (uintptr_t)buffer[0];
	bind.bind_info.length = BYTES;
	bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
	MUST(!(errno = ibv_bind_mw(qp, mw, &bind)));
	poll_one(cq, &wc);
	MUST(wc.wr_id == 5 && wc.opcode == IBV_WC_BIND_MW);
	MUST(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(mr));
}

static void parent_domains(struct ibv_context *ctx)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_parent_domain_init_attr attr = {.pd = pd};
	struct ibv_pd *parent = ibv_alloc_parent_domain(ctx, &attr);
	struct ibv_cq *cq = ibv_create_cq(ctx, DEPTH, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
	union ibv_gid gid;

	MUST(pd && parent && cq && !ibv_query_gid(ctx, 1, 0, &gid));
	init.cap.max_send_wr = init.cap.max_send_sge = 1;
	for (int i = 0; i < 2; i++) {
		struct ibv_qp *qp = ibv_create_qp(i ? pd : parent, &init);

		MUST(qp);
		connect_qp(qp, qp->qp_num, &gid);
		bind(qp, cq, pd, parent);
		bind(qp, cq, parent, pd);
		MUST(!ibv_destroy_qp(qp));
	}
	MUST(!ibv_destroy_cq(cq) && !ibv_dealloc_pd(parent) && !ibv_dealloc_pd(pd));
}

/* What the inlines answer for slots that a device may leave out; never a crash. */
static void ask_for_more(struct ibv_context *ctx)
{
	struct ibv_td_init_attr td = {0};
	struct ibv_alloc_dm_attr dm = {.length = 4096};

	errno = 0;
	if (!ibv_alloc_td(ctx, &td))
		MUST(errno == EOPNOTSUPP);
	errno = 0;
	if (!ibv_alloc_dm(ctx, &dm))
		MUST(errno == EOPNOTSUPP || errno == EINVAL);
}

int main(int argc, char **argv)
{
	int want = argc > 1 ? atoi(argv[1]) : 0, count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);
	struct ibv_context *ctx;

	MUST(count >= want);
	if (!list || !count) {
		if (list)
			ibv_free_device_list(list);
		printf("no device\n");
		return 0;
	}
	MUST(ibv_get_device_name(list[0]) == list[0]->name && ibv_get_device_guid(list[0]));
	ctx = ibv_open_device(list[0]);
	MUST(ctx && ctx->device == list[0] && ctx->num_comp_vectors > 0);
	printf("%s\n", ibv_get_device_name(list[0]));
	ibv_free_device_list(list);
	show_device(ctx);
	exchange(ctx);
	parent_domains(ctx);
	ask_for_more(ctx);
	MUST(!ibv_close_device(ctx));
	return 0;
}
