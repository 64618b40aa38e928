/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the calls of room_calls.c find when they are made. */
#include "room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/check.h"
#include "support/qp_state.h"

uint8_t room_memory[ROOM_BYTES] __attribute__((aligned(4096)));

bool room_nothing(struct room *r)
{
	ibv_close_device(NULL); /* the log's first line */
	(void)r;
	return true;
}

bool room_with_list(struct room *r)
{
	room_nothing(r);
	r->list = ibv_get_device_list(NULL);
	return r->list && r->list[0];
}

static bool open_named(struct room *r, const char *name)
{
	if (!room_with_list(r))
		return false;
	for (struct ibv_device **d = r->list; *d && !r->ctx; d++) {
		if (!name || !strcmp(ibv_get_device_name(*d), name))
			r->ctx = ibv_open_device(*d);
	}
	ibv_free_device_list(r->list);
	r->list = NULL;
	r->pd = r->ctx ? ibv_alloc_pd(r->ctx) : NULL;
	return r->pd;
}

bool room_with_context(struct room *r)
{
	return open_named(r, getenv("VB_TEST_DEVICE"));
}

bool room_with_td(struct room *r)
{
	struct ibv_td_init_attr attr = {0};

	if (!room_with_context(r))
		return false;
	r->td = ibv_alloc_td(r->ctx, &attr);
	return r->td;
}

bool room_with_parent(struct room *r)
{
	struct ibv_parent_domain_init_attr attr = {0};

	if (!room_with_td(r))
		return false;
	attr.pd = r->pd;
	attr.td = r->td;
	r->parent = ibv_alloc_parent_domain(r->ctx, &attr);
	r->cq = ibv_create_cq(r->ctx, 16, NULL, NULL, 0);
	return r->parent && r->cq;
}

bool room_with_cq(struct room *r)
{
	if (!room_with_context(r))
		return false;
	r->cq = ibv_create_cq(r->ctx, 16, NULL, NULL, 0);
	return r->cq;
}

struct ibv_xrcd *room_xrcd_open(struct room *r, int fd)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = O_CREAT,
	};

	return ibv_open_xrcd(r->ctx, &attr);
}

bool room_with_xrcd(struct room *r)
{
	if (!room_with_cq(r))
		return false;
	r->xrcd = room_xrcd_open(r, -1);
	return r->xrcd;
}

bool room_with_file(struct room *r)
{
	if (!room_with_cq(r))
		return false;
	r->fd = memfd_create("room", MFD_CLOEXEC);
	return r->fd > 0 && !ftruncate(r->fd, ROOM_BYTES);
}

bool room_with_shared_xrcd(struct room *r)
{
	if (!room_with_file(r))
		return false;
	r->xrcd = room_xrcd_open(r, r->fd);
	return r->xrcd;
}

static struct ibv_qp_init_attr_ex qp_attr(struct room *r, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = r->parent ? r->parent : r->pd,
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.cap = {.max_send_wr = 256,
			.max_recv_wr = 256,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	if (type == IBV_QPT_XRC_RECV) {
		attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		attr.xrcd = r->xrcd;
	} else if (type != IBV_QPT_XRC_SEND) {
		attr.srq = r->srq;
	}
	return attr;
}

struct ibv_qp *room_qp_make(struct room *r, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(r, type);

	return ibv_create_qp_ex(r->ctx, &attr);
}

struct ibv_qp *room_qp_make_ex(struct room *r)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(r, IBV_QPT_RC);

	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	return ibv_create_qp_ex(r->ctx, &attr);
}

/*
 * After a queue pair of another type: closing a packet socket takes the kernel long, so this tries
 * nothing that those have tried.
 */
bool room_with_cq_of_loopback(struct room *r)
{
	struct ibv_qp *first;

	if (!open_named(r, "vb_lo"))
		return false;
	r->cq = ibv_create_cq(r->ctx, 16, NULL, NULL, 0);
	first = r->cq ? room_qp_make(r, IBV_QPT_RC) : NULL;
	return first && !ibv_destroy_qp(first);
}

bool room_with_receiver(struct room *r)
{
	if (!room_with_xrcd(r))
		return false;
	r->qp = room_qp_make(r, IBV_QPT_XRC_RECV);
	return r->qp;
}

bool room_with_shared_receiver(struct room *r)
{
	if (!room_with_shared_xrcd(r))
		return false;
	r->qp = room_qp_make(r, IBV_QPT_XRC_RECV);
	return r->qp;
}

static bool with_rc(struct room *r)
{
	if (!room_with_cq(r))
		return false;
	r->qp = room_qp_make(r, IBV_QPT_RC);
	return r->qp;
}

int room_to_init(struct room *r)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	return ibv_modify_qp(r->qp, &attr,
			     mask | (r->qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY
								  : IBV_QP_ACCESS_FLAGS));
}

int room_to_reset(struct room *r)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	return ibv_modify_qp(r->qp, &attr, IBV_QP_STATE);
}

bool room_with_rc_init(struct room *r)
{
	return with_rc(r) && !room_to_init(r);
}

bool room_with_ud(struct room *r)
{
	if (!room_with_cq(r))
		return false;
	r->qp = room_qp_make(r, IBV_QPT_UD);
	return r->qp;
}

bool room_with_raw(struct room *r)
{
	if (!room_with_cq_of_loopback(r))
		return false;
	r->qp = room_qp_make(r, IBV_QPT_RAW_PACKET);
	return r->qp;
}

struct ibv_wq *room_wq_make(struct room *r)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 512, .max_sge = 1, .pd = r->pd, .cq = r->cq};

	return ibv_create_wq(r->ctx, &attr);
}

bool room_with_wqs(struct room *r)
{
	if (!room_with_cq_of_loopback(r))
		return false;
	r->wq[0] = room_wq_make(r);
	r->wq[1] = room_wq_make(r);
	return r->wq[0] && r->wq[1];
}

struct ibv_rwq_ind_table *room_table_make(struct room *r)
{
	struct ibv_rwq_ind_table_init_attr attr = {.log_ind_tbl_size = 1, .ind_tbl = r->wq};

	return ibv_create_rwq_ind_table(r->ctx, &attr);
}

bool room_with_table(struct room *r)
{
	if (!room_with_wqs(r))
		return false;
	r->table = room_table_make(r);
	return r->table;
}

bool room_with_tag_srq(struct room *r)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.tm_cap = {.max_num_tags = 8, .max_ops = 8},
	};

	if (!room_with_cq(r))
		return false;
	attr.pd = r->pd;
	attr.cq = r->cq;
	r->srq = ibv_create_srq_ex(r->ctx, &attr);
	return r->srq;
}

bool room_with_dm(struct room *r)
{
	struct ibv_alloc_dm_attr attr = {.length = ROOM_BYTES};

	if (!room_with_context(r))
		return false;
	r->dm = ibv_alloc_dm(r->ctx, &attr);
	return r->dm;
}

bool room_with_buf(struct room *r)
{
	if (!room_with_context(r))
		return false;
	r->memory = ibv_alloc_buf(r->pd, ROOM_BYTES, &r->buf);
	return r->memory;
}

bool room_with_view(struct room *r)
{
	struct ibv_alloc_dm_attr attr = {.length = ROOM_BYTES};
	int fd;

	if (!room_with_context(r))
		return false;
	r->mr = ibv_reg_mr(r->pd, room_memory, ROOM_BYTES, ROOM_ALL_ACCESS);
	r->dm = ibv_alloc_dm(r->ctx, &attr);
	fd = dup(r->ctx->cmd_fd);
	r->view = fd < 0 ? NULL : ibv_import_device(fd);
	r->view_pd = r->view ? ibv_alloc_pd(r->view) : NULL;
	return r->mr && r->dm && r->view_pd;
}

bool room_with_spare_descriptor(struct room *r)
{
	if (!room_with_context(r))
		return false;
	r->made_fd = dup(r->ctx->cmd_fd);
	return r->made_fd > 0;
}

bool room_with_srq(struct room *r)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 16, .max_sge = 2}};

	if (!room_with_context(r))
		return false;
	r->srq = ibv_create_srq(r->pd, &attr);
	return r->srq;
}

static bool connect_with(struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = qp_attr_within(qp->context, peer);

	return !qp_step(qp, &attr, IBV_QPS_RTR) && !qp_step(qp, &attr, IBV_QPS_RTS);
}

bool room_with_two_rc(struct room *r)
{
	struct room other;

	if (!with_rc(r))
		return false;
	r->far_cq = ibv_create_cq(r->ctx, 16, NULL, NULL, 0);
	other = *r;
	other.cq = r->far_cq;
	r->far = r->far_cq ? room_qp_make(&other, IBV_QPT_RC) : NULL;
	return r->far;
}

bool room_connect(struct room *r)
{
	struct room other = {.qp = r->far};

	return !room_to_reset(r) && !room_to_reset(&other) && !room_to_init(r) &&
	       !room_to_init(&other) && connect_with(r->qp, r->far->qp_num) &&
	       connect_with(r->far, r->qp->qp_num);
}

/*
 * Only where there is such a device: the loopback device receives all frames without being asked
 * to.
 */
bool room_with_raw_of_ethernet(struct room *r)
{
	if (!with_rc(r))
		return false;
	ibv_destroy_qp(r->qp);
	r->qp = strcmp(ibv_get_device_name(r->ctx->device), "vb_lo")
			? room_qp_make(r, IBV_QPT_RAW_PACKET)
			: NULL;
	return r->qp;
}

int room_made(struct room *r, void *object)
{
	r->made = object;
	return object ? 0 : errno ? errno : -1;
}

void room_leave(struct room *r)
{
	if (r->mw)
		EXPECT_EQ(ibv_dealloc_mw(r->mw), 0);
	if (r->qp)
		EXPECT_EQ(ibv_destroy_qp(r->qp), 0);
	if (r->far)
		EXPECT_EQ(ibv_destroy_qp(r->far), 0);
	if (r->far_cq)
		EXPECT_EQ(ibv_destroy_cq(r->far_cq), 0);
	if (r->table)
		EXPECT_EQ(ibv_destroy_rwq_ind_table(r->table), 0);
	for (int i = 0; i < 2; i++) {
		if (r->wq[i])
			EXPECT_EQ(ibv_destroy_wq(r->wq[i]), 0);
	}
	if (r->srq)
		EXPECT_EQ(ibv_destroy_srq(r->srq), 0);
	if (r->cq)
		EXPECT_EQ(ibv_destroy_cq(r->cq), 0);
	if (r->xrcd)
		EXPECT_EQ(ibv_close_xrcd(r->xrcd), 0);
	if (r->mr)
		EXPECT_EQ(ibv_dereg_mr(r->mr), 0);
	if (r->dm)
		EXPECT_EQ(ibv_free_dm(r->dm), 0);
	if (r->buf)
		ibv_free_buf(r->buf);
	if (r->view_pd)
		EXPECT_EQ(ibv_dealloc_pd(r->view_pd), 0);
	if (r->view)
		EXPECT_EQ(ibv_close_device(r->view), 0);
	if (r->parent)
		EXPECT_EQ(ibv_dealloc_pd(r->parent), 0);
	if (r->td)
		EXPECT_EQ(ibv_dealloc_td(r->td), 0);
	if (r->pd)
		EXPECT_EQ(ibv_dealloc_pd(r->pd), 0);
	if (r->ctx)
		EXPECT_EQ(ibv_close_device(r->ctx), 0);
	if (r->list)
		ibv_free_device_list(r->list);
	if (r->fd)
		close(r->fd);
	if (r->peer)
		room_peer_end(r);
}
