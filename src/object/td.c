/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Thread domains: ibv_alloc_td(3). */
#include "object/td.h"

#include <errno.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/reason.h"
#include "object/context.h"

int vb_td_alloc(struct ibv_context *ctx, struct ibv_td **td)
{
	struct vb_td *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "no memory for a thread domain");
	t->td.context = ctx;
	pthread_mutex_init(&t->lock, NULL);
	err = vb_context_add(ctx, VB_HANDLE_TD, t, &t->handle);
	if (err) {
		free(t);
		return err;
	}
	*td = &t->td;
	return 0;
}

int vb_td_dealloc(struct ibv_td *td)
{
	struct vb_context *c = vb_context_of(td->context);
	struct vb_td *t = vb_td_of(td);
	int err;

	vb_mutex_take(&c->lock, VB_ORDER_CONTEXT);
	err = vb_context_check(td->context, VB_HANDLE_TD, t->handle, t, "td");
	if (!err && t->users)
		err = vb_refuse(EBUSY, VB_REASON_BUSY, "dealloc_td: %u parent domains use it",
				t->users);
	if (!err)
		err = vb_context_remove(td->context, VB_HANDLE_TD, t->handle, t);
	vb_mutex_release(&c->lock);
	if (err)
		return err;
	if (t->engine)
		t->engine_end(t->engine);
	pthread_mutex_destroy(&t->lock);
	free(t);
	return 0;
}

int vb_td_get(struct ibv_context *ctx, struct ibv_td *td)
{
	struct vb_context *c = vb_context_of(ctx);
	int err;

	if (td->context != ctx)
		return vb_refuse(EINVAL, VB_REASON_ARG,
				 "alloc_parent_domain: the thread domain is of another context");
	vb_mutex_take(&c->lock, VB_ORDER_CONTEXT);
	err = vb_context_check(ctx, VB_HANDLE_TD, vb_td_of(td)->handle, td, "td");
	if (!err)
		vb_td_of(td)->users++;
	vb_mutex_release(&c->lock);
	return err;
}

void vb_td_put(struct vb_td *t)
{
	struct vb_context *c = vb_context_of(t->td.context);

	vb_mutex_take(&c->lock, VB_ORDER_CONTEXT);
	t->users--;
	vb_mutex_release(&c->lock);
}

/* The engine stays: completion queues that the program may still poll refer to it. */
static void end(struct vb_context *c, void *object, uint32_t handle)
{
	vb_context_remove(&c->vctx.context, VB_HANDLE_TD, handle, object);
}

/* The engine is the parent's. The child's engine is made with its first queue pair. */
static void forked(void *object)
{
	struct vb_td *t = object;

	t->engine = NULL;
	t->users = 0;
	pthread_mutex_init(&t->lock, NULL);
}

const struct vb_object_type vb_td_type = {
	.name = "td",
	.limit = VB_MAX_TD,
	.survives = true,
	.end = end,
	.forked = forked,
};
