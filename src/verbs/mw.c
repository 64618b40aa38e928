/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory windows: ibv_alloc_mw(3), ibv_dealloc_mw(3), ibv_bind_mw(3), which programs reach through
 * the context.
 */
#include "verbs/face.h"
#include "verbs/slots.h"

struct ibv_mw *vb_slot_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *mw = NULL;
	int err = vb_ops(pd->context)->alloc_mw(pd, type, &mw);

	return err ? vb_answer_null(err) : mw;
}

int vb_slot_dealloc_mw(struct ibv_mw *mw)
{
	return vb_answer(vb_ops(mw->context)->dealloc_mw(mw));
}

int vb_slot_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	if (!qp || !bind)
		return vb_answer(vb_refuse_null("bind_mw", qp ? "mw_bind" : "qp"));
	return vb_answer(vb_ops(mw->context)->bind_mw(qp, mw, bind));
}
