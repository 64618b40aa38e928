/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Binding a memory window by a call or a work request: the checks before it is posted. */
#include "qp/mw_post.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/reason.h"
#include "engine/send_wqe.h"
#include "memory/mw.h"
#include "object/context.h"
#include "object/pd.h"
#include "process/process.h"
#include "qp/qp.h"

#define TAG       0xffu
/* LOCAL_WRITE gives a peer no right; programs pass it all the same. */
#define BIND_BITS (VB_MW_RIGHTS | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED)

int vb_mw_fill(struct vb_send_wqe *wqe, struct ibv_mw *mw, uint32_t rkey,
	       const struct ibv_mw_bind_info *info)
{
	if (!mw || !info)
		return vb_refuse(EINVAL, VB_REASON_ARG, "bind: no %s", mw ? "range" : "window");
	if (info->mw_access_flags & ~(unsigned int)BIND_BITS)
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK, "bind: access flags 0x%x",
				 info->mw_access_flags);
	/*
	 * An adapter has only the key, and tells by the completion that there is no such window.
	 * What the handle does not name is not followed.
	 */
	if (vb_handle_valid(&vb_context_of(mw->context)->handles[VB_HANDLE_MW], mw->handle, mw))
		wqe->rkey = (vb_mw_of(mw)->key & ~TAG) | (rkey & TAG);
	else
		vb_send_wqe_fault(wqe, IBV_WC_MW_BIND_ERR, VB_REASON_BIND_WINDOW);
	wqe->region_key = info->mr ? info->mr->lkey : 0;
	wqe->remote_addr = info->addr;
	wqe->window_length = info->length;
	wqe->window_rights = info->mw_access_flags;
	return 0;
}

/*
 * ibv_bind_mw(3) with the checks of its inline form, because programs may have another copy of
 * that.
 */
static int check_bind(const struct ibv_mw *mw, const struct ibv_mw_bind_info *info)
{
	if (mw->type != IBV_MW_TYPE_1)
		return vb_refuse(EINVAL, VB_REASON_BIND_WINDOW,
				 "bind_mw: a window of type 2 is bound by a work request");
	if (!info->mr && (info->addr || info->length))
		return vb_refuse(EINVAL, VB_REASON_ARG, "bind_mw: a range, but no region");
	if (info->mr && !vb_pd_same(info->mr->pd, mw->pd))
		return vb_refuse(EPERM, VB_REASON_BIND_PD,
				 "bind_mw: window and region have different protection domains");
	if (info->mw_access_flags & IBV_ACCESS_ZERO_BASED)
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK,
				 "bind_mw: a window of type 1 is never zero-based");
	return 0;
}

/* A window of type 1 cannot be bound to a zero-based or null region (IBA 10.6.7.2.2). */
static int check_region(const struct ibv_mr *mr)
{
	const struct vb_key *k;

	if (!mr)
		return 0;
	k = &vb_node_keyring(vb_process_node_started())->key[vb_key_slot(mr->lkey)];
	if (__atomic_load_n(&k->key, __ATOMIC_ACQUIRE) == mr->lkey &&
	    (k->kind == VB_KEY_NULL || k->access & IBV_ACCESS_ZERO_BASED))
		return vb_refuse(EINVAL, VB_REASON_BIND_REGION, "bind_mw: mr key 0x%x is %s region",
				 mr->lkey, k->kind == VB_KEY_NULL ? "the null" : "a zero-based");
	return 0;
}

/* Under wr_lock. */
static int entry_fill(struct vb_qp *qp, struct vb_mw *m, const struct ibv_mw_bind *bind,
		      struct vb_send_batch *batch)
{
	struct vb_send_wqe *wqe = vb_send_wqe_next(qp, batch);
	int err;

	if (!wqe)
		return -ENOMEM;
	vb_send_wqe_begin(qp, wqe, bind->wr_id, IBV_WR_BIND_MW, bind->send_flags);
	err = vb_mw_fill(wqe, &m->mw, atomic_fetch_add(&m->tag, 1) + 1, &bind->bind_info);
	if (err)
		return err;
	wqe->window_rights |= VB_MW_BIND_TYPE_1;
	vb_send_wqe_bind(wqe, &m->mw, batch);
	batch->count = 1;
	return 0;
}

int vb_mw_post_bind(struct ibv_qp *ibqp, struct ibv_mw *mw, const struct ibv_mw_bind *bind)
{
	struct vb_qp *qp = vb_qp_of(ibqp);
	struct vb_send_batch batch = {.count = 0};
	int err = vb_context_check(mw->context, VB_HANDLE_MW, mw->handle, mw, "mw");

	if (!err)
		err = vb_context_check(ibqp->context, VB_HANDLE_QP, ibqp->handle, qp, "qp");
	if (!err)
		err = check_bind(mw, &bind->bind_info);
	if (!err)
		err = check_region(bind->bind_info.mr);
	if (err)
		return err;
	vb_lock_take(&qp->wr_lock);
	batch.first = vb_tqp_posted(&qp->t);
	err = entry_fill(qp, vb_mw_of(mw), bind, &batch);
	int refused = -vb_send_hand_over(qp, &batch);

	vb_lock_release(&qp->wr_lock);
	return refused ? refused : err;
}
