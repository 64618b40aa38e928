/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The way back to the sender of a datagram, read from its completion and the 40 bytes in front of
 * its payload. Pure: no device and no table is read.
 */
#ifndef VB_VERBS_AH_FROM_WC_H
#define VB_VERBS_AH_FROM_WC_H

#include <infiniband/verbs.h>

struct vb_wc_route {
	union ibv_gid sender;   /* destination of a reply */
	union ibv_gid receiver; /* own address, to be found in the GID table */
	uint32_t type;          /* enum ibv_gid_type of both */
	uint32_t flow_label;
	uint8_t traffic_class;
	uint8_t hop_limit;
};

/*
 * Reads the header: IPv6 or an InfiniBand GRH in all 40 bytes, or IPv4 in the last 20 (annex A17).
 * -EPROTONOSUPPORT: none of these. -EINVAL: the sender is a multicast group, which is impossible.
 */
int vb_wc_route_parse(const struct ibv_grh *grh, struct vb_wc_route *route);

/* Sets the attributes that the completion itself holds; all others become 0. */
void vb_ah_attr_local(const struct ibv_wc *wc, uint8_t port, struct ibv_ah_attr *attr);

/* Adds the global route. sgid_index is the index of route->receiver in the GID table. */
void vb_ah_attr_global(const struct vb_wc_route *route, uint8_t sgid_index,
		       struct ibv_ah_attr *attr);

#endif
