/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queues that the library makes for ids. */
#include "rdmacm/cq.h"

#include <errno.h>

#include "rdmacm/id.h"

int vb_cma_cq_one(struct vb_cma_id *id, uint32_t size, struct ibv_comp_channel **channel,
		  struct ibv_cq **cq)
{
	int err;

	*channel = ibv_create_comp_channel(id->pub.verbs);
	if (!*channel)
		return -errno;
	*cq = ibv_create_cq(id->pub.verbs, (int)size, id, *channel, 0);
	if (*cq)
		return 0;
	err = -errno;
	ibv_destroy_comp_channel(*channel);
	*channel = NULL;
	return err;
}

static int make_recv(struct vb_cma_id *id, struct ibv_qp_init_attr_ex *attr)
{
	int err;

	if (!attr->recv_cq)
		attr->recv_cq = id->pub.recv_cq;
	if (attr->recv_cq || !attr->cap.max_recv_wr)
		return 0;
	err = vb_cma_cq_one(id, attr->cap.max_recv_wr, &id->made_recv_channel, &id->made_recv_cq);
	if (err)
		return err;
	id->pub.recv_cq_channel = id->made_recv_channel;
	id->pub.recv_cq = id->made_recv_cq;
	attr->recv_cq = id->made_recv_cq;
	return 0;
}

static int make_send(struct vb_cma_id *id, struct ibv_qp_init_attr_ex *attr)
{
	int err;

	if (!attr->send_cq)
		attr->send_cq = id->pub.send_cq;
	if (attr->send_cq || !attr->cap.max_send_wr)
		return 0;
	err = vb_cma_cq_one(id, attr->cap.max_send_wr, &id->made_send_channel, &id->made_send_cq);
	if (err)
		return err;
	id->pub.send_cq_channel = id->made_send_channel;
	id->pub.send_cq = id->made_send_cq;
	attr->send_cq = id->made_send_cq;
	return 0;
}

int vb_cma_cq_make(struct vb_cma_id *id, struct ibv_qp_init_attr_ex *attr)
{
	int err = 0;

	if (attr->qp_type == IBV_QPT_XRC_RECV) {
		if (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd)
			attr->xrcd = vb_cma_place_xrcd(&id->place);
		if (!attr->xrcd)
			return -errno;
		attr->comp_mask = (attr->comp_mask & ~(uint32_t)IBV_QP_INIT_ATTR_PD) |
				  IBV_QP_INIT_ATTR_XRCD;
		return 0;
	}
	if (!attr->srq)
		attr->srq = id->pub.srq;
	if (attr->qp_type != IBV_QPT_XRC_SEND)
		err = make_recv(id, attr);
	if (!err)
		err = make_send(id, attr);
	if (err)
		vb_cma_cq_end(id);
	/* A side without work requests still needs a queue to name. */
	if (!attr->recv_cq && attr->qp_type != IBV_QPT_XRC_SEND)
		attr->recv_cq = attr->send_cq;
	if (!attr->send_cq)
		attr->send_cq = attr->recv_cq;
	return err;
}

static void end_one(struct ibv_cq **made, struct ibv_comp_channel **made_channel,
		    struct ibv_cq **shown, struct ibv_comp_channel **shown_channel)
{
	if (*made) {
		if (*shown == *made)
			*shown = NULL;
		ibv_destroy_cq(*made);
		*made = NULL;
	}
	if (*made_channel) {
		if (*shown_channel == *made_channel)
			*shown_channel = NULL;
		ibv_destroy_comp_channel(*made_channel);
		*made_channel = NULL;
	}
}

void vb_cma_cq_end(struct vb_cma_id *id)
{
	end_one(&id->made_recv_cq, &id->made_recv_channel, &id->pub.recv_cq,
		&id->pub.recv_cq_channel);
	end_one(&id->made_send_cq, &id->made_send_channel, &id->pub.send_cq,
		&id->pub.send_cq_channel);
}

void vb_cma_cq_end_srq(struct vb_cma_id *id)
{
	end_one(&id->made_srq_cq, &id->made_srq_channel, &id->pub.recv_cq,
		&id->pub.recv_cq_channel);
}
