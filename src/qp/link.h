/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A queue pair and the links (engine/link.h): which one it takes, and what all of them are told.
 * Under the engine's lock.
 */
#ifndef VB_QP_LINK_H
#define VB_QP_LINK_H

#include <stdbool.h>

#include "engine/link.h"
#include "transport/env.h"

struct vb_qp;

/*
 * The first link that reaches such a destination. `near`: the destination is an address of this
 * host.
 */
const struct vb_link *vb_qp_link_to(const struct vb_qp *qp, bool near);
/* Without a path: the last link of the list. */
void vb_qp_link_none(struct vb_qp *qp);
/* Sets what the protocol must know of the nature of qp->link. */
void vb_qp_link_tune(struct vb_qp *qp);
/* A datagram queue pair is about to receive. lacks and open as in engine/link.h. */
bool vb_qp_links_lack(const struct vb_qp *qp);
void vb_qp_links_open(struct vb_qp *qp);
void vb_qp_links_listen(struct vb_qp *qp);
/* RESET, destroy: every link releases what it holds. */
void vb_qp_links_release(struct vb_qp *qp);

/* env->link. */
void *vb_qp_link_reserve(struct vb_tqp *t, const struct vb_send_wqe *wqe, const struct vb_run *run);
void vb_qp_link_commit(struct vb_tqp *t, const struct vb_send_wqe *wqe, const struct vb_run *run);
enum vb_direct vb_qp_link_direct(struct vb_tqp *t, struct vb_send_wqe *wqe);
uint32_t vb_qp_link_direct_list(struct vb_tqp *t, struct vb_send_wqe *wqe);
bool vb_qp_link_lend(struct vb_tqp *t, struct vb_send_wqe *wqe, uint64_t offset, uint32_t length,
		     struct vb_lent *lent);
enum vb_fetch vb_qp_link_fetch(struct vb_tqp *t, struct vb_recv_wqe *recv, uint64_t offset,
			       const struct vb_run *run, uint64_t from, enum vb_reason *reason);
bool vb_qp_link_direct_waits(struct vb_tqp *t, const struct vb_send_wqe *wqe, bool two_sided);

#endif
