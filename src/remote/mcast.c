/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Multicast (ibv_attach_mcast(3)): which queue pairs of the process are members of which group, and
 * delivery to them.
 *
 * The process's socket joins a group on an interface with the first member and leaves with the
 * last. The kernel gives a copy of each packet to every socket of the host that has joined, so no
 * packet is passed on between processes.
 */
#include "remote/mcast.h"

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
#include "process/limits.h"
#include "device/netdev.h"
#include "qp/qp.h"
#include "remote/deliver.h"
#include "remote/link.h"
#include "remote/qp.h"
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

/* The face has checked the type and the address. */
static int check(struct ibv_qp *qp)
{
	return vb_context_check(qp->context, VB_HANDLE_QP, qp->handle, qp, "qp");
}

/* IP_ADD_MEMBERSHIP, IP_DROP_MEMBERSHIP and their IPv6 counterparts. */
static int membership(const union ibv_gid *gid, uint32_t ifindex, bool join)
{
	unsigned int family = vb_udp_is_ipv4(gid->raw) ? VB_UDP_IPV4 : VB_UDP_IPV6;
	int fd = vb_udp_link_socket(family);
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

void vb_mcast_rejoin(bool ipv4)
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

static uint32_t interface_of(const struct vb_qp *qp)
{
	struct vb_link_state link;

	vb_device_link(vb_context_of(qp->u.qp.context)->device, &link);
	return (uint32_t)link.ifindex;
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

int vb_mcast_detach(struct ibv_qp *ibqp, const union ibv_gid *group, uint16_t lid)
{
	struct vb_qp *qp = vb_qp_of(ibqp);
	struct member **own;
	union ibv_gid wire;
	const union ibv_gid *gid = &wire;
	int err = check(ibqp);

	(void)lid;
	if (err)
		return err;
	vb_udp_gid_on_wire(wire.raw, group->raw);
	uint32_t ifindex = interface_of(qp);

	vb_mutex_take(&lock, VB_ORDER_GROUPS);
	uint32_t n = count(gid, ifindex, qp, &own);

	if (own) {
		struct member *m = *own;

		*own = m->next;
		free(m);
		qp->mcast_groups--;
		if (n == 1)
			(void)membership(gid, ifindex, false);
	}
	vb_mutex_release(&lock);
	if (!own)
		return vb_refuse(EINVAL, VB_REASON_ARG, "detach_mcast: qp 0x%x is not a member",
				 ibqp->qp_num);
	vb_udp_qp_drop_group(qp, gid->raw);
	return 0;
}

/* All groups that the queue pair is attached to. */
static void leave(struct ibv_qp *qp)
{
	for (;;) {
		union ibv_gid group;
		struct member *m;

		vb_mutex_take(&lock, VB_ORDER_GROUPS);
		for (m = members; m && m->qp != vb_qp_of(qp); m = m->next)
			;
		if (m)
			group = m->group;
		vb_mutex_release(&lock);
		if (!m || vb_mcast_detach(qp, &group, 0))
			return;
	}
}

int vb_mcast_attach(struct ibv_qp *ibqp, const union ibv_gid *group, uint16_t lid)
{
	struct vb_qp *qp = vb_qp_of(ibqp);
	struct member **own;
	union ibv_gid wire;
	const union ibv_gid *gid = &wire;
	int err = check(ibqp);

	(void)lid; /* has no meaning on Ethernet */
	if (err)
		return err;
	vb_udp_gid_on_wire(wire.raw, group->raw);
	err = vb_udp_qp_hold_group(qp, gid->raw);
	if (err)
		return err;
	uint32_t ifindex = interface_of(qp);

	vb_mutex_take(&lock, VB_ORDER_GROUPS);
	uint32_t n = count(gid, ifindex, qp, &own);
	bool again = own != NULL;

	/*
	 * Attaching again is no error and makes no second copy (IBA 11.2.8.1); adapters answer so.
	 */
	if (!again)
		err = join(qp, gid, ifindex, n == 0);
	qp->mcast_leave = leave;
	vb_mutex_release(&lock);
	if (err || again)
		vb_udp_qp_drop_group(qp, gid->raw);
	return err;
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

void vb_mcast_deliver(struct vb_engine *e, const struct vb_run *run, const uint8_t *payload,
		      uint32_t ifindex)
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
		vb_udp_deliver_process(e, &copy, payload);
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
