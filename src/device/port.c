/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Port attributes (ibv_query_port(3)). */
#include "device/port.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/reason.h"
#include "base/sys.h"
#include "device/device.h"
#include "process/limits.h"
#include "udp/mtu.h"

#define DEFAULT_PKEY  0xffff
/* The rate of memory at least, where the kernel knows no speed (lo, tunnels). */
#define UNKNOWN_MBPS  100000u
/* So old may a speed be; the state of links is refreshed as often. */
#define SPEED_NS      5000000ull
#define PHYS_DISABLED 3
#define PHYS_LINK_UP  5

struct rate {
	uint32_t mbps;
	uint8_t width; /* enum of ibv_port_attr.active_width */
	uint8_t speed; /* of one lane */
};

/*
 * IBA 14.2.5.6: LinkWidthActive 1, 2, 4, 16 = 1x, 4x, 8x, 2x; LinkSpeedActive 1 = 2.5, 4 = 10, 32 =
 * 25, 64 = 50, 128 = 100 Gb/s.
 */
static const struct rate rates[] = {
	{800000, 4, 128}, {400000, 2, 128}, {200000, 2, 64}, {100000, 2, 32},
	{50000, 16, 32},  {40000, 2, 4},    {25000, 1, 32},  {10000, 1, 4},
};

int vb_port_check(uint32_t port)
{
	if (port == VB_PORT)
		return 0;
	return vb_refuse(EINVAL, VB_REASON_ARG, "port %u: the device has port %u only", port,
			 VB_PORT);
}

enum ibv_mtu vb_port_mtu(uint32_t bytes)
{
	uint32_t fits = vb_udp_path_mtu(false, bytes);

	/*
	 * One value for both families, so that a queue pair can use it towards any peer. An
	 * interface that is too small for every value has none.
	 */
	for (int mtu = IBV_MTU_4096; mtu > IBV_MTU_256; mtu--) {
		if (fits == 128u << mtu)
			return (enum ibv_mtu)mtu;
	}
	return IBV_MTU_256;
}

static uint32_t read_speed(const struct vb_link_state *link)
{
	char path[64 + IF_NAMESIZE];
	char text[32];
	long mbps = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", link->ifname);
	fd = vb_sys_open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return UNKNOWN_MBPS;
	n = vb_sys_read(fd, text, sizeof(text) - 1);
	vb_sys_close(fd);
	if (n > 0) {
		text[n] = '\0';
		mbps = strtol(text, NULL, 10);
	}
	return mbps > 0 && mbps <= UINT32_MAX ? (uint32_t)mbps : UNKNOWN_MBPS;
}

/* Each connection asks for it several times. */
static uint32_t speed_mbps(struct vb_device *device, const struct vb_link_state *link)
{
	uint64_t now = vb_clock_ns(), at = atomic_load(&device->speed_at);

	if (!at || now - at > SPEED_NS) {
		atomic_store(&device->speed, read_speed(link));
		atomic_store(&device->speed_at, now);
	}
	return atomic_load(&device->speed);
}

/* The fastest known combination that is not faster than the link; the slowest is 1x of 2.5 Gb/s. */
static void set_rate(struct ibv_port_attr *attr, uint32_t mbps)
{
	attr->active_width = 1;
	attr->active_speed = 1;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		if (mbps >= rates[i].mbps) {
			attr->active_width = rates[i].width;
			attr->active_speed = rates[i].speed;
			return;
		}
	}
}

static void current_link(struct vb_device *device, struct vb_link_state *link)
{
	vb_device_refresh();
	vb_device_link(device, link);
}

int vb_port_query(struct vb_device *device, uint8_t port, struct ibv_port_attr *attr)
{
	struct vb_link_state link;
	int err = vb_port_check(port);

	if (err)
		return err;
	current_link(device, &link);
	memset(attr, 0, sizeof(*attr));
	attr->state = link.running ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	attr->phys_state = link.running ? PHYS_LINK_UP : PHYS_DISABLED;
	attr->max_mtu = IBV_MTU_4096;
	attr->active_mtu = vb_port_mtu(link.mtu);
	attr->gid_tbl_len = VB_GID_TABLE;
	attr->port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
	attr->max_msg_sz = (uint32_t)VB_MAX_MSG_BYTES;
	attr->bad_pkey_cntr = (uint32_t)vb_reason_count(VB_REASON_DROP_PKEY);
	attr->qkey_viol_cntr = (uint32_t)vb_reason_count(VB_REASON_DROP_QKEY);
	attr->pkey_tbl_len = VB_MAX_PKEYS;
	attr->max_vl_num = 1;
	attr->link_layer = IBV_LINK_LAYER_ETHERNET;
	attr->flags = IBV_QPF_GRH_REQUIRED;
	set_rate(attr, speed_mbps(device, &link));
	return 0;
}

int vb_port_query_speed(struct vb_device *device, uint32_t port, uint64_t *speed_100mbps)
{
	struct vb_link_state link;
	int err = vb_port_check(port);

	if (err)
		return err;
	current_link(device, &link);
	*speed_100mbps = speed_mbps(device, &link) / 100;
	return 0;
}

int vb_port_query_pkey(uint8_t port, int index, __be16 *pkey)
{
	int err = vb_port_check(port);

	if (err)
		return err;
	if (index < 0 || (unsigned int)index >= VB_MAX_PKEYS)
		return vb_refuse(EINVAL, VB_REASON_ARG, "query_pkey: index %d, the table has %u",
				 index, VB_MAX_PKEYS);
	*pkey = htobe16(DEFAULT_PKEY);
	return 0;
}

int vb_port_query_gid(struct vb_device *dev, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry)
{
	int err = vb_port_check(port);

	if (err)
		return err;
	if (index >= VB_GID_TABLE)
		return vb_refuse(EINVAL, VB_REASON_ARG, "query_gid: index %u, the table has %u",
				 index, VB_GID_TABLE);
	memset(entry, 0, sizeof(*entry));
	vb_device_refresh();
	if (!vb_device_gid(dev, index, &entry->gid, &entry->ndev_ifindex))
		return -ENODATA;
	entry->gid_index = index;
	entry->port_num = port;
	entry->gid_type = IBV_GID_TYPE_ROCE_V2;
	return 0;
}
