/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attaching to and detaching from multicast groups (ibv_attach_mcast(3)). */
#include "remote/mcast.h"

#include <errno.h>

#include "base/reason.h"
#include "device/device.h"
#include "device/netdev.h"
#include "object/context.h"
#include "process/limits.h"
#include "qp/qp.h"
#include "remote/groups.h"
#include "remote/qp.h"
#include "udp/address.h"

/* The face has checked the type and the address. */
static int check(struct ibv_qp *qp)
{
	return vb_context_check(qp->context, VB_HANDLE_QP, qp->handle, qp, "qp");
}

static uint32_t interface_of(const struct vb_qp *qp)
{
	struct vb_link_state link;

	vb_device_link(vb_context_of(qp->u.qp.context)->device, &link);
	return (uint32_t)link.ifindex;
}

int vb_mcast_detach(struct ibv_qp *ibqp, const union ibv_gid *group, uint16_t lid)
{
	struct vb_qp *qp = vb_qp_of(ibqp);
	union ibv_gid gid;
	int err = check(ibqp);

	(void)lid;
	if (err)
		return err;
	vb_udp_gid_on_wire(gid.raw, group->raw);
	if (!vb_udp_group_remove(qp, &gid, interface_of(qp)))
		return vb_refuse(EINVAL, VB_REASON_ARG, "detach_mcast: qp 0x%x is not a member",
				 ibqp->qp_num);
	vb_udp_qp_drop_group(qp, gid.raw);
	return 0;
}

/* All groups that the queue pair is attached to. */
static void leave(struct ibv_qp *qp)
{
	union ibv_gid group;

	while (vb_udp_group_of(vb_qp_of(qp), &group) && !vb_mcast_detach(qp, &group, 0))
		;
}

int vb_mcast_attach(struct ibv_qp *ibqp, const union ibv_gid *group, uint16_t lid)
{
	struct vb_qp *qp = vb_qp_of(ibqp);
	union ibv_gid gid;
	int err = check(ibqp);

	(void)lid; /* has no meaning on Ethernet */
	if (err)
		return err;
	vb_udp_gid_on_wire(gid.raw, group->raw);
	err = vb_udp_qp_hold_group(qp, gid.raw);
	if (err)
		return err;
	qp->mcast_leave = leave;
	err = vb_udp_group_add(qp, &gid, interface_of(qp));
	if (err)
		vb_udp_qp_drop_group(qp, gid.raw);
	/*
	 * Attaching again is no error and makes no second copy (IBA 11.2.8.1); adapters answer so.
	 */
	return err < 0 ? err : 0;
}
