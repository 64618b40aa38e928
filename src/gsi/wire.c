/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* MADs to and from other hosts: queue pair 1 on UDP. */
#include <errno.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/reason.h"
#include "base/sys.h"
#include "device/gid.h"
#include "engine/engine.h"
#include "gsi/private.h"
#include "host/descriptor.h"
#include "host/domain.h"
#include "object/ah.h"
#include "process/process.h"
#include "remote/qp.h"
#include "remote/senders.h"
#include "remote/sockets.h"
#include "transport/run.h"
#include "udp/address.h"
#include "udp/send.h"
#include "udp/socket.h"

/* Of all MADs: a flow of its own. */
#define SOURCE_PORT   0xd871u
/* One packet holds a MAD. */
#define PACKET_MTU    256u
/* Between attempts to get the port for listeners; they do not wait. Each pause is twice the last. */
#define SEEK_LEAST_NS 1000000000ull
#define SEEK_MOST_NS  32000000000ull

static unsigned int family_of(const uint8_t gid[16])
{
	return vb_udp_is_ipv4(gid) ? VB_UDP_IPV4 : VB_UDP_IPV6;
}

bool vb_gsi_is_near(const uint8_t gid[16])
{
	union ibv_gid g;

	memcpy(g.raw, gid, sizeof(g.raw));
	return (vb_gid_is_loopback(&g) || vb_gid_interface(&g)) && !vb_ah_udp_only();
}

/* Under `opening`. A family is held until the process ends. */
static int family_hold(unsigned int family)
{
	int err;

	if (atomic_load(&vb_gsi.families) & family)
		return 0;
	err = vb_udp_engine_hold(atomic_load(&vb_gsi.engine), family);
	if (err)
		return err;
	atomic_fetch_or(&vb_gsi.families, family);
	vb_gsi_watch_soon();
	return 0;
}

/* Under `opening`: both families, as far as they can be had. Others' ports are tried again later. */
static int hold_all(void)
{
	int err4 = family_hold(VB_UDP_IPV4), err6 = family_hold(VB_UDP_IPV6);
	uint32_t lacks = (err4 == -EADDRINUSE ? VB_UDP_IPV4 : 0) |
			 (err6 == -EADDRINUSE ? VB_UDP_IPV6 : 0);

	/* Where users share the port, the thread of the sockets asks for one (remote/link.c). */
	if (lacks && !vb_domain_is_named() && lacks & ~atomic_fetch_or(&vb_gsi.lacks, lacks)) {
		vb_log(VB_LOG_WARN,
		       "connections: listeners hear this host alone; the port of the others is asked for again and again, after %u s at first",
		       (unsigned int)(SEEK_LEAST_NS / 1000000000u));
		vb_gsi_wake();
	}
	return err4 ? err4 : err6;
}

/* Without a search for the holder, which takes time. */
static bool port_is_free(unsigned int family)
{
	uint32_t buffer;
	int fd = vb_udp_open_receiver(family == VB_UDP_IPV4, &buffer);

	if (fd >= 0)
		vb_sys_close(fd);
	return fd >= 0;
}

static void seek(unsigned int family)
{
	if (!(atomic_load(&vb_gsi.families) & family)) {
		if (!port_is_free(family) || !vb_mutex_try(&vb_gsi.opening, VB_ORDER_GSI))
			return;
		int err = family_hold(family);

		vb_mutex_release(&vb_gsi.opening);
		if (err)
			return;
	}
	atomic_fetch_and(&vb_gsi.lacks, ~family);
	vb_log(VB_LOG_WARN, "connections: listeners hear other hosts by IPv%d now",
	       family == VB_UDP_IPV4 ? 4 : 6);
}

uint64_t vb_gsi_reach_serve(uint64_t now)
{
	uint32_t lacks = atomic_load_explicit(&vb_gsi.lacks, memory_order_relaxed);

	if (!lacks)
		return 0;
	if (vb_gsi.seek_at && now < vb_gsi.seek_at)
		return vb_gsi.seek_at;
	for (unsigned int family = VB_UDP_IPV4; vb_gsi.seek_at && family <= VB_UDP_IPV6; family++) {
		if (lacks & family)
			seek(family);
	}
	if (!vb_gsi.seek_at)
		vb_gsi.seek_pause = SEEK_LEAST_NS;
	else if (vb_gsi.seek_pause < SEEK_MOST_NS)
		vb_gsi.seek_pause *= 2;
	vb_gsi.seek_at = atomic_load(&vb_gsi.lacks) ? now + vb_gsi.seek_pause : 0;
	return vb_gsi.seek_at;
}

int vb_gsi_reach(const uint8_t gid[16])
{
	static const uint8_t all[16];
	bool both = !memcmp(gid, all, sizeof(all));
	int err;

	if (!atomic_load(&vb_gsi.number))
		return vb_refuse(ENOTCONN, VB_REASON_ARG, "connections: the process has no GSI");
	if (!both && vb_gsi_is_near(gid))
		return 0;
	vb_mutex_take(&vb_gsi.opening, VB_ORDER_GSI);
	err = both ? hold_all() : family_hold(family_of(gid));
	vb_mutex_release(&vb_gsi.opening);
	return err;
}

int vb_gsi_hold_now(const uint8_t gid[16])
{
	unsigned int family = family_of(gid);
	int err;

	if (atomic_load(&vb_gsi.families) & family)
		return 0;
	/* Other users may be asked for the port, which takes time. */
	if (vb_domain_is_named() || !atomic_load(&vb_gsi.engine) ||
	    !vb_mutex_try(&vb_gsi.opening, VB_ORDER_GSI))
		return -EAGAIN;
	err = family_hold(family);
	vb_mutex_release(&vb_gsi.opening);
	return err;
}

int vb_gsi_wire_send(const struct vb_gsi_mad *mad, uint32_t ifindex)
{
	unsigned int family = family_of(mad->dgid);
	struct vb_udp_sender *sender;
	struct vb_path path = {
		.flow_label = mad->flow_label,
		.traffic_class = mad->traffic_class,
		.hop_limit = mad->hop_limit > 1 ? mad->hop_limit : VB_HOP_LIMIT_ROUTE,
	};
	struct vb_run run = {
		.service = VB_SERVICE_UD,
		.op = VB_OP_SEND,
		.flags = VB_RUN_FIRST | VB_RUN_LAST | VB_RUN_ACK_REQ,
		.pkey = 0xffff,
		.segments = 1,
		.dest_qpn = VB_QPN_SERVICES,
		.src_qpn = VB_QPN_SERVICES,
		.psn = atomic_fetch_add(&vb_gsi.psn, 1) & VB_QPN_MASK,
		.length = VB_GSI_MAD_BYTES,
		.qkey = VB_GSI_QKEY,
	};
	int err;

	if (family != family_of(mad->sgid))
		return vb_refuse(EADDRNOTAVAIL, VB_REASON_ARG,
				 "connections: one address is IPv4, the other IPv6");
	if (!(atomic_load(&vb_gsi.families) & family))
		return vb_refuse(EADDRINUSE, VB_REASON_DROP_UNREACHABLE,
				 "connections: no socket of the port to other hosts");
	memcpy(path.sgid, mad->sgid, sizeof(path.sgid));
	memcpy(path.dgid, mad->dgid, sizeof(path.dgid));
	err = vb_udp_sender(family, SOURCE_PORT, &sender);
	if (!err && !vb_descriptor_still(sender->fd))
		err = vb_udp_sender_mend(sender);
	if (err)
		return err;
	/* A packet that cannot leave is lost as one on the way is; udp/send.c has noted why. */
	(void)vb_udp_send(sender, &path, ifindex, &run, PACKET_MTU, mad->data);
	return 0;
}
