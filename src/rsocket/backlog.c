/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests are accepted as they come, so that a client is connected before the server calls
 * accept(2), as TCP does it. The child then waits in the backlog, which the listener and each child
 * on its way there share.
 */
#include "rsocket/listen.h"

#include <errno.h>
#include <stdlib.h>

#include "base/lock.h"
#include "rsocket/service.h"
#include "rsocket/table.h"

struct vb_rs_backlog {
	pthread_mutex_t mutex;
	uint32_t refs;
	bool open; /* the listener is there */
	uint32_t count;
	struct vb_rsocket *first, **last;
};

int vb_rs_backlog_open(struct vb_rsocket *rs)
{
	struct vb_rs_backlog *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	pthread_mutex_init(&b->mutex, NULL);
	b->refs = 1;
	b->open = true;
	b->last = &b->first;
	rs->backlog = b;
	return 0;
}

static void drop(struct vb_rsocket *rs)
{
	struct vb_rs_backlog *b = rs->backlog;

	rs->backlog = NULL;
	if (__atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL))
		return;
	pthread_mutex_destroy(&b->mutex);
	free(b);
}

void vb_rs_discard(struct vb_rsocket *child)
{
	vb_rs_service_remove(child);
	if (vb_rs_remove(child->fd, 0))
		vb_rs_free(child);
}

void vb_rs_backlog_close(struct vb_rsocket *rs, bool is_listener)
{
	struct vb_rsocket *child;

	if (is_listener) {
		vb_mutex_take(&rs->backlog->mutex, VB_ORDER_RS_BACKLOG);
		rs->backlog->open = false;
		vb_mutex_release(&rs->backlog->mutex);
		while ((child = vb_rs_backlog_pop(rs)))
			vb_rs_discard(child);
	}
	drop(rs);
}

void vb_rs_backlog_push(struct vb_rsocket *child)
{
	struct vb_rs_backlog *b = child->backlog;

	child->next = NULL;
	vb_mutex_take(&b->mutex, VB_ORDER_RS_BACKLOG);
	child->orphan = !b->open;
	if (b->open) {
		__atomic_store_n(b->last, child, __ATOMIC_RELEASE);
		b->last = &child->next;
		__atomic_store_n(&b->count, b->count + 1, __ATOMIC_RELEASE);
	}
	vb_mutex_release(&b->mutex);
}

struct vb_rsocket *vb_rs_backlog_pop(struct vb_rsocket *listener)
{
	struct vb_rs_backlog *b = listener->backlog;
	struct vb_rsocket *child;

	vb_mutex_take(&b->mutex, VB_ORDER_RS_BACKLOG);
	child = b->first;
	if (child) {
		__atomic_store_n(&b->first, child->next, __ATOMIC_RELEASE);
		if (!b->first)
			b->last = &b->first;
	}
	vb_mutex_release(&b->mutex);
	if (child)
		drop(child);
	return child;
}

bool vb_rs_backlog_has(const struct vb_rsocket *listener)
{
	return __atomic_load_n(&listener->backlog->first, __ATOMIC_ACQUIRE);
}

uint32_t vb_rs_backlog_count(const struct vb_rsocket *listener)
{
	return __atomic_load_n(&listener->backlog->count, __ATOMIC_ACQUIRE);
}

/* The child is of the listener's kind. */
static struct vb_rsocket *make_child(struct vb_rsocket *listener)
{
	struct vb_rsocket *child = vb_rs_alloc(listener->family, listener->type);

	if (!child)
		return NULL;
	child->options = listener->options;
	child->options.route = NULL;
	child->options.route_size = 0;
	child->backlog = listener->backlog;
	__atomic_add_fetch(&child->backlog->refs, 1, __ATOMIC_RELAXED);
	return child;
}

static int accept_request(struct vb_rsocket *child, const struct rdma_conn_param *asked)
{
	uint8_t hello[VB_RS_HELLO_SIZE];
	struct rdma_conn_param param = *asked;
	struct vb_rs_hello theirs;
	int err;

	err = vb_rs_hello_decode(&theirs, asked->private_data, asked->private_data_len);
	if (!err)
		err = vb_rs_open_channel(child);
	if (!err && rdma_migrate_id(child->id, child->channel))
		err = -errno;
	if (!err)
		err = vb_rs_open_stream(child, hello);
	if (err)
		return err;
	child->stream.peer = theirs;
	err = vb_rs_enter(child);
	if (err)
		return err;
	param.private_data = hello;
	param.private_data_len = sizeof(hello);
	vb_rs_set_state(child, VB_RS_ACCEPTING);
	if (!rdma_accept(child->id, &param))
		return 0;
	err = -errno;
	vb_rs_remove(child->fd, 0);
	return err;
}

void vb_rs_request(struct vb_rsocket *listener, struct rdma_cm_event *event)
{
	struct vb_rsocket *child = make_child(listener);

	if (!child) {
		rdma_reject(event->id, NULL, 0);
		rdma_destroy_id(event->id);
		return;
	}
	child->id = event->id;
	child->id->context = child;
	if (accept_request(child, &event->param.conn)) {
		rdma_reject(child->id, NULL, 0);
		vb_rs_free(child);
		return;
	}
	/* Its first event may have come before the thread looks. The thread finds it then. */
	if (vb_rs_service_add(child))
		vb_rs_discard(child);
}
