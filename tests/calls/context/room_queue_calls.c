/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of calls that make queues, queue pairs, and what hangs on them. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "room_calls.h"
#include "support/qp_state.h"

/* Shared receive queues and work queues. */

static int create_srq(struct room *r)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 512, .max_sge = 2}};

	return room_made(r, ibv_create_srq(r->parent ? r->parent : r->pd, &attr));
}

static int create_srq_ex(struct room *r, enum ibv_srq_type type, uint32_t mask)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 512, .max_sge = 2},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     mask,
		.srq_type = type,
		.pd = r->pd,
		.cq = r->cq,
		.xrcd = r->xrcd,
		.tm_cap = {.max_num_tags = 8, .max_ops = 8},
	};

	return room_made(r, ibv_create_srq_ex(r->ctx, &attr));
}

static int create_xrc_srq(struct room *r)
{
	return create_srq_ex(r, IBV_SRQT_XRC, IBV_SRQ_INIT_ATTR_XRCD);
}

static int create_tag_srq(struct room *r)
{
	return create_srq_ex(r, IBV_SRQT_TM, IBV_SRQ_INIT_ATTR_TM);
}

static int destroy_srq(struct room *r)
{
	return ibv_destroy_srq(r->made);
}

static int resize_srq(struct room *r)
{
	struct ibv_srq_attr attr = {.max_wr = 4096};

	return ibv_modify_srq(r->srq, &attr, IBV_SRQ_MAX_WR);
}

static int resize_srq_back(struct room *r)
{
	struct ibv_srq_attr attr = {.max_wr = 16};

	return ibv_modify_srq(r->srq, &attr, IBV_SRQ_MAX_WR);
}

static int create_wq(struct room *r)
{
	return room_made(r, room_wq_make(r));
}

static int destroy_wq(struct room *r)
{
	return ibv_destroy_wq(r->made);
}

static int create_table(struct room *r)
{
	return room_made(r, room_table_make(r));
}

static int destroy_table(struct room *r)
{
	return ibv_destroy_rwq_ind_table(r->made);
}

/* Queue pairs. */

static int create_rc(struct room *r)
{
	return room_made(r, room_qp_make(r, IBV_QPT_RC));
}

static int create_rc_ex(struct room *r)
{
	return room_made(r, room_qp_make_ex(r));
}

static int attach_comp_cntr(struct room *r)
{
	struct ibv_comp_cntr_init_attr init = {0};
	struct ibv_qp_attach_comp_cntr_attr attr = {.op_mask = IBV_QP_ATTACH_COMP_CNTR_OP_SEND};
	int err = room_made(r, ibv_create_comp_cntr(r->ctx, &init));

	if (!err)
		err = ibv_qp_attach_comp_cntr(r->qp, r->made, &attr);
	if (err && r->made)
		ibv_destroy_comp_cntr(r->made);
	return err;
}

/* A counter stays attached until its queue pair ends. */
static int detach_comp_cntr(struct room *r)
{
	int err = ibv_destroy_qp(r->qp);

	if (!err)
		err = ibv_destroy_comp_cntr(r->made);
	r->qp = room_qp_make(r, IBV_QPT_RC);
	return err || !r->qp;
}

static int create_ud(struct room *r)
{
	return room_made(r, room_qp_make(r, IBV_QPT_UD));
}

static int create_xrc_send(struct room *r)
{
	return room_made(r, room_qp_make(r, IBV_QPT_XRC_SEND));
}

static int create_xrc_recv(struct room *r)
{
	return room_made(r, room_qp_make(r, IBV_QPT_XRC_RECV));
}

static int create_raw(struct room *r)
{
	return room_made(r, room_qp_make(r, IBV_QPT_RAW_PACKET));
}

static int create_spread(struct room *r)
{
	static uint8_t key[40];
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.pd = r->pd,
		.rwq_ind_tbl = r->table,
		.rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
				 .rx_hash_key_len = sizeof(key),
				 .rx_hash_key = key,
				 .rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4},
	};

	return room_made(r, ibv_create_qp_ex(r->ctx, &attr));
}

static int open_receiver(struct room *r)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = r->qp ? r->qp->qp_num : r->peer_number,
		.xrcd = r->xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return room_made(r, ibv_open_qp(r->ctx, &attr));
}

static int destroy_qp(struct room *r)
{
	return ibv_destroy_qp(r->made);
}

/* To a host of the documentation's network (RFC 5737): room_nothing is sent. */
static int connect_far(struct room *r)
{
	struct ibv_qp_attr attr = {
		.path_mtu = IBV_MTU_256,
		.dest_qp_num = 77,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};
	union ibv_gid gid;

	for (int i = 0; !ibv_query_gid(r->ctx, 1, i, &gid); i++) {
		if (gid.raw[10] == 0xff && gid.raw[11] == 0xff && !gid.raw[0])
			attr.ah_attr.grh.sgid_index = (uint8_t)i;
	}
	inet_pton(AF_INET6, "::ffff:203.0.113.7", &attr.ah_attr.grh.dgid);
	return qp_step(r->qp, &attr, IBV_QPS_RTR);
}

static int disconnect(struct room *r)
{
	int err = room_to_reset(r);

	return err ? err : room_to_init(r);
}

static union ibv_gid group(void)
{
	union ibv_gid gid;

	inet_pton(AF_INET6, "::ffff:239.1.2.3", &gid);
	return gid;
}

static int attach_mcast(struct room *r)
{
	union ibv_gid gid = group();

	return ibv_attach_mcast(r->qp, &gid, 0);
}

static int detach_mcast(struct room *r)
{
	union ibv_gid gid = group();

	return ibv_detach_mcast(r->qp, &gid, 0);
}

static int create_flow(struct room *r)
{
	struct ibv_flow_attr attr = {
		.type = IBV_FLOW_ATTR_ALL_DEFAULT, .size = sizeof(attr), .port = 1};

	return room_made(r, ibv_create_flow(r->qp, &attr));
}

static int create_group_flow(struct room *r)
{
	struct ibv_flow_attr attr = {
		.type = IBV_FLOW_ATTR_MC_DEFAULT, .size = sizeof(attr), .port = 1};

	return room_made(r, ibv_create_flow(r->qp, &attr));
}

static int destroy_flow(struct room *r)
{
	return ibv_destroy_flow(r->made);
}

static int completed(struct ibv_cq *cq)
{
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};

	while (!ibv_poll_cq(cq, 1, &wc)) /* the watchdog of no_room.c bounds it */
		;
	return wc.status == IBV_WC_SUCCESS ? 0 : EIO;
}

/* The first message makes the way to the peer; what that lacks at one time it gets at the next. */
static int send_message(struct room *r)
{
	struct ibv_recv_wr recv = {0}, *bad_recv;
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
			   *bad_send;
	int err = room_connect(r) ? ibv_post_recv(r->far, &recv, &bad_recv) : errno;

	if (!err)
		err = ibv_post_send(r->qp, &send, &bad_send);
	if (!err)
		err = completed(r->qp->send_cq);
	return err ? err : completed(r->far_cq);
}

static int disconnect_both(struct room *r)
{
	struct room other = {.qp = r->far};
	int err = room_to_reset(r);

	return err ? err : room_to_reset(&other);
}

const struct room_call room_queue_calls[] = {
	ROOM_CALL("create_srq", room_with_context, create_srq, destroy_srq,
		  .refused = ROOM_MEMORY | ROOM_MAPS),
	ROOM_CALL("create_srq, thread domain", room_with_parent, create_srq, destroy_srq,
		  .refused = ROOM_MEMORY | ROOM_MAPS),
	ROOM_CALL("create_srq, XRC", room_with_xrcd, create_xrc_srq, destroy_srq,
		  .refused = ROOM_MEMORY | ROOM_MAPS),
	ROOM_CALL("create_srq, XRC of a file", room_with_shared_xrcd, create_xrc_srq, destroy_srq,
		  .refused = ROOM_MEMORY | ROOM_MAPS),
	ROOM_CALL("create_srq, tag matching", room_with_cq, create_tag_srq, destroy_srq,
		  .refused = ROOM_MEMORY | ROOM_MAPS),
	ROOM_CALL("modify_srq", room_with_srq, resize_srq, resize_srq_back, .refused = ROOM_MAPS),
	ROOM_CALL("create_wq", room_with_cq, create_wq, destroy_wq,
		  .refused = ROOM_MEMORY | ROOM_MAPS),
	ROOM_CALL("create_rwq_ind_table", room_with_wqs, create_table, destroy_table,
		  .refused = ROOM_MEMORY),
	ROOM_CALL("create_qp, RC", room_with_cq, create_rc, destroy_qp,
		  .refused = ROOM_MEMORY | ROOM_MAPS | ROOM_DESCRIPTORS | ROOM_SYSTEM |
			     ROOM_THREADS),
	ROOM_CALL("create_qp, extended", room_with_cq, create_rc_ex, destroy_qp,
		  .refused = ROOM_MEMORY | ROOM_MAPS | ROOM_DESCRIPTORS | ROOM_SYSTEM |
			     ROOM_THREADS),
	ROOM_CALL("qp_attach_comp_cntr", room_with_rc_init, attach_comp_cntr, detach_comp_cntr,
		  .refused = ROOM_MEMORY),
	ROOM_CALL("create_qp, thread domain", room_with_parent, create_rc, destroy_qp,
		  .refused = ROOM_MEMORY | ROOM_MAPS | ROOM_DESCRIPTORS | ROOM_SYSTEM |
			     ROOM_THREADS),
	ROOM_CALL("create_qp, tag matching", room_with_tag_srq, create_rc, destroy_qp,
		  .refused = ROOM_MEMORY | ROOM_MAPS | ROOM_DESCRIPTORS | ROOM_SYSTEM |
			     ROOM_THREADS),
	ROOM_CALL("create_qp, UD", room_with_cq, create_ud, destroy_qp,
		  .refused = ROOM_MEMORY | ROOM_MAPS | ROOM_DESCRIPTORS | ROOM_SYSTEM |
			     ROOM_THREADS),
	ROOM_CALL("create_qp, XRC_SEND", room_with_cq, create_xrc_send, destroy_qp,
		  .refused = ROOM_MEMORY | ROOM_MAPS | ROOM_DESCRIPTORS | ROOM_SYSTEM |
			     ROOM_THREADS),
	ROOM_CALL("create_qp, XRC_RECV", room_with_xrcd, create_xrc_recv, destroy_qp,
		  .refused = ROOM_MEMORY | ROOM_MAPS | ROOM_DESCRIPTORS | ROOM_SYSTEM |
			     ROOM_THREADS),
	ROOM_CALL("create_qp, XRC_RECV of a file", room_with_shared_xrcd, create_xrc_recv,
		  destroy_qp, .refused = ROOM_MEMORY | ROOM_DESCRIPTORS | ROOM_SYSTEM),
	ROOM_CALL("create_qp, raw packet", room_with_cq_of_loopback, create_raw, destroy_qp,
		  .refused = ROOM_MEMORY | ROOM_MAPS | ROOM_DESCRIPTORS | ROOM_SYSTEM,
		  .other_errno = ENODEV, .slow = true),
	ROOM_CALL("create_qp, spread", room_with_table, create_spread, destroy_qp,
		  .refused = ROOM_MEMORY | ROOM_DESCRIPTORS | ROOM_SYSTEM, .other_errno = ENODEV,
		  .slow = true),
	ROOM_CALL("open_qp", room_with_receiver, open_receiver, destroy_qp, .refused = ROOM_MEMORY),
	ROOM_CALL("open_qp, of a file", room_with_shared_receiver, open_receiver, destroy_qp,
		  .refused = ROOM_MEMORY),
	ROOM_CALL("open_qp, of another process", room_with_receiver_of_peer, open_receiver,
		  destroy_qp, .refused = ROOM_MEMORY, .meets = true),
	ROOM_CALL("modify_qp, RTR to another host", room_with_rc_init, connect_far, disconnect,
		  .refused = ROOM_MEMORY | ROOM_MAPS | ROOM_DESCRIPTORS | ROOM_SYSTEM),
	ROOM_CALL("attach_mcast", room_with_ud, attach_mcast, detach_mcast,
		  .refused = ROOM_MEMORY | ROOM_MAPS | ROOM_DESCRIPTORS | ROOM_SYSTEM),
	ROOM_CALL("create_flow", room_with_raw, create_flow, destroy_flow,
		  .refused = ROOM_MEMORY | ROOM_DESCRIPTORS | ROOM_SYSTEM, .slow = true),
	ROOM_CALL("create_flow, groups", room_with_raw_of_ethernet, create_group_flow, destroy_flow,
		  .refused = ROOM_SYSTEM, .slow = true),
	ROOM_CALL("post_send, a first message", room_with_two_rc, send_message, disconnect_both,
		  .refused = 0, .slow = true),
	{.name = NULL},
};
