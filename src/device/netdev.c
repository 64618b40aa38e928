/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Network interfaces and addresses: two dumps over a route socket (rtnetlink(7)). */
#include "device/netdev.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/reason.h"
#include "base/sys.h"

#define MAX_ATTEMPTS 4 /* a dump during which something changed is to be repeated */

struct attributes {
	const struct nlattr *attr[IFLA_MTU + 1 > IFA_LOCAL + 1 ? IFLA_MTU + 1 : IFA_LOCAL + 1];
	uint16_t max;
};

static int keep_attribute(const struct nlattr *attr, void *data)
{
	struct attributes *a = data;
	uint16_t type = mnl_attr_get_type(attr);

	if (type <= a->max)
		a->attr[type] = attr;
	return MNL_CB_OK;
}

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

static int on_link(const struct nlmsghdr *msg, void *data)
{
	struct vb_netdevs *n = data;
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(msg);
	struct attributes a = {.max = IFLA_MTU};
	struct vb_netdev *dev;

	if (msg->nlmsg_type != RTM_NEWLINK)
		return MNL_CB_OK;
	mnl_attr_parse(msg, sizeof(*info), keep_attribute, &a);
	if (!a.attr[IFLA_IFNAME] || mnl_attr_validate(a.attr[IFLA_IFNAME], MNL_TYPE_NUL_STRING) < 0)
		return MNL_CB_OK;
	dev = append(&n->dev, &n->num_dev, sizeof(*dev));
	if (!dev)
		return MNL_CB_ERROR;
	strncpy(dev->name, mnl_attr_get_str(a.attr[IFLA_IFNAME]), sizeof(dev->name) - 1);
	dev->index = info->ifi_index;
	dev->flags = info->ifi_flags;
	if (a.attr[IFLA_MTU] && mnl_attr_validate(a.attr[IFLA_MTU], MNL_TYPE_U32) == 0)
		dev->mtu = mnl_attr_get_u32(a.attr[IFLA_MTU]);
	if (info->ifi_type == ARPHRD_ETHER && a.attr[IFLA_ADDRESS] &&
	    mnl_attr_get_payload_len(a.attr[IFLA_ADDRESS]) == sizeof(dev->mac)) {
		memcpy(dev->mac, mnl_attr_get_payload(a.attr[IFLA_ADDRESS]), sizeof(dev->mac));
		dev->mac_length = sizeof(dev->mac);
	}
	return MNL_CB_OK;
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
	const struct ifaddrmsg *info = mnl_nlmsg_get_payload(msg);
	struct attributes a = {.max = IFA_LOCAL};
	const struct nlattr *own;
	size_t length = info->ifa_family == AF_INET ? 4 : 16;
	struct vb_netaddr *addr;

	if (msg->nlmsg_type != RTM_NEWADDR ||
	    (info->ifa_family != AF_INET && info->ifa_family != AF_INET6) || !usable(info))
		return MNL_CB_OK;
	mnl_attr_parse(msg, sizeof(*info), keep_attribute, &a);
	own = a.attr[IFA_LOCAL] ? a.attr[IFA_LOCAL] : a.attr[IFA_ADDRESS];
	if (!own || mnl_attr_get_payload_len(own) != length)
		return MNL_CB_OK;
	addr = append(&n->addr, &n->num_addr, sizeof(*addr));
	if (!addr)
		return MNL_CB_ERROR;
	addr->index = (int)info->ifa_index;
	if (length == 4)
		memset(addr->gid.raw + 10, 0xff, 2);
	memcpy(addr->gid.raw + 16 - length, mnl_attr_get_payload(own), length);
	return MNL_CB_OK;
}

/*
 * A route socket and the port that the kernel knows it by. The functions of libmnl are cancellation
 * points and are not used.
 */
struct route {
	int fd;
	uint32_t port;
};

static int route_open(struct route *r)
{
	struct sockaddr_nl own = {.nl_family = AF_NETLINK};
	socklen_t length = sizeof(own);

	r->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (r->fd < 0)
		return -errno;
	if (!bind(r->fd, (const struct sockaddr *)&own, length) &&
	    !getsockname(r->fd, (struct sockaddr *)&own, &length)) {
		r->port = own.nl_pid;
		return 0;
	}
	int err = -errno;

	vb_sys_close(r->fd);
	return err;
}

/* Reads one datagram of the kernel; datagrams of other processes (netlink(7)) are skipped. */
static ssize_t route_receive(const struct route *r, void *buf, size_t size)
{
	struct sockaddr_nl from;
	struct iovec iov = {buf, size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t length;

	do {
		msg.msg_name = &from;
		msg.msg_namelen = sizeof(from);
		length = vb_sys_recvmsg(r->fd, &msg, 0);
	} while (length < 0 ? errno == EINTR : from.nl_pid != 0);
	if (length < 0)
		return -errno;
	return msg.msg_flags & MSG_TRUNC ? -ENOSPC : length;
}

static int dump(const struct route *route, uint16_t type, uint32_t seq, mnl_cb_t cb, void *data)
{
	char buf[32768] __attribute__((aligned(8)));
	struct nlmsghdr *msg = mnl_nlmsg_put_header(buf);
	struct rtgenmsg *gen;
	int more = MNL_CB_OK;

	msg->nlmsg_type = type;
	msg->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	msg->nlmsg_seq = seq;
	gen = mnl_nlmsg_put_extra_header(msg, sizeof(*gen));
	gen->rtgen_family = AF_UNSPEC;
	if (vb_sys_send(route->fd, msg, msg->nlmsg_len, 0) < 0)
		return -errno;
	while (more == MNL_CB_OK) {
		ssize_t len = route_receive(route, buf, sizeof(buf));

		if (len < 0)
			return (int)len;
		errno = ENOMEM; /* for a callback that finds no memory */
		more = mnl_cb_run(buf, (size_t)len, seq, route->port, cb, data);
	}
	return more < 0 ? -errno : 0;
}

static int scan(struct vb_netdevs *n)
{
	struct route route = {.fd = -1};
	int err = route_open(&route);

	if (err)
		return err;
	err = dump(&route, RTM_GETLINK, 1, on_link, n);
	if (!err)
		err = dump(&route, RTM_GETADDR, 2, on_address, n);
	vb_sys_close(route.fd);
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
