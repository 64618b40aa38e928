/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs on the link between hosts. */
#include "remote/qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "object/context.h"
#include "device/device.h"
#include "engine/drive.h"
#include "engine/engines.h"
#include "process/process.h"
#include "qp/qp.h"
#include "remote/link.h"
#include "remote/part.h"
#include "remote/senders.h"
#include "remote/sockets.h"
#include "remote/steer.h"
#include "udp/address.h"
#include "udp/mtu.h"
#include "udp/socket.h"

/* More bytes in flight than this only fill buffers. */
#define WINDOW_BYTES      (512u * 1024u)
#define WINDOW_LEAST      4u
/*
 * The first and the last packet of an answer are longer than those between, so that each needs a
 * burst of its own, which costs half of what a long one does. An answer is therefore long.
 */
#define READ_WINDOW_BYTES (1536u * 1024u)

static unsigned int family_of(const uint8_t gid[16])
{
	return vb_udp_is_ipv4(gid) ? VB_UDP_IPV4 : VB_UDP_IPV6;
}

/*
 * Different pairs of queue pairs take different paths through a network that spreads by port. A
 * flow label decides alone.
 */
static uint16_t source_port(const struct vb_qp *qp, uint32_t flow_label)
{
	uint64_t mixed = (uint64_t)qp->t.qpn * 0x9e3779b97f4a7c15ull ^
			 (uint64_t)qp->t.dest_qpn * 0xc2b2ae3d27d4eb4full;

	if (!flow_label)
		flow_label = (uint32_t)(mixed >> 44);
	return ibv_flow_label_to_udp_sport(flow_label);
}

static int mtu_check(struct vb_qp *qp, const struct vb_path *path, enum ibv_mtu mtu)
{
	struct vb_link_state link;
	uint32_t bytes = 128u << mtu;
	bool ipv4 = vb_udp_is_ipv4(path->dgid);

	vb_device_link(vb_context_of(qp->u.qp.context)->device, &link);
	if (bytes <= vb_udp_path_mtu(ipv4, link.mtu))
		return 0;
	return vb_refuse(
		EINVAL, VB_REASON_PATH_MTU,
		"modify_qp: qp 0x%x: packets of path MTU %u have up to %u bytes, %s carries %u",
		qp->t.qpn, bytes, bytes + vb_udp_overhead(ipv4), link.ifname, link.mtu);
}

/* Acquires a family. While the engine has one, it reads the sockets. Engine's lock. */
static int engine_hold(struct vb_engine *e, unsigned int family, struct vb_udp_got *got)
{
	int err = vb_udp_engine_init(e);

	if (!err)
		err = vb_udp_link_get(family, got);
	if (err)
		return err;
	vb_engine_reads_begin(e);
	/*
	 * A packet that came after the opening has used up the arming, and no thread was there to
	 * read it.
	 */
	vb_udp_sockets_arm();
	return 0;
}

static void engine_drop(struct vb_engine *e, unsigned int family)
{
	vb_engine_reads_end(e);
	vb_udp_link_put(e, family);
}

static int hold(struct vb_qp *qp, unsigned int family, struct vb_udp_got *got)
{
	int err = qp->remote->families & family ? 0 : engine_hold(qp->engine, family, got);

	if (err)
		return err;
	qp->remote->families |= (uint8_t)family;
	vb_udp_steer_check();
	return err;
}

/* Without the lock. */
static int family_open(struct vb_qp *qp, unsigned int family)
{
	struct vb_udp_got got;
	int err;

	vb_udp_link_seek(family, &got);
	vb_engine_take(qp->engine);
	err = vb_remote_qp(qp) ? hold(qp, family, &got) : -ENOMEM;
	if (err && qp->remote)
		qp->remote->refused |= (uint8_t)family;
	vb_lock_release(&qp->engine->lock);
	vb_udp_link_seek_end(&got);
	if (!err)
		vb_udp_link_await(qp->engine, family);
	return err;
}

static unsigned int families_for(const struct vb_path *path)
{
	return path ? family_of(path->dgid) : VB_UDP_IPV4 | VB_UDP_IPV6;
}

bool vb_udp_qp_lacks(const struct vb_qp *qp, const struct vb_path *path)
{
	unsigned int wanted = families_for(path);

	(void)qp;
	return ((wanted & VB_UDP_IPV4) && !vb_udp_steer_is_joined(VB_UDP_IPV4)) ||
	       ((wanted & VB_UDP_IPV6) && !vb_udp_steer_is_joined(VB_UDP_IPV6));
}

int vb_udp_qp_open(struct vb_qp *qp, const struct vb_path *path)
{
	unsigned int wanted = families_for(path);
	int err = 0;

	for (unsigned int family = VB_UDP_IPV4; family <= VB_UDP_IPV6; family++) {
		if (wanted & family)
			err = family_open(qp, family);
	}
	return path ? err : 0;
}

int vb_udp_engine_hold(struct vb_engine *e, unsigned int family)
{
	struct vb_udp_got got;
	int err;

	vb_udp_link_seek(family, &got);
	vb_engine_take(e);
	err = engine_hold(e, family, &got);
	vb_lock_release(&e->lock);
	vb_udp_link_seek_end(&got);
	if (!err)
		vb_udp_link_await(e, family);
	return err;
}

int vb_udp_qp_hold_group(struct vb_qp *qp, const uint8_t gid[16])
{
	return vb_udp_engine_hold(qp->engine, family_of(gid));
}

void vb_udp_qp_drop_group(struct vb_qp *qp, const uint8_t gid[16])
{
	vb_engine_take(qp->engine);
	engine_drop(qp->engine, family_of(gid));
	vb_lock_release(&qp->engine->lock);
}

int vb_udp_qp_path_check(struct vb_qp *qp, const struct vb_path *path, enum ibv_mtu mtu)
{
	int err = mtu_check(qp, path, mtu);

	if (!err && family_of(path->sgid) != family_of(path->dgid))
		err = vb_refuse(EINVAL, VB_REASON_ARG,
				"modify_qp: qp 0x%x: one GID is IPv4, the other IPv6", qp->t.qpn);
	return err;
}

int vb_udp_qp_connect(struct vb_qp *qp, const struct ibv_ah_attr *ah, const struct vb_path *path)
{
	struct vb_udp_sender **at, *sender;
	union ibv_gid gid;
	uint32_t ifindex = 0;
	uint16_t port = source_port(qp, path->flow_label);
	int err = vb_remote_qp(qp) ? hold(qp, family_of(path->dgid), NULL) : -ENOMEM;

	if (err)
		return err;
	if (!vb_device_gid(vb_context_of(qp->u.qp.context)->device, ah->grh.sgid_index, &gid,
			   &ifindex))
		ifindex = qp->remote->ifindex;
	sender = vb_udp_sender_bound(qp->engine, port, path, ifindex);
	if (!sender)
		err = vb_udp_sender(family_of(path->dgid), port, &sender);
	if (err)
		return err;
	at = &qp->remote->sender[family_of(path->dgid) - 1];
	vb_udp_sender_put(*at);
	*at = sender;
	qp->remote->ifindex = ifindex;
	return 0;
}

void vb_udp_qp_datagrams(struct vb_qp *qp)
{
	struct vb_link_state link;

	if (!vb_remote_qp(qp))
		return;
	vb_device_link(vb_context_of(qp->u.qp.context)->device, &link);
	qp->remote->ifindex = (uint32_t)link.ifindex;
	for (unsigned int family = VB_UDP_IPV4; family <= VB_UDP_IPV6; family++) {
		if (!(qp->remote->refused & family) && !hold(qp, family, NULL))
			(void)vb_udp_sender(family, source_port(qp, 0),
					    &qp->remote->sender[family - 1]);
	}
	qp->remote->refused = 0;
}

/*
 * What the receiver's buffer holds. The kernel counts each packet with the memory that it takes,
 * about twice its size (measured: 2315 for 1072 bytes, 8520 for 4144). Half of the buffer is used,
 * because other queue pairs use the socket too. This host's granted buffer stands for the peer's,
 * which mostly runs the same library.
 */
static uint32_t window_packets(unsigned int family, uint32_t mtu, uint32_t most)
{
	uint32_t fit = vb_udp_socket_buffer(family) / 2 / (2 * mtu + 512);

	if (fit > most / mtu)
		fit = most / mtu;
	return fit < WINDOW_LEAST ? WINDOW_LEAST : fit;
}

void vb_udp_qp_tune(struct vb_qp *qp)
{
	struct vb_tqp *t = &qp->t;
	unsigned int family = family_of(qp->path.dgid);
	uint32_t reads = window_packets(family, t->mtu, READ_WINDOW_BYTES);

	t->window_packets = window_packets(family, t->mtu, WINDOW_BYTES);
	t->max_run_bytes = vb_udp_run_bytes(t->mtu, t->window_packets * t->mtu / 2);
	/* The next part is asked for while the second half of one arrives. */
	t->read_window_packets = reads;
	t->max_read_bytes = (reads - reads / 3) * t->mtu;
}

void vb_udp_qp_release(struct vb_qp *qp)
{
	if (!qp->remote)
		return;
	for (unsigned int family = VB_UDP_IPV4; family <= VB_UDP_IPV6; family++) {
		vb_udp_sender_put(qp->remote->sender[family - 1]);
		if (qp->remote->families & family)
			engine_drop(qp->engine, family);
	}
	free(qp->remote);
	qp->remote = NULL;
}
