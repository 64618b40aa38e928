/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Contexts in a forked child: which process their objects belong to, and how they become the
 * child's.
 */
#include "base/fork.h"
#include "base/lock.h"
#include "object/context.h"
#include "device/device.h"
#include "object/passport.h"
#include "object/pd.h"
#include "object/td.h"

/*
 * A domain is a number, and serves the child's objects. It has none of these so far, except for the
 * domains that are counted on it.
 */
static void pd_use(void *object)
{
	const struct vb_pd *p = object;

	if (p->base)
		atomic_fetch_add(&vb_pd_of(p->base)->users, 1);
	if (p->td)
		p->td->users++;
}

/*
 * Writes the domain into the child's own passport, where others find it. A parent domain cannot be
 * imported.
 */
static void pd_tell(void *object)
{
	const struct vb_pd *p = object;

	if (!p->base)
		vb_passport_put_pd(vb_context_of(p->pd.context)->passport, p->pd.handle, p->id);
}

static void forked(struct vb_context *c)
{
	pthread_mutex_init(&c->lock, NULL);
	for (int t = 0; t < VB_HANDLE_TYPES; t++)
		vb_handle_forked(&c->handles[t]);
	c->forked = true;
	c->passport = NULL; /* the passport is the parent's and was not inherited */
	c->origin = NULL;
	c->face.ops = c->table->forked_ops;
	c->table->set_forked_slots(&c->vctx.context.ops);
	for (int t = 0; t < VB_HANDLE_TYPES; t++) {
		const struct vb_object_type *type = c->table->types[t];

		if (type && type->forked)
			vb_handle_each(&c->handles[t], type->forked);
		if (type && type->survives)
			continue;
		vb_handle_disown(&c->handles[t]);
		atomic_store(&c->device->objects[t], 0);
	}
	vb_handle_each(&c->handles[VB_HANDLE_PD], pd_use);
	atomic_store(&c->device->dm_bytes, 0);
}

/* The locks inside the objects may be held for ever, so they are not taken. */
static void in_child(void)
{
	vb_object_none_counted();
	vb_context_each(forked);
	vb_context_list_unlock();
}

/* The lock of the list is held across the fork, so the child finds the list whole. */
VB_FORK_HOOK(.phase = VB_FORK_CONTEXTS, .before = vb_context_list_lock,
	     .parent = vb_context_list_unlock, .child = in_child);

/*
 * The child gets an event queue and a command descriptor of its own. The numbers that it inherited
 * are left alone, because the program may have closed them and opened other files there.
 */
int vb_context_reopen(struct ibv_context *ctx)
{
	struct vb_context *c = vb_context_of(ctx);
	int err = 0;

	vb_mutex_take(&c->lock, VB_ORDER_CONTEXT);
	if (c->forked) {
		err = vb_context_attach(c);
		if (!err) {
			ctx->async_fd = c->async.fd;
			c->face.ops = c->table->ops;
			c->forked = false;
			vb_handle_each(&c->handles[VB_HANDLE_PD], pd_tell);
		}
	}
	vb_mutex_release(&c->lock);
	return err;
}
