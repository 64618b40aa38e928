/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The GID table of a port: addresses of the interface at stable indices. */
#ifndef VB_DEVICE_GID_H
#define VB_DEVICE_GID_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "process/limits.h"

struct vb_device;

struct vb_gid_table {
	union ibv_gid gid[VB_GID_TABLE]; /* an unused entry keeps the last address that it held */
	bool used[VB_GID_TABLE];
	bool filled; /* the entry has held an address */
};

/*
 * Brings the table in line with the addresses `want`. An address that is gone leaves a hole. An
 * address that comes back gets its former index if that is free. A new address gets the lowest free
 * index. Index 0 is for IPv4, because some programs try only index 0; an interface that starts with
 * IPv6 alone has an IPv6 address there. One entry always stays free. Returns true if the table
 * changed. The caller holds the lock.
 */
bool vb_gid_table_update(struct vb_gid_table *t, const union ibv_gid *want, uint32_t count);

/* Whether this is an address of this host, in this network namespace. Thread-safe. */
bool vb_gid_is_local(const union ibv_gid *gid);
/*
 * The index of the interface that has this address, or had it within the last second; 0: none has
 * it. Thread-safe.
 */
uint32_t vb_gid_interface(const union ibv_gid *gid);
/* All of 127.0.0.0/8 is this host's (RFC 1122, 3.2.1.3). */
bool vb_gid_is_loopback(const union ibv_gid *gid);

#endif
