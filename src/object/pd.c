/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Protection domains. */
#include "object/pd.h"

#include <errno.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/reason.h"
#include "object/context.h"
#include "object/passport.h"
#include "object/td.h"

uint32_t vb_pd_number(void)
{
	static _Atomic uint32_t last;
	uint32_t id;

	do {
		id = atomic_fetch_add(&last, 1) + 1;
	} while (!id);
	return id;
}

int vb_pd_get(struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct vb_context *c = vb_context_of(ctx);
	int err;

	vb_mutex_take(&c->lock, VB_ORDER_CONTEXT);
	err = vb_context_check(ctx, VB_HANDLE_PD, pd->handle, pd, "pd");
	if (!err)
		atomic_fetch_add(&vb_pd_of(pd)->users, 1);
	vb_mutex_release(&c->lock);
	return err;
}

void vb_pd_put(struct ibv_pd *pd)
{
	atomic_fetch_sub(&vb_pd_of(pd)->users, 1);
}

int vb_pd_alloc(struct ibv_context *ctx, struct ibv_pd **pd)
{
	struct vb_pd *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "no memory for a pd");
	p->id = vb_pd_number();
	p->pd.context = ctx;
	err = vb_context_add(ctx, VB_HANDLE_PD, p, &p->pd.handle);
	if (err) {
		free(p);
		return err;
	}
	vb_passport_put_pd(vb_context_of(ctx)->passport, p->pd.handle, p->id);
	*pd = &p->pd;
	return 0;
}

int vb_pd_dealloc(struct ibv_pd *pd)
{
	struct vb_context *c = vb_context_of(pd->context);
	uint32_t users;
	int err;

	vb_mutex_take(&c->lock, VB_ORDER_CONTEXT);
	err = vb_context_check(pd->context, VB_HANDLE_PD, pd->handle, pd, "pd");
	if (!err) {
		users = atomic_load(&vb_pd_of(pd)->users);
		if (users)
			err = vb_refuse(EBUSY, VB_REASON_BUSY,
					"dealloc_pd: pd %u still has %u objects", pd->handle,
					users);
		else
			err = vb_context_remove(pd->context, VB_HANDLE_PD, pd->handle, pd);
		if (!err)
			vb_passport_put_pd(c->passport, pd->handle, 0);
	}
	vb_mutex_release(&c->lock);
	if (err)
		return err;
	if (vb_pd_of(pd)->td)
		vb_td_put(vb_pd_of(pd)->td);
	if (vb_pd_of(pd)->base)
		vb_pd_put(vb_pd_of(pd)->base);
	free(vb_pd_of(pd));
	return 0;
}

/* The child has no objects on the domain so far. */
static void forked(void *object)
{
	atomic_store(&((struct vb_pd *)object)->users, 0);
}

const struct vb_object_type vb_pd_type = {
	.name = "pd",
	.limit = VB_MAX_PD,
	.survives = true,
	.forked = forked,
};
