/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The parts of the protocol's environment that have files of their own: the link and direct access. */
#ifndef VB_DEVICE_ENV_H
#define VB_DEVICE_ENV_H

#include "transport/env.h"

struct vb_cqe_more;
struct vb_qp;

/* env->recv_done, with what extended completion queues tell besides (may be NULL). */
void vb_env_recv_done(struct vb_tqp *t, const struct vb_recv_done *done,
		      const struct vb_cqe_more *more);

/* env_link.c */
void *vb_env_reserve(struct vb_tqp *t, const struct vb_send_wqe *wqe, uint32_t length);
void vb_env_commit(struct vb_tqp *t, const struct vb_send_wqe *wqe, const struct vb_run *run);

/*
 * Contact is made on the way to RTR, so that the first message need not wait for it, and so that one-sided requests work even if
 * the peer is stopped before. True: the answer is still to come, ask again.
 */
bool vb_env_seek(struct vb_qp *qp);

/* env_direct.c */
enum vb_direct vb_env_direct(struct vb_tqp *t, struct vb_send_wqe *wqe);
bool vb_env_direct_waits(struct vb_tqp *t, const struct vb_send_wqe *wqe, bool two_sided);

#endif
