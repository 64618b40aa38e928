/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Multicast groups of UD queue pairs. */
#ifndef VB_REMOTE_MCAST_H
#define VB_REMOTE_MCAST_H

#include <infiniband/verbs.h>
#include <stdint.h>

int vb_mcast_attach(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
int vb_mcast_detach(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

#endif
