/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table of members, and the socket's memberships that follow from it: the socket joins a group
 * on an interface with the first member and leaves with the last.
 */
#include "remote/groups.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fork.h"
#include "base/lock.h"
#include "base/reason.h"
#include "object/context.h"
#include "device/device.h"
#include "qp/qp.h"
#include "remote/sockets.h"
#include "udp/address.h"

struct member {
	struct member *next;
	struct vb_qp *qp;
	uint32_t qpn;
	uint32_t ifindex;
	union ibv_gid group; /* as it travels */
};

/* Taken after engine locks and the drain lock; during delivery no lock is taken under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct member *members;

/* IP_ADD_MEMBERSHIP, IP_DROP_MEMBERSHIP and their IPv6 counterparts. */
static int membership(const union ibv_gid *gid, uint32_t ifindex, bool join)
{
	unsigned int family = vb_udp_is_ipv4(gid->raw) ? VB_UDP_IPV4 : VB_UDP_IPV6;
	int fd = vb_udp_socket(family);
	int result;

	if (fd < 0)
		return -EBADF;
	if (family == VB_UDP_IPV4) {
		struct ip_mreqn m = {.imr_ifindex = (int)ifindex};

		memcpy(&m.imr_multiaddr, gid->raw + 12, 4);
		result = setsockopt(fd, IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP,
				    &m, sizeof(m));
	} else {
		struct ipv6_mreq m = {.ipv6mr_interface = ifindex};

		memcpy(&m.ipv6mr_multiaddr, gid->raw, 16);
		result = setsockopt(fd, IPPROTO_IPV6, join ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &m,
				    sizeof(m));
	}
	return result ? -errno : 0;
}

void vb_udp_groups_rejoin(bool ipv4)
{
	vb_mutex_take(&lock, VB_ORDER_GROUPS);
	for (const struct member *m = members; m; m = m->next) {
		/* A second membership is refused, which does no harm. */
		if (vb_udp_is_ipv4(m->group.raw) == ipv4)
			(void)membership(&m->group, m->ifindex, true);
	}
	vb_mutex_release(&lock);
}

/*
 * With the lock: the number of members of the group on the interface. *own: the queue pair's place
 * in the list.
 */
static uint32_t count(const union ibv_gid *gid, uint32_t ifindex, const struct vb_qp *qp,
		      struct member ***own)
{
	uint32_t n = 0;

	*own = NULL;
	for (struct member **m = &members; *m; m = &(*m)->next) {
		if ((*m)->ifindex != ifindex || memcmp(&(*m)->group, gid, sizeof(*gid)))
			continue;
		n++;
		if ((*m)->qp == qp)
			*own = m;
	}
	return n;
}

/* With the lock. */
static int join(struct vb_qp *qp, const union ibv_gid *gid, uint32_t ifindex, bool first)
{
	struct member *m = calloc(1, sizeof(*m));
	int err = m && first ? membership(gid, ifindex, true) : 0;

	if (!m)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "attach_mcast: membership");
	if (err) {
		free(m);
		return vb_refuse(-err, VB_REASON_SYSTEM,
				 "attach_mcast: qp 0x%x: joining the group: %s", qp->t.qpn,
				 err == -EBADF ? "the process has no socket of the port now"
					       : strerror(-err));
	}
	m->qp = qp;
	m->qpn = qp->t.qpn;
	m->ifindex = ifindex;
	m->group = *gid;
	m->next = members;
	members = m;
	qp->mcast_groups++;
	return 0;
}

int vb_udp_group_add(struct vb_qp *qp, const union ibv_gid *gid, uint32_t ifindex)
{
	struct member **own;
	int result = 1;

	vb_mutex_take(&lock, VB_ORDER_GROUPS);
	uint32_t n = count(gid, ifindex, qp, &own);

	if (!own)
		result = join(qp, gid, ifindex, n == 0);
	vb_mutex_release(&lock);
	return result;
}

bool vb_udp_group_remove(struct vb_qp *qp, const union ibv_gid *gid, uint32_t ifindex)
{
	struct member **own;

	vb_mutex_take(&lock, VB_ORDER_GROUPS);
	uint32_t n = count(gid, ifindex, qp, &own);
	bool found = own != NULL;

	if (found) {
		struct member *m = *own;

		*own = m->next;
		free(m);
		qp->mcast_groups--;
		if (n == 1)
			(void)membership(gid, ifindex, false);
	}
	vb_mutex_release(&lock);
	return found;
}

bool vb_udp_group_of(const struct vb_qp *qp, union ibv_gid *gid)
{
	struct member *m;

	vb_mutex_take(&lock, VB_ORDER_GROUPS);
	for (m = members; m && m->qp != qp; m = m->next)
		;
	if (m)
		*gid = m->group;
	vb_mutex_release(&lock);
	return m != NULL;
}

/*
 * Whether the queue pair itself has sent this and does not want its own messages. Numbers alone are
 * not unique beyond this host.
 */
static bool unwanted(const struct vb_qp *qp, const struct vb_run *run)
{
	struct vb_device *dev = vb_context_of(qp->u.qp.context)->device;
	union ibv_gid gid;

	if (!qp->block_self || run->src_qpn != qp->t.qpn)
		return false;
	for (uint32_t i = 0; i < VB_GID_TABLE; i++) {
		if (vb_device_gid(dev, i, &gid, NULL) &&
		    !memcmp(gid.raw, run->path.sgid, sizeof(gid)))
			return true;
	}
	return false;
}

void vb_udp_group_each(const struct vb_run *run, uint32_t ifindex, vb_udp_group_take take,
		       void *arg)
{
	struct vb_run copy = *run;
	uint32_t reached = 0;

	vb_mutex_take(&lock, VB_ORDER_GROUPS);
	for (const struct member *m = members; m; m = m->next) {
		if (m->ifindex != ifindex || memcmp(m->group.raw, run->path.dgid, sizeof(m->group)))
			continue;
		reached++;
		if (unwanted(m->qp, run))
			continue;
		copy.dest_qpn = m->qpn;
		take(arg, &copy);
	}
	vb_mutex_release(&lock);
	if (!reached)
		vb_note(VB_REASON_DROP_QPN, "packet for a multicast group without members");
}

/* In a forked child: the members are the parent's. */
static void forked(void)
{
	pthread_mutex_init(&lock, NULL);
	members = NULL;
}

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);
