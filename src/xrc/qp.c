/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * XRC receive queue pairs: bodies, which run the protocol, and handles, through which programs see
 * them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "object/context.h"
#include "engine/cq.h"
#include "process/limits.h"
#include "process/process.h"
#include "qp/env.h"
#include "qp/parts.h"
#include "qp/qp.h"
#include "engine/engine_channel.h"
#include "engine/engines.h"
#include "engine/recv_queue.h"
#include "engine/schedule.h"
#include "engine/srq.h"
#include "xrc/table.h"

static const struct vb_qp_kind private_body, shared_body;

static struct vb_qp *zeroed(const struct vb_qp_kind *kind, size_t own)
{
	struct vb_qp *qp;

	if (posix_memalign((void **)&qp, 64, sizeof(*qp)))
		return NULL;
	memset(qp, 0, sizeof(*qp));
	qp->kind = kind;
	qp->u.qp.qp_type = IBV_QPT_XRC_RECV;
	qp->own = calloc(1, own);
	if (qp->own)
		return qp;
	free(qp);
	return NULL;
}

static void handle_dispose(struct vb_qp *handle)
{
	vb_qp_parts_free(handle);
	free(handle->own);
	free(handle);
}

static void body_free(struct vb_qp *body)
{
	free(vb_xrc_shared_of(body));
	free(body->own);
	vb_qp_parts_free(body);
	free(body->t.resp.res);
	free(body);
}

/* Takes a receive of the queue that the request names. */
static struct vb_recv_wqe *recv_take(struct vb_tqp *t)
{
	struct vb_qp *body = vb_qp_of_tqp(t);

	body->recv_srq = vb_xrc_body_of(body)->srq;
	return vb_xrc_body_of(body)->srq ? vb_srq_take(vb_xrc_body_of(body)->srq) : NULL;
}

static const struct vb_env body_env = {
	.link = {VB_ENV_LINK},
	.memory = {VB_ENV_MEMORY, .scatter_response = vb_env_scatter_response},
	.queue =
		{
			VB_ENV_QUEUE,
			.send_done = vb_env_send_done,
			.srq_enter = vb_xrc_srq_enter,
			.recv_take = recv_take,
			.recv_untake = vb_env_recv_untake,
			.recv_scatter = vb_env_recv_scatter,
			.recv_done = vb_env_recv_done,
		},
};

static bool shared_alloc(struct vb_qp *body)
{
	struct vb_xrc_shared *s = calloc(1, sizeof(*s));

	vb_xrc_body_of(body)->shared = s;
	if (!s)
		return false;
	s->last = &s->first;
	body->pub = &s->unpublished;
	return true;
}

static struct vb_qp *body_alloc(struct vb_xrc_domain *d)
{
	struct vb_qp *body =
		zeroed(d->table ? &shared_body : &private_body, sizeof(struct vb_xrc_body));

	if (!body)
		return NULL;
	vb_xrc_body_of(body)->domain = d;
	body->u.qp.context = d->context;
	body->engine = d->engine;
	vb_qp_protocol_init(body, IBV_QPT_XRC_RECV);
	vb_recv_queue_init(&body->rq, NULL, 0, 0);
	/* Whichever process executes must find what another one remembered. */
	body->t.resp.res = calloc(VB_RESOURCES, sizeof(struct vb_resource));
	body->t.resp.res_slots = VB_RESOURCES;
	if (body->t.resp.res && !vb_qp_attrs_alloc(body) && (!d->table || shared_alloc(body)))
		return body;
	body_free(body);
	return NULL;
}

/* Engine's lock. */
static void body_link(struct vb_qp *body, uint32_t qpn)
{
	struct vb_xrc_domain *d = vb_xrc_body_of(body)->domain;

	body->t.qpn = body->u.qp.qp_num = qpn;
	if (vb_xrc_shared_of(body)) {
		vb_xrc_shared_of(body)->place = qpn % VB_XRC_QPS;
		/* Whatever the table says is new for this process. */
		vb_xrc_shared_of(body)->version = vb_xrc_place(d, qpn)->version - 1;
		vb_xrc_shared_of(body)->saves = vb_xrc_place(d, qpn)->saves - 1;
	}
	vb_engine_add_qp(d->engine, body);
	vb_xrc_body_of(body)->next = d->bodies;
	d->bodies = body;
}

struct vb_qp *vb_xrc_body(struct vb_xrc_domain *d, uint32_t qpn)
{
	struct vb_qp *body = d->bodies;

	while (body && body->t.qpn != qpn)
		body = vb_xrc_body_of(body)->next;
	return body;
}

struct vb_qp *vb_xrc_body_mirror(struct vb_xrc_domain *d, uint32_t qpn)
{
	struct vb_qp *body = vb_xrc_body(d, qpn);

	if (body)
		return body;
	if (__atomic_load_n(&vb_xrc_place(d, qpn)->qpn, __ATOMIC_ACQUIRE) != qpn)
		return NULL;
	body = body_alloc(d);
	if (body)
		body_link(body, qpn);
	return body;
}

void vb_xrc_body_settle_home(struct vb_qp *body)
{
	struct vb_page_qp *entry = vb_node_qp_entry(body->engine->node, body->t.qpn);

	if (!entry || vb_xrc_shared_of(body)->home)
		return;
	body->pub = entry;
	vb_xrc_shared_of(body)->home = true;
	vb_qp_table_add(body);
	vb_xrc_pull(body);
	vb_qp_ordinary_publish(body);
}

/* A queue pair of this process alone. */
static int private_new(struct vb_xrc_domain *d, struct vb_qp **out)
{
	struct vb_qp *body = body_alloc(d);
	uint32_t qpn;
	int err;

	if (!body)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "create_qp");
	err = vb_node_qpn_alloc(d->engine->node, &qpn, &body->pub);
	if (err) {
		body_free(body);
		return err;
	}
	body_link(body, qpn);
	vb_qp_table_add(body);
	vb_qp_publish(body);
	*out = body;
	return 0;
}

/* A queue pair that other processes may open. */
static int named_new(struct vb_xrc_domain *d, struct vb_qp **out)
{
	uint32_t qpn;
	int err = vb_xrc_table_lock(d);

	if (err)
		return err;
	err = vb_xrc_place_take(d, &qpn);
	if (!err) {
		*out = vb_xrc_body_mirror(d, qpn);
		if (!*out) {
			vb_xrc_place_drop(d, qpn);
			err = vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "create_qp");
		}
	}
	vb_xrc_table_unlock(d);
	if (!err)
		vb_xrc_body_settle_home(*out);
	return err;
}

static int named_open(struct vb_xrc_domain *d, uint32_t qpn, struct vb_qp **out)
{
	int err = vb_xrc_table_lock(d);

	if (err)
		return err;
	err = vb_xrc_place_hold(d, qpn);
	if (!err) {
		*out = vb_xrc_body_mirror(d, qpn);
		if (*out) {
			vb_xrc_shared_of(*out)->dropping = false;
			/*
			 * No other handle of this process has held it either, or there would be a
			 * body.
			 */
		} else {
			vb_xrc_place_drop(d, qpn);
			err = vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "open_qp");
		}
	}
	vb_xrc_table_unlock(d);
	if (!err) {
		vb_xrc_pull(*out);
		vb_xrc_meet(d);
	}
	return err;
}

static int private_open(struct vb_xrc_domain *d, uint32_t qpn, struct vb_qp **out)
{
	*out = vb_xrc_body(d, qpn);
	return *out ? 0
		    : vb_refuse(EINVAL, VB_REASON_ARG, "open_qp: the domain has no queue pair 0x%x",
				qpn);
}

static int body_get(struct vb_xrc_domain *d, uint32_t qpn, struct vb_qp **out)
{
	if (qpn)
		return d->table ? named_open(d, qpn, out) : private_open(d, qpn, out);
	return d->table ? named_new(d, out) : private_new(d, out);
}

/* Engine's lock; no handle is left. */
static void body_destroy(struct vb_qp *body)
{
	struct vb_xrc_domain *d = vb_xrc_body_of(body)->domain;
	uint32_t qpn = body->t.qpn;

	if (vb_xrc_shared_of(body)) {
		vb_xrc_forget_held(body);
		if (vb_xrc_shared_of(body)->home)
			vb_seats_merge(&d->news, &vb_xrc_shared_of(body)->handed);
	}
	vb_qp_stop(body);
	for (struct vb_qp **p = &d->bodies; *p; p = &vb_xrc_body_of(*p)->next) {
		if (*p == body) {
			*p = vb_xrc_body_of(body)->next;
			break;
		}
	}
	if (!vb_xrc_shared_of(body))
		vb_node_qpn_free(d->engine->node, qpn);
	vb_recv_queue_fini(&body->rq);
	body_free(body);
}

void vb_xrc_bodies_sweep(struct vb_xrc_domain *d, bool all)
{
	for (struct vb_qp *body = d->bodies, *next; body; body = next) {
		next = vb_xrc_body_of(body)->next;
		if (!vb_xrc_body_of(body)->handles && (all || vb_xrc_is_gone(body)))
			body_destroy(body);
	}
}

static void handle_attach(struct vb_qp *handle, struct vb_qp *body)
{
	vb_xrc_handle_of(handle)->body = body;
	handle->t.qpn = handle->u.qp.qp_num = body->t.qpn;
	vb_xrc_handle_of(handle)->next = vb_xrc_body_of(body)->handles;
	vb_xrc_body_of(body)->handles = handle;
	handle->u.qp.state = (enum ibv_qp_state)body->t.state;
}

/* Engine's lock. The last handle of this process ends the process's hold of the queue pair. */
static void handle_detach(struct vb_qp *handle)
{
	struct vb_qp *body = vb_xrc_handle_of(handle)->body;
	struct vb_xrc_domain *d = vb_xrc_body_of(body)->domain;

	for (struct vb_qp **p = &vb_xrc_body_of(body)->handles; *p;
	     p = &vb_xrc_handle_of(*p)->next) {
		if (*p == handle) {
			*p = vb_xrc_handle_of(handle)->next;
			break;
		}
	}
	if (vb_xrc_body_of(body)->handles)
		return;
	if (!d->table) {
		body_destroy(body);
		return;
	}
	if (!vb_xrc_table_try(d)) {
		/*
		 * The holder of the lock stands still and is not waited for. The place is given
		 * back when the lock can be had.
		 */
		vb_xrc_shared_of(body)->dropping = d->drops = true;
		vb_xrc_look_again();
		return;
	}
	uint32_t home = vb_xrc_place(d, body->t.qpn)->home;

	vb_xrc_place_drop(d, body->t.qpn);
	vb_xrc_table_unlock(d);
	if (!vb_xrc_is_gone(body))
		return;
	if (home < VB_COMMONS_SEATS)
		vb_seats_add(&d->news, home);
	body_destroy(body);
	vb_xrc_tell_news(d);
	vb_engine_flush(d->engine);
}

/* Makes a handle for a new queue pair (qpn 0), or for the one of that number. */
static int handle_make(struct ibv_context *ctx, struct ibv_xrcd *xrcd, void *qp_context,
		       uint32_t qpn, struct ibv_qp **out)
{
	struct vb_qp *handle, *body = NULL;
	struct vb_xrc_domain *d;
	int err = vb_xrcd_get(ctx, xrcd);

	if (err)
		return err;
	d = vb_xrcd_of(xrcd)->domain;
	handle = zeroed(&vb_xrc_handle, sizeof(struct vb_xrc_handle));
	err = handle ? vb_process_start_progress()
		     : vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "create_qp");
	if (!err)
		err = vb_qp_events_alloc(handle);
	if (!err)
		err = vb_context_add(ctx, VB_HANDLE_QP, handle, &handle->u.qp.handle);
	if (err)
		goto put;
	handle->u.qp.context = ctx;
	handle->u.qp.qp_context = qp_context;
	vb_xrc_handle_of(handle)->xrcd = vb_xrcd_of(xrcd);
	handle->engine = d->engine; /* posting to the handle is refused under its lock */
	vb_engine_take(d->engine);
	err = body_get(d, qpn, &body);
	if (!err)
		handle_attach(handle, body);
	vb_lock_release(&d->engine->lock);
	if (!err) {
		*out = &handle->u.qp;
		return 0;
	}
	vb_context_remove(ctx, VB_HANDLE_QP, handle->u.qp.handle, handle);
put:
	vb_xrcd_put(vb_xrcd_of(xrcd));
	if (handle)
		handle_dispose(handle);
	return err;
}

/*
 * Attributes that others have, this type has not: they belong to the queues that requests name (IBA
 * A14.2.2).
 */
static int check(const struct ibv_qp_init_attr_ex *attr)
{
	if (attr->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS))
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK,
				 "create_qp: comp_mask 0x%x, XRC_RECV takes XRCD alone",
				 attr->comp_mask);
	return 0;
}

static int create(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr, struct ibv_qp **qp)
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

static int handle_retire(struct vb_qp *handle, struct vb_events_got *got)
{
	struct vb_engine *e = vb_xrc_handle_of(handle)->body->engine;
	int err =
		vb_context_remove(handle->u.qp.context, VB_HANDLE_QP, handle->u.qp.handle, handle);

	if (err)
		return err;
	vb_engine_take(e);
	handle_detach(handle);
	vb_lock_release(&e->lock);
	vb_xrc_handle_of(handle)->body = NULL;
	vb_qp_events_end(handle, got);
	return 0;
}

static void handle_free(struct vb_qp *handle)
{
	vb_xrcd_put(vb_xrc_handle_of(handle)->xrcd);
	handle_dispose(handle);
}

void vb_xrc_handles_event(struct vb_qp *body, enum ibv_event_type type)
{
	for (struct vb_qp *h = vb_xrc_body_of(body)->handles; h; h = vb_xrc_handle_of(h)->next)
		vb_qp_raise(h, type);
}

static void body_event(struct vb_qp *body, enum ibv_event_type type)
{
	struct vb_xrc_domain *d = vb_xrc_body_of(body)->domain;

	vb_xrc_handles_event(body, type);
	if (!vb_xrc_shared_of(body))
		return;
	struct vb_xrc_qp_place *p = vb_xrc_place(d, vb_xrc_shared_of(body)->place);
	struct vb_xrc_seats others = {0};

	vb_seats_merge(&others, &p->holders);
	vb_seats_remove(&others, d->seat);
	VB_SEATS_EACH(seat, &others)
	{
		__atomic_or_fetch(&p->events[seat], 1u << type, __ATOMIC_ACQ_REL);
	}
	vb_seats_merge(&d->news, &others);
	vb_engine_make_runnable(d->engine, body);
}

/*
 * Completions of receives stay: they belong to the queue. Its program must learn of each receive
 * that was used, and need not know that another process has destroyed the queue pair.
 */
static void body_clear(struct vb_qp *body)
{
	struct vb_xrc_domain *d = vb_xrc_body_of(body)->domain;

	for (uint32_t place = 1, left = d->num_srqs; left && place < VB_XRC_SRQS; place++) {
		if (!d->srq[place])
			continue;
		vb_cq_disown(d->srq[place]->cq, &body->completions);
		left--;
	}
}

static struct vb_qp *handle_body(struct vb_qp *handle)
{
	return vb_xrc_handle_of(handle)->body;
}

static void shared_publish(struct vb_qp *body)
{
	vb_qp_ordinary_publish(body);
	vb_xrc_leave(body);
}

/* They are known only in a process in which the body has worked. */
static void shared_psns(const struct vb_qp *body, struct ibv_qp_attr *attr)
{
	if (body->psn_moved)
		vb_qp_ordinary_psns(body, attr);
}

const struct vb_qp_kind vb_xrc_handle = {
	.check = check,
	.create = create,
	.body = handle_body,
	.retire = handle_retire,
	.free = handle_free,
};

/* A receiver of this process alone. */
static const struct vb_qp_kind private_body = {
	.env = &body_env,
	.psns = vb_qp_ordinary_psns,
	.publish = vb_qp_ordinary_publish,
	.event = body_event,
	.clear = body_clear,
	.receive = vb_qp_ordinary_receive,
};

/* A receiver that other processes may open. */
static const struct vb_qp_kind shared_body = {
	.env = &body_env,
	.pull = vb_xrc_pull,
	.psns = shared_psns,
	.publish = shared_publish,
	.event = body_event,
	.clear = body_clear,
	.receive = vb_xrc_receive,
	.ran = vb_xrc_pump,
};

void vb_xrc_bodies_rebase(struct vb_xrc_domain *d, struct ibv_context *ctx)
{
	d->context = ctx;
	if (!d->engine)
		return;
	vb_engine_take(d->engine);
	for (struct vb_qp *body = d->bodies; body; body = vb_xrc_body_of(body)->next)
		body->u.qp.context = ctx;
	vb_lock_release(&d->engine->lock);
}
