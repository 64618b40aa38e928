/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * GIDs: the 128-bit addresses of ports, and the entries of a port's GID table.
 * Part of <infiniband/verbs.h>; not to be included alone.
 */
#ifndef INFINIBAND_VERBS_GID_H
#define INFINIBAND_VERBS_GID_H

/* Network byte order throughout. A RoCE v2 GID is an IPv6 address or a v4-mapped one. */
union ibv_gid {
	uint8_t raw[16];
	struct {
		__be64 subnet_prefix;
		__be64 interface_id;
	} global;
};

enum ibv_gid_type {
	IBV_GID_TYPE_IB,
	IBV_GID_TYPE_ROCE_V1,
	IBV_GID_TYPE_ROCE_V2,
};

/* One row of a GID table, as ibv_query_gid_ex(3) and ibv_query_gid_table(3) hand it out. */
struct ibv_gid_entry {
	union ibv_gid gid;
	uint32_t gid_index;
	uint32_t port_num;
	uint32_t gid_type;     /* enum ibv_gid_type */
	uint32_t ndev_ifindex; /* interface that carries the address, 0 if there is none */
};

#endif
