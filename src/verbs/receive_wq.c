/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive work queues: ibv_create_wq(3), ibv_modify_wq(3), ibv_create_rwq_ind_table(3). */
#include "verbs/events_wait.h"
#include "verbs/face.h"
#include "verbs/slots.h"

#define FLAGS_KNOWN (IBV_WQ_FLAGS_RESERVED - 1)

static int check_init_attr(const struct ibv_wq_init_attr *attr)
{
	int err;

	if (!attr)
		return vb_refuse_null("create_wq", "wq_init_attr");
	if (!attr->pd || !attr->cq)
		return vb_refuse_null("create_wq", attr->pd ? "cq" : "pd");
	err = vb_check_mask("create_wq", "comp_mask", attr->comp_mask, IBV_WQ_INIT_ATTR_FLAGS);
	if (err || !(attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS))
		return err;
	err = vb_check_mask("create_wq", "create_flags", attr->create_flags, FLAGS_KNOWN);
	return err ? err
		   : vb_check_flags("create_wq", "create_flags", attr->create_flags,
				    IBV_WQ_FLAGS_CVLAN_STRIPPING);
}

struct ibv_wq *vb_slot_create_wq(struct ibv_context *ctx, struct ibv_wq_init_attr *attr)
{
	struct ibv_wq *wq = NULL;
	int err = check_init_attr(attr);

	if (!err)
		err = vb_ops(ctx)->create_wq(ctx, attr, &wq);
	return err ? vb_answer_null(err) : wq;
}

int vb_slot_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr)
{
	int err;

	if (!attr)
		return vb_answer(vb_refuse_null("modify_wq", "wq_attr"));
	err = vb_check_mask("modify_wq", "attr_mask", attr->attr_mask, IBV_WQ_ATTR_RESERVED - 1);
	if (!err && (attr->attr_mask & IBV_WQ_ATTR_FLAGS))
		err = vb_check_flags("modify_wq", "flags_mask", attr->flags_mask,
				     IBV_WQ_FLAGS_CVLAN_STRIPPING);
	if (!err)
		err = vb_ops(wq->context)->modify_wq(wq, attr);
	return vb_answer(err);
}

/* ibv_create_wq(), an inline function of the header, made mutex and cond when the queue was new. */
int vb_slot_destroy_wq(struct ibv_wq *wq)
{
	struct vb_events_got got = {0};
	const struct vb_ops *ops = vb_ops(wq->context);
	int err = ops->retire_wq(wq, &got);

	if (err)
		return vb_answer(err);
	vb_acks_wait((struct vb_acks){&wq->mutex, &wq->cond, &wq->events_completed}, got.async);
	pthread_cond_destroy(&wq->cond);
	pthread_mutex_destroy(&wq->mutex);
	ops->free_wq(wq);
	return 0;
}

struct ibv_rwq_ind_table *vb_slot_create_rwq_ind_table(struct ibv_context *ctx,
						       struct ibv_rwq_ind_table_init_attr *attr)
{
	struct ibv_rwq_ind_table *table = NULL;
	int err;

	if (!attr || !attr->ind_tbl)
		return vb_answer_null(
			vb_refuse_null("create_rwq_ind_table", attr ? "ind_tbl" : "init_attr"));
	err = vb_check_mask("create_rwq_ind_table", "comp_mask", attr->comp_mask, 0);
	if (!err)
		err = vb_ops(ctx)->create_rwq_ind_table(ctx, attr, &table);
	return err ? vb_answer_null(err) : table;
}

int vb_slot_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table)
{
	return vb_answer(vb_ops(table->context)->destroy_rwq_ind_table(table));
}
