/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A snapshot of the host's network interfaces and their addresses, as the kernel tells them over a
 * route socket.
 */
#ifndef VB_DEVICE_NETDEV_H
#define VB_DEVICE_NETDEV_H

#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_netdev {
	char name[IF_NAMESIZE];
	int index;
	unsigned int flags; /* IFF_* */
	uint32_t mtu;       /* bytes */
	uint8_t mac[6];
	uint8_t mac_length; /* 0 or 6; other kinds of hardware address are ignored */
};

struct vb_netaddr {
	int index;         /* of the interface */
	union ibv_gid gid; /* IPv4 addresses as ::ffff:a.b.c.d (IBA A17.4.4) */
};

struct vb_netdevs {
	struct vb_netdev *dev;
	/* In the kernel's order: the first address of an interface comes first. */
	struct vb_netaddr *addr;
	uint32_t num_dev, num_addr;
};

/* Fills *n, which vb_netdevs_free() frees. -errno with the reason recorded; *n is then empty. */
int vb_netdevs_scan(struct vb_netdevs *n);
void vb_netdevs_free(struct vb_netdevs *n);

const struct vb_netdev *vb_netdevs_find(const struct vb_netdevs *n, const char *name);

static inline bool vb_gid_is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !__builtin_memcmp(gid->raw, prefix, sizeof(prefix));
}

#endif
