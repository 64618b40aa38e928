/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Indirection tables: the low bits of a frame's hash choose one of the receive work queues. */
#include <errno.h>
#include <stdlib.h>

#include "base/reason.h"
#include "object/context.h"
#include "engine/cq.h"
#include "engine/engine.h"
#include "process/limits.h"
#include "raw/wq.h"
#include "raw/wq_private.h"
#include "host/node.h"

struct vb_rwq_table {
	struct ibv_rwq_ind_table table;
	uint32_t handle;
	uint32_t size; /* a power of two */
	_Atomic uint32_t users;
	struct vb_wq *wq[];
};

static struct vb_rwq_table *table_of(struct ibv_rwq_ind_table *table)
{
	return (struct vb_rwq_table *)(void *)table;
}

static int create_check(struct ibv_context *ctx, const struct ibv_rwq_ind_table_init_attr *attr)
{
	if (attr->log_ind_tbl_size > VB_MAX_LOG_RWQ_TABLE)
		return vb_refuse(EINVAL, VB_REASON_ARG_LIMIT,
				 "create_rwq_ind_table: log_ind_tbl_size %u exceeds %u",
				 attr->log_ind_tbl_size, VB_MAX_LOG_RWQ_TABLE);
	for (uint32_t i = 0; i < 1u << attr->log_ind_tbl_size; i++) {
		if (!attr->ind_tbl[i])
			return vb_refuse(EINVAL, VB_REASON_ARG,
					 "create_rwq_ind_table: entry %u is NULL", i);
		int err = vb_context_check(ctx, VB_HANDLE_WQ, attr->ind_tbl[i]->handle,
					   attr->ind_tbl[i], "wq");

		if (err)
			return err == -ENODEV ? err : -EINVAL;
	}
	return 0;
}

int vb_rwq_table_create(struct ibv_context *ctx, const struct ibv_rwq_ind_table_init_attr *attr,
			struct ibv_rwq_ind_table **table)
{
	int err = create_check(ctx, attr);
	uint32_t size = 1u << (attr->log_ind_tbl_size & 31);
	struct vb_rwq_table *t;

	if (err)
		return err;
	t = calloc(1, sizeof(*t) + size * sizeof(t->wq[0]));
	if (!t)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "create_rwq_ind_table");
	err = vb_context_add(ctx, VB_HANDLE_RWQ_TABLE, t, &t->handle);
	if (err) {
		free(t);
		return err;
	}
	t->size = size;
	for (uint32_t i = 0; i < size; i++) {
		t->wq[i] = vb_wq_of(attr->ind_tbl[i]);
		atomic_fetch_add(&t->wq[i]->tables, 1);
	}
	t->table.context = ctx;
	t->table.ind_tbl_handle = (int)t->handle;
	t->table.ind_tbl_num = (int)t->handle;
	*table = &t->table;
	return 0;
}

int vb_rwq_table_destroy(struct ibv_rwq_ind_table *table)
{
	struct vb_rwq_table *t = table_of(table);
	int err = vb_context_check(table->context, VB_HANDLE_RWQ_TABLE,
				   (uint32_t)table->ind_tbl_handle, t, "rwq_ind_table");

	if (err)
		return err;
	if (atomic_load(&t->users))
		return vb_refuse(EBUSY, VB_REASON_BUSY,
				 "destroy_rwq_ind_table: %u queue pairs use it",
				 atomic_load(&t->users));
	err = vb_context_remove(table->context, VB_HANDLE_RWQ_TABLE, t->handle, t);
	if (err)
		return err;
	for (uint32_t i = 0; i < t->size; i++)
		atomic_fetch_sub(&t->wq[i]->tables, 1);
	free(t);
	return 0;
}

struct vb_rwq_table *vb_rwq_table_get(struct ibv_context *ctx, struct ibv_rwq_ind_table *table)
{
	struct vb_rwq_table *t = table_of(table);

	if (vb_context_check(ctx, VB_HANDLE_RWQ_TABLE, (uint32_t)table->ind_tbl_handle, t,
			     "rwq_ind_table"))
		return NULL;
	atomic_fetch_add(&t->users, 1);
	return t;
}

void vb_rwq_table_put(struct vb_rwq_table *t)
{
	atomic_fetch_sub(&t->users, 1);
}

struct vb_cq *vb_rwq_table_cq(const struct vb_rwq_table *t)
{
	return t->wq[0]->cq;
}

int vb_rwq_table_attach(struct vb_rwq_table *t, struct vb_engine *engine)
{
	for (uint32_t i = 0; i < t->size; i++) {
		int err = vb_cq_attach(t->wq[i]->cq, engine);

		if (!err)
			continue;
		while (i--)
			vb_cq_detach(t->wq[i]->cq, engine);
		return err;
	}
	return 0;
}

void vb_rwq_table_detach(struct vb_rwq_table *t, struct vb_engine *engine)
{
	for (uint32_t i = 0; i < t->size; i++)
		vb_cq_detach(t->wq[i]->cq, engine);
}

bool vb_rwq_table_strips(const struct vb_rwq_table *t, uint32_t hash)
{
	return t->wq[hash & (t->size - 1)]->flags & IBV_WQ_FLAGS_CVLAN_STRIPPING;
}

bool vb_rwq_table_receive(struct vb_rwq_table *t, struct vb_engine *engine, uint32_t hash,
			  const void *data, uint32_t length, uint32_t flags,
			  struct vb_cqe_more *more)
{
	return vb_wq_receive(t->wq[hash & (t->size - 1)], vb_node_keyring(engine->node), data,
			     length, flags, more);
}

const struct vb_object_type vb_rwq_table_type = {
	.name = "rwq_ind_table",
	.limit = VB_MAX_RWQ_TABLE,
};
