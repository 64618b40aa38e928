/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The protocol's link to other hosts: a run is gathered into the engine's staging buffer and sent
 * from there.
 */
#include "base/reason.h"
#include "engine/count.h"
#include "qp/qp.h"
#include "remote/part.h"
#include "remote/qp.h"
#include "remote/senders.h"
#include "remote/sockets.h"
#include "host/descriptor.h"
#include "udp/address.h"

static struct vb_udp_sender *sender_for(struct vb_qp *qp, const struct vb_path *path)
{
	unsigned int family = vb_udp_is_ipv4(path->dgid) ? VB_UDP_IPV4 : VB_UDP_IPV6;

	if (!(qp->remote->families & family))
		return NULL;
	struct vb_udp_sender *sender = qp->remote->sender[family - 1];

	if (path->flow_label && qp->t.service == VB_SERVICE_UD)
		(void)vb_udp_sender(family, ibv_flow_label_to_udp_sport(path->flow_label), &sender);
	return sender;
}

static void run_count(struct vb_qp *qp, const struct vb_run *run, const struct vb_run *ack, int err)
{
	struct vb_engine *e = qp->engine;

	if (err) {
		vb_count_fault(e, VB_REASON_DROP_SEND_BUFFER);
		return;
	}
	vb_count_sent(e, run);
	if (ack)
		vb_count_sent(e, ack);
	if (e->port && qp->t.service == VB_SERVICE_UD && vb_udp_is_multicast(run->path.dgid))
		e->port->tx_multicast += run->segments;
}

/* Sends the run, whose payload is staged, and perhaps an acknowledgement behind it. */
static void run_send(struct vb_qp *qp, const struct vb_run *run, const struct vb_run *ack)
{
	const struct vb_path *path = qp->t.service == VB_SERVICE_UD ? &run->path : &qp->path;
	struct vb_udp_sender *sender = sender_for(qp, path);
	struct vb_paths *paths = &qp->engine->paths;
	int err;

	if (!sender) {
		vb_count_fault(qp->engine, VB_REASON_DROP_UNREACHABLE);
		vb_note(VB_REASON_DROP_UNREACHABLE,
			"qp 0x%x: run for qp 0x%x: no socket of the family", qp->t.qpn,
			run->dest_qpn);
		return;
	}
	/* A file that the program has opened under the number gets no packet. */
	if (!vb_descriptor_still(sender->fd) && vb_udp_sender_mend(sender))
		return;
	if (ack)
		err = vb_udp_send_pair(sender, path, qp->remote->ifindex, run, qp->t.mtu,
				       qp->engine->remote->staging, ack);
	else
		err = vb_udp_send(sender, path, qp->remote->ifindex, run, qp->t.mtu,
				  qp->engine->remote->staging);
	paths->udp_runs += ack ? 2 : 1;
	paths->udp_bytes += run->length;
	run_count(qp, run, ack, err);
}

/* Sends the held run. */
static void let_go(struct vb_qp *qp, const struct vb_run *ack)
{
	qp->remote->pairing = VB_PAIRING_OFF;
	run_send(qp, &qp->remote->held, ack);
}

void vb_udp_pair_begin(struct vb_qp *qp)
{
	qp->remote->pairing = VB_PAIRING_NEXT;
}

void vb_udp_pair_end(struct vb_qp *qp)
{
	if (qp->remote->pairing == VB_PAIRING_HELD)
		let_go(qp, NULL);
	qp->remote->pairing = VB_PAIRING_OFF;
}

void *vb_udp_reserve(struct vb_qp *qp, uint32_t length)
{
	/* The buffer is needed. A run never has more than max_run_bytes, which the buffer holds. */
	if (length && qp->remote->pairing == VB_PAIRING_HELD)
		let_go(qp, NULL);
	return qp->engine->remote->staging;
}

void vb_udp_commit(struct vb_qp *qp, const struct vb_run *run)
{
	if (qp->remote->pairing == VB_PAIRING_HELD) {
		let_go(qp, run->op == VB_OP_ACK ? run : NULL);
		if (run->op == VB_OP_ACK)
			return;
	}
	if (qp->remote->pairing == VB_PAIRING_NEXT && run->segments == 1 && run->op != VB_OP_ACK) {
		qp->remote->held = *run;
		qp->remote->pairing = VB_PAIRING_HELD;
		return;
	}
	run_send(qp, run, NULL);
}
