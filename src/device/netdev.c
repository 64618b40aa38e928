/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Network interfaces and addresses: two dumps over a route socket (rtnetlink(7)). */
#include "device/netdev.h"

#include <errno.h>
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/reason.h"
#include "base/sys.h"
#include "device/netlink.h"

#define MAX_ATTEMPTS 4 /* a dump during which something changed is to be repeated */

/* Adds one element at the end of *array. NULL if there is no memory. */
static void *append(void *array, uint32_t *count, size_t size)
{
	void **at = array;
	char *grown = *at;

	if ((*count & (*count - 1)) == 0) { /* at powers of two the array is full */
		grown = realloc(*at, (*count ? *count * 2 : 1) * size);
		if (!grown)
			return NULL;
		*at = grown;
	}
	grown += (*count)++ * size;
	memset(grown, 0, size);
	return grown;
}

static bool is_string(const struct vb_netlink_attr *attr)
{
	return attr->data && memchr(attr->data, '\0', attr->length);
}

static int on_link(const struct nlmsghdr *msg, void *data)
{
	struct vb_netdevs *n = data;
	struct vb_netlink_attr attr[IFLA_MTU + 1];
	struct ifinfomsg info;
	struct vb_netdev *dev;

	if (msg->nlmsg_type != RTM_NEWLINK)
		return 0;
	memcpy(&info, NLMSG_DATA(msg), sizeof(info));
	vb_netlink_attrs(msg, sizeof(info), attr, sizeof(attr) / sizeof(attr[0]));
	if (!is_string(&attr[IFLA_IFNAME]))
		return 0;
	dev = append(&n->dev, &n->num_dev, sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	strncpy(dev->name, attr[IFLA_IFNAME].data, sizeof(dev->name) - 1);
	dev->index = info.ifi_index;
	dev->flags = info.ifi_flags;
	if (attr[IFLA_MTU].length == sizeof(dev->mtu))
		memcpy(&dev->mtu, attr[IFLA_MTU].data, sizeof(dev->mtu));
	if (info.ifi_type == ARPHRD_ETHER && attr[IFLA_ADDRESS].length == sizeof(dev->mac)) {
		memcpy(dev->mac, attr[IFLA_ADDRESS].data, sizeof(dev->mac));
		dev->mac_length = sizeof(dev->mac);
	}
	return 0;
}

/*
 * An IPv6 address whose uniqueness is being checked, or was refuted, cannot be a source (RFC 4862,
 * 5.4).
 */
static bool usable(const struct ifaddrmsg *info)
{
	return !(info->ifa_flags & IFA_F_DADFAILED) &&
	       (!(info->ifa_flags & IFA_F_TENTATIVE) || (info->ifa_flags & IFA_F_OPTIMISTIC));
}

/*
 * IFA_LOCAL is the interface's own address where the two differ (point-to-point). IPv6 mostly has
 * IFA_ADDRESS only.
 */
static int on_address(const struct nlmsghdr *msg, void *data)
{
	struct vb_netdevs *n = data;
	struct vb_netlink_attr attr[IFA_LOCAL + 1];
	const struct vb_netlink_attr *own;
	struct ifaddrmsg info;
	struct vb_netaddr *addr;
	size_t length;

	if (msg->nlmsg_type != RTM_NEWADDR)
		return 0;
	memcpy(&info, NLMSG_DATA(msg), sizeof(info));
	if ((info.ifa_family != AF_INET && info.ifa_family != AF_INET6) || !usable(&info))
		return 0;
	length = info.ifa_family == AF_INET ? 4 : 16;
	vb_netlink_attrs(msg, sizeof(info), attr, sizeof(attr) / sizeof(attr[0]));
	own = &attr[attr[IFA_LOCAL].data ? IFA_LOCAL : IFA_ADDRESS];
	if (own->length != length)
		return 0;
	addr = append(&n->addr, &n->num_addr, sizeof(*addr));
	if (!addr)
		return -ENOMEM;
	addr->index = (int)info.ifa_index;
	if (length == 4)
		memset(addr->gid.raw + 10, 0xff, 2);
	memcpy(addr->gid.raw + 16 - length, own->data, length);
	return 0;
}

static int route_open(int *fd)
{
	struct sockaddr_nl own = {.nl_family = AF_NETLINK};
	int err;

	*fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (*fd < 0)
		return -errno;
	if (!bind(*fd, (const struct sockaddr *)&own, sizeof(own)))
		return 0;
	err = -errno;
	vb_sys_close(*fd);
	return err;
}

/* Reads one datagram of the kernel; datagrams of other processes (netlink(7)) are skipped. */
static ssize_t route_receive(int fd, void *buf, size_t size)
{
	struct sockaddr_nl from;
	struct iovec iov = {buf, size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t length;

	do {
		msg.msg_name = &from;
		msg.msg_namelen = sizeof(from);
		length = vb_sys_recvmsg(fd, &msg, 0);
	} while (length < 0 ? errno == EINTR : from.nl_pid != 0);
	if (length < 0)
		return -errno;
	return msg.msg_flags & MSG_TRUNC ? -ENOSPC : length;
}

static int ask(int fd, uint16_t type, uint32_t seq)
{
	struct {
		struct nlmsghdr head;
		struct rtgenmsg gen;
	} request = {
		.head.nlmsg_len = NLMSG_LENGTH(sizeof(request.gen)),
		.head.nlmsg_type = type,
		.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		.head.nlmsg_seq = seq,
		.gen.rtgen_family = AF_UNSPEC,
	};

	return vb_sys_send(fd, &request, request.head.nlmsg_len, 0) < 0 ? -errno : 0;
}

/* `seq` tells the dumps of one socket apart. */
static int dump(int fd, uint16_t type, uint32_t seq, size_t payload, vb_netlink_message *each,
		struct vb_netdevs *n)
{
	char buf[32768] __attribute__((aligned(8)));
	int done = ask(fd, type, seq);

	while (!done) {
		ssize_t length = route_receive(fd, buf, sizeof(buf));

		if (length < 0)
			return (int)length;
		done = vb_netlink_dump(buf, (size_t)length, seq, payload, each, n);
	}
	return done < 0 ? done : 0;
}

static int scan(struct vb_netdevs *n)
{
	int fd;
	int err = route_open(&fd);

	if (err)
		return err;
	err = dump(fd, RTM_GETLINK, 1, sizeof(struct ifinfomsg), on_link, n);
	if (!err)
		err = dump(fd, RTM_GETADDR, 2, sizeof(struct ifaddrmsg), on_address, n);
	vb_sys_close(fd);
	return err;
}

/* The errors that ibv_get_device_list(3) names: no right, not in this kernel, no memory. */
static int page_errno(int err)
{
	switch (err) {
	case EACCES:
		return EPERM;
	case EAFNOSUPPORT:
	case EPROTONOSUPPORT:
		return ENOSYS;
	case ENOBUFS:
		return ENOMEM;
	default:
		return err;
	}
}

int vb_netdevs_scan(struct vb_netdevs *n)
{
	int err = -EINTR;

	memset(n, 0, sizeof(*n));
	for (int i = 0; i < MAX_ATTEMPTS && err == -EINTR; i++) {
		vb_netdevs_free(n);
		err = scan(n);
	}
	if (!err)
		return 0;
	vb_netdevs_free(n);
	return vb_refuse(page_errno(-err), VB_REASON_SYSTEM, "list of network interfaces: %s",
			 strerror(-err));
}

void vb_netdevs_free(struct vb_netdevs *n)
{
	free(n->dev);
	free(n->addr);
	memset(n, 0, sizeof(*n));
}

const struct vb_netdev *vb_netdevs_find(const struct vb_netdevs *n, const char *name)
{
	for (uint32_t i = 0; i < n->num_dev; i++) {
		if (!strcmp(n->dev[i].name, name))
			return &n->dev[i];
	}
	return NULL;
}
