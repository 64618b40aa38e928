/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sending a MAD. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/reason.h"
#include "device/gid.h"
#include "gsi/private.h"

int vb_gsi_send(const struct vb_gsi_mad *mad)
{
	struct vb_mad_item *item;
	union ibv_gid sgid;
	uint32_t ifindex;

	if (!atomic_load(&vb_gsi.number))
		return vb_refuse(ENOTCONN, VB_REASON_ARG, "connections: the process has no GSI");
	memcpy(sgid.raw, mad->sgid, sizeof(sgid.raw));
	ifindex = vb_gid_interface(&sgid);
	if (!ifindex)
		return vb_refuse(EADDRNOTAVAIL, VB_REASON_ARG,
				 "connections: no interface has the source address");
	if (!vb_gsi_is_near(mad->dgid))
		return vb_gsi_wire_send(mad, ifindex);
	item = vb_mad_item_new(mad, vb_clock_ns());
	if (!item)
		return vb_refuse(ENOBUFS, VB_REASON_NO_MEMORY, "connections: a datagram");
	item->mad.wire = false;
	item->mad.src_qpn = atomic_load(&vb_gsi.number);
	return vb_gsi_bring(item);
}
