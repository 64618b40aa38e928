/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pairs and the link between hosts: which sockets they hold, and what the link's nature sets
 * in the protocol.
 */
#ifndef VB_REMOTE_QP_H
#define VB_REMOTE_QP_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/run.h"

struct vb_engine;
struct vb_qp;

/* The link's functions of the same names (engine/link.h). */
int vb_udp_qp_path_check(struct vb_qp *qp, const struct vb_path *path, enum ibv_mtu mtu);
bool vb_udp_qp_lacks(const struct vb_qp *qp, const struct vb_path *path);
int vb_udp_qp_open(struct vb_qp *qp, const struct vb_path *path);
int vb_udp_qp_connect(struct vb_qp *qp, const struct ibv_ah_attr *ah, const struct vb_path *path);
/*
 * A datagram queue pair is about to receive. Where the port cannot be had, it reaches this host
 * alone.
 */
void vb_udp_qp_datagrams(struct vb_qp *qp);

/*
 * The sockets of a family stay open and are read by the engine from now on. Without its lock. Waits
 * 2.1 s at most, and only where VERBATIM_DOMAIN is set. 0, or -errno with the reason recorded.
 */
int vb_udp_engine_hold(struct vb_engine *engine, unsigned int family);

/*
 * Membership in a group: the sockets of its family stay open and are read for as long. Without the
 * engine's lock.
 */
int vb_udp_qp_hold_group(struct vb_qp *qp, const uint8_t gid[16]);
void vb_udp_qp_drop_group(struct vb_qp *qp, const uint8_t gid[16]);

/* link->tune: windows, which the granted buffer limits. */
void vb_udp_qp_tune(struct vb_qp *qp);

/* RESET, destroy: releases the sockets. */
void vb_udp_qp_release(struct vb_qp *qp);

/* remote/env.c: room for a run, and sending it. */
void *vb_udp_reserve(struct vb_qp *qp, uint32_t length);
void vb_udp_commit(struct vb_qp *qp, const struct vb_run *run);
/*
 * Between these two calls a run of one packet is held back for the acknowledgement that may follow
 * it; both are sent in one call.
 */
void vb_udp_pair_begin(struct vb_qp *qp);
void vb_udp_pair_end(struct vb_qp *qp);

#endif
