/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which queue pairs of the process are members of which multicast group. Thread-safe. The kernel
 * gives a copy of each packet to every socket of the host that has joined, so no packet is passed
 * on between processes.
 */
#ifndef VB_REMOTE_GROUPS_H
#define VB_REMOTE_GROUPS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_qp;
struct vb_run;

/*
 * While the family is held; groups as they travel (udp/address.h). 0; 1: it is a member already; or
 * -errno with the reason recorded.
 */
int vb_udp_group_add(struct vb_qp *qp, const union ibv_gid *gid, uint32_t ifindex);
/* False: it is no member. */
bool vb_udp_group_remove(struct vb_qp *qp, const union ibv_gid *gid, uint32_t ifindex);
/* *gid gets one of the groups of the queue pair. False: it is in none. */
bool vb_udp_group_of(const struct vb_qp *qp, union ibv_gid *gid);

/*
 * Calls `take` with a packet for the group run->path.dgid, which came on interface `ifindex`, for
 * each member that wants it; run->dest_qpn is the member's number.
 */
typedef void (*vb_udp_group_take)(void *arg, const struct vb_run *run);
void vb_udp_group_each(const struct vb_run *run, uint32_t ifindex, vb_udp_group_take take,
		       void *arg);

/* The family has a new receiving socket, which joins the groups of the queue pairs. */
void vb_udp_groups_rejoin(bool ipv4);

#endif
