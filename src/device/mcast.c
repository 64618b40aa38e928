/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Multicast (ibv_attach_mcast(3)): the checks. No link carries group addresses yet, so that a correct call is answered
 * by EOPNOTSUPP, and nobody can be a member of a group.
 */
#include "device/mcast.h"

#include <errno.h>

#include "base/reason.h"
#include "device/context.h"
#include "device/netdev.h"

/* ff00::/8, or 224.0.0.0/4 as a v4-mapped address. */
static bool is_group(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xff || (vb_gid_is_ipv4(gid) && gid->raw[12] >> 4 == 0xe);
}

static int check(struct ibv_qp *qp, const union ibv_gid *gid, const char *what)
{
	int err = vb_context_check(qp->context, VB_HANDLE_QP, qp->handle, qp, "qp");

	if (err)
		return err;
	if (qp->qp_type != IBV_QPT_UD)
		return vb_refuse(EINVAL, VB_REASON_ARG, "%s: qp 0x%x is not of type UD", what,
				 qp->qp_num);
	if (!is_group(gid))
		return vb_refuse(EINVAL, VB_REASON_ARG, "%s: no group address (first byte 0x%02x)",
				 what, gid->raw[0]);
	return 0;
}

int vb_mcast_attach(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	int err = check(qp, gid, "attach_mcast");

	(void)lid; /* means nothing on Ethernet */
	if (err)
		return err;
	return vb_refuse(EOPNOTSUPP, VB_REASON_UNSUPPORTED,
			 "attach_mcast: no link carries multicast");
}

int vb_mcast_detach(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	int err = check(qp, gid, "detach_mcast");

	(void)lid;
	if (err)
		return err;
	return vb_refuse(EINVAL, VB_REASON_ARG, "detach_mcast: qp 0x%x is not a member",
			 qp->qp_num);
}
