/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Multicast groups of UD queue pairs. */
#ifndef VB_REMOTE_MCAST_H
#define VB_REMOTE_MCAST_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_engine;
struct vb_run;

int vb_mcast_attach(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
int vb_mcast_detach(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

/*
 * A packet for the group run->path.dgid came on interface `ifindex`: every member of this process
 * gets it. Engine's lock.
 */
void vb_mcast_deliver(struct vb_engine *engine, const struct vb_run *run, const uint8_t *payload,
		      uint32_t ifindex);

/* The family has a new receiving socket, which joins the groups of the queue pairs. */
void vb_mcast_rejoin(bool ipv4);

#endif
