/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Control messages: credits and room for the peer, and the end. They need no credit. A few requests
 * of the send queue are kept for them; what finds none free goes when one has completed.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "rsocket/stream_private.h"

int vb_stream_post(struct vb_stream *s, uint64_t wr_id, struct ibv_sge *sge, int count,
		   const struct vb_rs_sge *to, const uint32_t *message, unsigned int flags)
{
	struct ibv_send_wr *bad;
	struct ibv_send_wr wr;
	int err;

	wr.wr_id = wr_id;
	wr.next = NULL;
	wr.sg_list = sge;
	wr.num_sge = count;
	wr.send_flags = flags;
	wr.wr.rdma.remote_addr = to->addr;
	wr.wr.rdma.rkey = to->key;
	if (message) {
		wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr.imm_data = htobe32(*message);
	} else {
		wr.opcode = IBV_WR_RDMA_WRITE;
	}
	err = ibv_post_send(s->qp, &wr, &bad);
	if (err)
		vb_stream_break(s, -err);
	return -err;
}

static bool has_control(const struct vb_stream *s)
{
	return s->controls - s->controls_done < VB_STREAM_CONTROLS;
}

static int post_control(struct vb_stream *s, struct ibv_sge *sge, int count,
			const struct vb_rs_sge *to, const uint32_t *message, unsigned int flags)
{
	uint32_t before = __atomic_load_n(&s->out.requests, __ATOMIC_ACQUIRE);
	int err = vb_stream_post(s, vb_stream_wr_id(VB_STREAM_WR_CONTROL, 0, before), sge, count,
				 to, message, flags | IBV_SEND_SIGNALED);

	if (!err)
		__atomic_store_n(&s->controls, s->controls + 1, __ATOMIC_RELAXED);
	return err;
}

/* A message without payload. The place that it names is not looked at. */
static void post_empty(struct vb_stream *s, const uint32_t *message)
{
	struct vb_rs_sge to = s->peer.target;

	post_control(s, NULL, 0, &to, message, 0);
}

/* The bytes of the buffer that were read and are not announced, beyond those at hand from the start. */
static uint64_t free_bytes(const struct vb_stream *s)
{
	uint64_t half = s->in.size / 2;

	return half + __atomic_load_n(&s->in.bytes, __ATOMIC_ACQUIRE) -
	       (s->arrived.halves - 1) * half;
}

static bool has_free_half(const struct vb_stream *s)
{
	return free_bytes(s) >= s->in.size / 2;
}

/* Of the peer's, for ever: their credits may be given back. */
static uint16_t messages_done(const struct vb_stream *s)
{
	return (uint16_t)(__atomic_load_n(&s->in.messages, __ATOMIC_ACQUIRE) +
			  __atomic_load_n(&s->arrived.messages, __ATOMIC_RELAXED));
}

bool vb_stream_owes_credit(const struct vb_stream *s)
{
	uint16_t back =
		(uint16_t)(messages_done(s) - __atomic_load_n(&s->arrived.given, __ATOMIC_RELAXED));

	return has_free_half(s) || back >= s->sizes.receive_queue / 2;
}

/* Announces the free half of the buffer. Entries of the peer's target area take turns: 1, 0, 1, ... */
static void post_half(struct vb_stream *s, const uint32_t *message)
{
	uint32_t half = s->in.size / 2;
	uint32_t turn = s->arrived.halves % VB_RS_SGES;
	uint8_t *place = s->out.buffer + s->out.size +
			 (size_t)(s->controls % VB_STREAM_CONTROLS) * VB_STREAM_CONTROL_PLACE;
	struct vb_rs_sge entry = {(uintptr_t)s->in.buffer + (uint64_t)turn * half, s->in.mr->rkey,
				  half};
	struct vb_rs_sge to = s->peer.target;
	struct ibv_sge sge = {(uintptr_t)place, sizeof(entry), s->out.mr->lkey};
	unsigned int flags = s->sizes.inline_bytes >= sizeof(entry) ? IBV_SEND_INLINE : 0;

	if (s->peer_swapped)
		vb_rs_sge_swap(&entry);
	memcpy(place, &entry, sizeof(entry));
	to.addr += turn * sizeof(entry);
	if (!post_control(s, &sge, 1, &to, message, flags))
		s->arrived.halves++;
}

static void give_credit(struct vb_stream *s)
{
	uint16_t messages = messages_done(s);
	uint32_t message = vb_rs_message(VB_RS_SGL, (uint16_t)(messages + s->sizes.receive_queue));

	if (has_free_half(s))
		post_half(s, &message);
	else
		post_empty(s, &message);
	__atomic_store_n(&s->arrived.given, messages, __ATOMIC_RELAXED);
}

void vb_stream_controls(struct vb_stream *s)
{
	vb_lock_assert_held(&s->poll);
	if (!s->begun || vb_stream_ends(s) & (VB_STREAM_BROKEN | VB_STREAM_PEER_LEFT))
		return;
	while (vb_stream_owes_credit(s) && has_control(s) &&
	       !(vb_stream_ends(s) & VB_STREAM_BROKEN))
		give_credit(s);
	while (s->wanted && has_control(s)) {
		uint32_t which = (uint32_t)__builtin_ctz(s->wanted);
		uint32_t message = vb_rs_message(VB_RS_CTRL, which);

		post_empty(s, which == VB_RS_KEEPALIVE ? NULL : &message);
		__atomic_and_fetch(&s->wanted, ~(1u << which), __ATOMIC_RELEASE);
	}
}

void vb_stream_keepalive(struct vb_stream *s)
{
	vb_lock_take(&s->poll);
	__atomic_or_fetch(&s->wanted, 1u << VB_RS_KEEPALIVE, __ATOMIC_RELAXED);
	vb_stream_controls(s);
	vb_lock_release(&s->poll);
}
