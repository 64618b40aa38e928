/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory windows as the program sees them: allocated and deallocated. */
#include "memory/mw.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/reason.h"
#include "object/context.h"
#include "object/pd.h"
#include "process/process.h"

static int make(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw)
{
	struct vb_node *node;
	struct vb_mw *m;
	int err = vb_process_node(&node);

	if (err)
		return err;
	m = calloc(1, sizeof(*m));
	if (!m)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "no memory for a window");
	m->mw.context = pd->context;
	m->mw.pd = vb_pd_own(pd);
	m->given = pd;
	m->mw.type = type;
	m->pd_id = vb_pd_of(pd)->id;
	err = vb_node_key_alloc(node, &m->key, &m->entry);
	if (err)
		goto free_window;
	m->mw.rkey = m->key;
	atomic_init(&m->tag, m->key);
	err = vb_mw_list(m);
	if (err)
		goto free_key;
	err = vb_context_add(pd->context, VB_HANDLE_MW, m, &m->mw.handle);
	if (err)
		goto unlist;
	*mw = &m->mw;
	return 0;
unlist:
	vb_mw_unlist(m);
free_key:
	vb_node_key_free(node, m->key);
free_window:
	free(m);
	return err;
}

int vb_mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw)
{
	int err;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return vb_refuse(EINVAL, VB_REASON_ARG, "alloc_mw: no window has type %d",
				 (int)type);
	err = vb_pd_get(pd->context, pd);
	if (err)
		return err;
	err = make(pd, type, mw);
	if (err)
		vb_pd_put(pd);
	return err;
}

/* The first half of deallocating: the key is made invalid, the object stays. */
static void revoke(struct ibv_mw *mw)
{
	uint32_t bound = vb_mw_unlist(vb_mw_of(mw));

	if (bound)
		vb_process_quiesce(0, bound);
}

int vb_mw_dealloc(struct ibv_mw *mw)
{
	struct vb_mw *m = vb_mw_of(mw);
	int err = vb_context_remove(mw->context, VB_HANDLE_MW, mw->handle, mw);

	if (err)
		return err;
	revoke(mw);
	vb_node_key_free(vb_process_node_started(), m->key);
	vb_pd_put(m->given);
	free(m);
	return 0;
}

static void end(struct vb_context *c, void *object, uint32_t handle)
{
	revoke(object);
	vb_context_remove(&c->vctx.context, VB_HANDLE_MW, handle, object);
}

const struct vb_object_type vb_mw_type = {
	.name = "mw",
	.limit = VB_MAX_MW,
	.end = end,
};
