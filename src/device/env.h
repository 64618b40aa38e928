/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The parts of the protocol's environment that have files of their own: the link and direct access. */
#ifndef VB_DEVICE_ENV_H
#define VB_DEVICE_ENV_H

#include "transport/env.h"

/* env_link.c */
void *vb_env_reserve(struct vb_tqp *t, const struct vb_send_wqe *wqe, uint32_t length);
void vb_env_commit(struct vb_tqp *t, const struct vb_send_wqe *wqe, const struct vb_run *run);

/* env_direct.c */
enum vb_direct vb_env_direct(struct vb_tqp *t, struct vb_send_wqe *wqe);
bool vb_env_direct_waits(struct vb_tqp *t, const struct vb_send_wqe *wqe, bool two_sided);

#endif
