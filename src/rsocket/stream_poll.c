/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the completion queue has: own requests that are done, and messages of the peer. The peer's
 * numbers are checked before they are used; a peer that breaks the protocol breaks the stream.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "rsocket/stream_private.h"

/* The peer says how many bytes it has written into the buffer. */
static void data_came(struct vb_stream *s, uint32_t length)
{
	uint32_t next = s->arrived.tail + 1;

	if (next == (uint32_t)s->sizes.receive_queue + 1)
		next = 0;
	/* More than was announced to it: credits or bytes. */
	if (next == __atomic_load_n(&s->in.head, __ATOMIC_RELAXED) || !length ||
	    vb_stream_readable(s) + length > s->in.size) {
		vb_stream_break(s, -EPROTO);
		return;
	}
	s->arrived.lengths[s->arrived.tail] = length;
	s->arrived.tail = next;
	__atomic_store_n(&s->arrived.bytes, s->arrived.bytes + length, __ATOMIC_RELEASE);
}

/* New credits, and perhaps a new place to write to. */
static void credit_came(struct vb_stream *s, uint32_t operand, uint32_t bytes)
{
	if (bytes >= sizeof(struct vb_rs_sge)) {
		uint32_t turn = (s->returned.entries + 1) % VB_RS_SGES;

		/* Both entries announced, and none used up: there is no third one. */
		if (s->returned.entries - __atomic_load_n(&s->out.entries, __ATOMIC_RELAXED) >= 2) {
			vb_stream_break(s, -EPROTO);
			return;
		}
		memcpy(&s->returned.sge[turn], &vb_stream_target(s)[turn],
		       sizeof(struct vb_rs_sge));
		__atomic_store_n(&s->returned.entries, s->returned.entries + 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&s->returned.limit, (uint16_t)operand, __ATOMIC_RELEASE);
}

static void control_came(struct vb_stream *s, uint32_t operand)
{
	if (operand == VB_RS_DISCONNECT)
		__atomic_or_fetch(&s->ends, VB_STREAM_PEER_LEFT, __ATOMIC_RELEASE);
	else if (operand == VB_RS_SHUTDOWN)
		__atomic_or_fetch(&s->ends, VB_STREAM_PEER_WROTE, __ATOMIC_RELEASE);
}

/* Whether a control message may be due now. */
static bool message_came(struct vb_stream *s, const struct ibv_wc *wc)
{
	uint32_t message = be32toh(wc->imm_data);
	uint32_t operand = vb_rs_message_operand(message);

	s->receives++;
	switch (vb_rs_message_op(message)) {
	case VB_RS_DATA:
		data_came(s, operand);
		return false; /* credits are given when it was read */
	case VB_RS_SGL:
		credit_came(s, operand, wc->byte_len);
		break;
	case VB_RS_IOMAP:
		vb_stream_iomap_came(s, operand);
		break;
	case VB_RS_CTRL:
		control_came(s, operand);
		break;
	default: /* of a later version */
		break;
	}
	return true;
}

/* It is done, and so is all that was posted before it. */
static void request_done(struct vb_stream *s, uint64_t wr_id)
{
	uint32_t bytes = (uint32_t)(wr_id >> VB_STREAM_BYTES_SHIFT) & VB_STREAM_BYTES_MASK;
	uint32_t requests = (uint32_t)wr_id;

	__atomic_store_n(&s->returned.bytes, s->returned.bytes + bytes, __ATOMIC_RELEASE);
	/* A control message may have been posted behind requests that it did not know of yet. */
	if ((int32_t)(requests - s->returned.requests) > 0)
		__atomic_store_n(&s->returned.requests, requests, __ATOMIC_RELEASE);
	if (wr_id >> VB_STREAM_KIND_SHIFT == VB_STREAM_WR_CONTROL)
		__atomic_store_n(&s->controls_done, s->controls_done + 1, __ATOMIC_RELEASE);
}

/* As message_came(). */
static bool take(struct vb_stream *s, const struct ibv_wc *wc)
{
	bool receive = wc->wr_id >> VB_STREAM_KIND_SHIFT == VB_STREAM_WR_RECEIVE;

	if (wc->status != IBV_WC_SUCCESS) {
		/* After the peer's end nothing can get there: no failure. */
		if (!(vb_stream_ends(s) & VB_STREAM_PEER_LEFT))
			vb_stream_break(s, wc->status == IBV_WC_RETRY_EXC_ERR ? -ETIMEDOUT : -EIO);
		return false;
	}
	if (receive)
		return message_came(s, wc);
	request_done(s, wc->wr_id);
	return true;
}

/* Receives go back into the queue by whole batches: it has one batch more than the peer may use. */
static void post_receives(struct vb_stream *s)
{
	while (s->receives >= VB_STREAM_BATCH && !(vb_stream_ends(s) & VB_STREAM_BROKEN)) {
		struct ibv_recv_wr *bad;
		int err = ibv_post_recv(s->qp, s->chain, &bad);

		if (err) {
			vb_stream_break(s, -err);
			return;
		}
		s->receives -= VB_STREAM_BATCH;
	}
}

static bool poll_locked(struct vb_stream *s)
{
	struct ibv_wc wc[VB_STREAM_BATCH];
	bool any = false, due = false;
	int n;

	if (!s->begun)
		return false;
	do {
		n = ibv_poll_cq(s->cq, VB_STREAM_BATCH, wc);
		if (n < 0) {
			vb_stream_break(s, -EIO);
			return true;
		}
		for (int i = 0; i < n; i++)
			due |= take(s, &wc[i]);
		any |= n > 0;
		post_receives(s);
	} while (n == VB_STREAM_BATCH);
	if (due)
		vb_stream_controls(s);
	return any;
}

bool vb_stream_progress(struct vb_stream *s)
{
	bool any;

	if (!vb_lock_try(&s->poll))
		return false;
	any = poll_locked(s);
	vb_lock_release(&s->poll);
	return any;
}

bool vb_stream_arm(struct vb_stream *s)
{
	bool any;

	vb_lock_take(&s->poll);
	/* While it is armed, what comes makes the descriptor readable. */
	any = false;
	if (!s->armed && s->begun) {
		s->armed = !ibv_req_notify_cq(s->cq, 0);
		any = poll_locked(s);
	}
	vb_lock_release(&s->poll);
	return any;
}

void vb_stream_drain(struct vb_stream *s)
{
	vb_lock_take(&s->poll);
	poll_locked(s);
	vb_lock_release(&s->poll);
}

bool vb_stream_woken(struct vb_stream *s)
{
	struct ibv_cq *cq;
	void *context;
	bool any;

	vb_lock_take(&s->poll);
	/* Whoever comes second finds no event, and the queue not armed. */
	if (s->armed && !ibv_get_cq_event(s->channel, &cq, &context)) {
		s->armed = false;
		if (++s->unacked == UINT16_MAX) {
			ibv_ack_cq_events(s->cq, s->unacked);
			s->unacked = 0;
		}
	}
	any = poll_locked(s);
	vb_lock_release(&s->poll);
	return any;
}
