/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Multicast groups of UD queue pairs: ibv_attach_mcast(3). */
#include <netinet/in.h>
#include <string.h>

#include "verbs/face.h"

/*
 * True for an IPv6 group, and for an IPv4 group in the mapped form that RoCE v2 uses (annex A17).
 */
static bool gid_is_group(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (!memcmp(gid->raw, mapped, sizeof(mapped)))
		return (gid->raw[12] & 0xf0) == 0xe0;
	return gid->raw[0] == 0xff;
}

static int check(const char *verb, const struct ibv_qp *qp, const union ibv_gid *gid)
{
	if (!qp || !gid)
		return vb_refuse_null(verb, qp ? "gid" : "qp");
	if (qp->qp_type != IBV_QPT_UD)
		return vb_refuse(EINVAL, VB_REASON_ARG, "%s: qp 0x%x is not of type UD", verb,
				 qp->qp_num);
	if (!gid_is_group(gid))
		return vb_refuse(EINVAL, VB_REASON_ARG, "%s: the GID is no multicast group", verb);
	return 0;
}

VB_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	int err = check("attach_mcast", qp, gid);

	return vb_answer(err ? err : vb_ops(qp->context)->attach_mcast(qp, gid, lid));
}

VB_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	int err = check("detach_mcast", qp, gid);

	return vb_answer(err ? err : vb_ops(qp->context)->detach_mcast(qp, gid, lid));
}
