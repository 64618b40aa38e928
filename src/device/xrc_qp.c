/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* XRC receive queue pairs: bodies that run the protocol, and the handles through which programs see them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/context.h"
#include "device/cq.h"
#include "device/limits.h"
#include "device/process.h"
#include "device/qp.h"
#include "device/recv_queue.h"
#include "device/srq.h"
#include "device/udp_qp.h"
#include "device/xrc.h"

static struct vb_qp *zeroed(void)
{
	struct vb_qp *qp;

	if (posix_memalign((void **)&qp, 64, sizeof(*qp)))
		return NULL;
	memset(qp, 0, sizeof(*qp));
	qp->u.qp.qp_type = IBV_QPT_XRC_RECV;
	return qp;
}

/* Under vb_xrc_lock. A queue pair in RESET with a number of its own. */
static int body_new(struct vb_xrc_domain *d, struct ibv_context *ctx, struct vb_qp **out)
{
	struct vb_qp *body = zeroed();
	int err;

	if (!body)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "create_qp");
	body->u.qp.context = ctx;
	body->xrc = d;
	body->engine = d->engine;
	vb_qp_protocol_init(body, IBV_QPT_XRC_RECV);
	err = vb_recv_queue_init(&body->rq, NULL, 0, 0);
	if (!err)
		err = vb_process_start_progress();
	if (!err)
		err = vb_node_qpn_alloc(d->engine->node, &body->t.qpn, &body->pub);
	if (err) {
		free(body);
		return err;
	}
	body->u.qp.qp_num = body->t.qpn;
	vb_qp_table_add(body);
	vb_lock_take(&d->engine->lock);
	vb_engine_add_qp(d->engine, body);
	vb_qp_publish(body);
	body->xrc_next = d->bodies;
	d->bodies = body;
	vb_lock_release(&d->engine->lock);
	*out = body;
	return 0;
}

/* Under vb_xrc_lock, no handle left. */
static void body_destroy(struct vb_qp *body)
{
	struct vb_xrc_domain *d = body->xrc;
	uint32_t qpn = body->t.qpn;

	vb_qp_stop(body);
	vb_lock_take(&d->engine->lock);
	for (struct vb_qp **p = &d->bodies; *p; p = &(*p)->xrc_next) {
		if (*p == body) {
			*p = body->xrc_next;
			break;
		}
	}
	vb_lock_release(&d->engine->lock);
	vb_process_quiesce(qpn, 0);
	vb_node_qpn_free(d->engine->node, qpn);
	vb_recv_queue_fini(&body->rq);
	free(body);
}

static struct vb_qp *body_find(const struct vb_xrc_domain *d, uint32_t qpn)
{
	struct vb_qp *body = d->bodies;

	while (body && body->t.qpn != qpn)
		body = body->xrc_next;
	return body;
}

static void handle_attach(struct vb_qp *handle, struct vb_qp *body)
{
	handle->body = body;
	handle->xrc = body->xrc;
	handle->t.qpn = handle->u.qp.qp_num = body->t.qpn;
	vb_lock_take(&body->engine->lock);
	handle->next_handle = body->handles;
	body->handles = handle;
	handle->u.qp.state = (enum ibv_qp_state)body->t.state;
	vb_lock_release(&body->engine->lock);
}

static void handle_detach(struct vb_qp *handle)
{
	struct vb_qp *body = handle->body;

	vb_lock_take(&body->engine->lock);
	for (struct vb_qp **p = &body->handles; *p; p = &(*p)->next_handle) {
		if (*p == handle) {
			*p = handle->next_handle;
			break;
		}
	}
	vb_lock_release(&body->engine->lock);
}

/* A handle on a new queue pair (qpn 0), or on the one of that number. */
static int handle_make(struct ibv_context *ctx, struct ibv_xrcd *xrcd, void *qp_context,
		       uint32_t qpn, struct ibv_qp **out)
{
	struct vb_qp *handle, *body = NULL;
	int err = vb_xrcd_get(ctx, xrcd);

	if (err)
		return err;
	handle = zeroed();
	if (!handle) {
		vb_xrcd_put(vb_xrcd_of(xrcd));
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "create_qp");
	}
	handle->u.qp.context = ctx;
	handle->u.qp.qp_context = qp_context;
	handle->xrcd = vb_xrcd_of(xrcd);
	vb_qp_events_init(handle);
	err = vb_handle_add(&vb_context_of(ctx)->handles[VB_HANDLE_QP], handle,
			    &handle->u.qp.handle);
	if (!err) {
		pthread_mutex_lock(&vb_xrc_lock);
		if (qpn)
			body = body_find(handle->xrcd->domain, qpn);
		else
			err = body_new(handle->xrcd->domain, ctx, &body);
		if (!err && !body)
			err = vb_refuse(EINVAL, VB_REASON_ARG,
					"open_qp: the domain has no queue pair 0x%x", qpn);
		if (!err)
			handle_attach(handle, body);
		else
			vb_handle_remove(&vb_context_of(ctx)->handles[VB_HANDLE_QP],
					 handle->u.qp.handle, handle);
		pthread_mutex_unlock(&vb_xrc_lock);
	}
	if (err) {
		vb_xrcd_put(handle->xrcd);
		free(handle);
		return err;
	}
	*out = &handle->u.qp;
	return 0;
}

int vb_xrc_qp_create(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr, struct ibv_qp **qp)
{
	int err = handle_make(ctx, attr->xrcd, attr->qp_context, 0, qp);

	if (!err)
		attr->cap = (struct ibv_qp_cap){0};
	return err;
}

int vb_xrc_qp_open(struct ibv_context *ctx, const struct ibv_qp_open_attr *attr, struct ibv_qp **qp)
{
	const uint32_t needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
				IBV_QP_OPEN_ATTR_TYPE;
	uint32_t mask = attr->comp_mask;

	if ((mask & needed) != needed || (mask & ~(needed | IBV_QP_OPEN_ATTR_CONTEXT)))
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK,
				 "open_qp: comp_mask 0x%x, needed are NUM, XRCD and TYPE", mask);
	if (attr->qp_type != IBV_QPT_XRC_RECV)
		return vb_refuse(EINVAL, VB_REASON_ARG,
				 "open_qp: type %d, only XRC_RECV can be shared",
				 (int)attr->qp_type);
	if (!attr->xrcd || !attr->qp_num)
		return vb_refuse(EINVAL, VB_REASON_ARG, "open_qp: no %s",
				 attr->xrcd ? "qp_num" : "xrcd");
	return handle_make(ctx, attr->xrcd,
			   mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL, attr->qp_num,
			   qp);
}

int vb_xrc_qp_retire(struct vb_qp *handle, struct vb_events_got *got)
{
	struct vb_context *ctx = vb_context_of(handle->u.qp.context);
	int err = vb_handle_remove(&ctx->handles[VB_HANDLE_QP], handle->u.qp.handle, handle);

	if (err)
		return err;
	pthread_mutex_lock(&vb_xrc_lock);
	handle_detach(handle);
	if (!handle->body->handles)
		body_destroy(handle->body);
	pthread_mutex_unlock(&vb_xrc_lock);
	handle->body = NULL;
	for (int i = 0; i < VB_QP_EVENT_TYPES; i++)
		vb_event_queue_drop(&ctx->async, &handle->event[i]);
	*got = handle->got;
	return 0;
}

void vb_xrc_qp_free(struct vb_qp *handle)
{
	vb_xrcd_put(handle->xrcd);
	free(handle);
}

void vb_xrc_qp_event(struct vb_qp *body, enum ibv_event_type type)
{
	for (struct vb_qp *h = body->handles; h; h = h->next_handle)
		vb_event_queue_raise(&vb_context_of(h->u.qp.context)->async, &h->event[type]);
}

void vb_xrc_qp_clear(struct vb_qp *body)
{
	struct vb_xrc_domain *d = body->xrc;

	for (uint32_t place = 1, left = d->num_srqs; left && place < VB_XRC_SRQS; place++) {
		if (!d->srq[place])
			continue;
		vb_cq_remove_qp(d->srq[place]->cq, body);
		left--;
	}
}

void vb_xrc_bodies_rebase(struct vb_xrc_domain *d, struct ibv_context *ctx)
{
	vb_lock_take(&d->engine->lock);
	for (struct vb_qp *body = d->bodies; body; body = body->xrc_next)
		body->u.qp.context = ctx;
	vb_lock_release(&d->engine->lock);
}
