/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Posting the bind of a memory window (memory/mw.h). */
#ifndef VB_QP_MW_POST_H
#define VB_QP_MW_POST_H

#include <infiniband/verbs.h>
#include <stdint.h>

struct vb_send_wqe;

/* ibv_bind_mw(3), with the checks of its inline form. */
int vb_mw_post_bind(struct ibv_qp *qp, struct ibv_mw *mw, const struct ibv_mw_bind *bind);
/*
 * Fills an entry with a bind of type 2. 0 or -EINVAL. Programs read the key from the window as soon
 * as the entry is posted; the function that posts it stores the key there.
 */
int vb_mw_fill(struct vb_send_wqe *wqe, struct ibv_mw *mw, uint32_t rkey,
	       const struct ibv_mw_bind_info *info);

#endif
