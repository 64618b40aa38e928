/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the files of the stream share. */
#ifndef VB_RSOCKET_STREAM_PRIVATE_H
#define VB_RSOCKET_STREAM_PRIVATE_H

#include "rsocket/stream.h"

/* What a request was, in the highest bits of its wr_id; the bytes of the buffer that it had below. */
enum vb_stream_kind {
	VB_STREAM_WR_DATA,
	VB_STREAM_WR_CONTROL,
	VB_STREAM_WR_RECEIVE,
};

#define VB_STREAM_KIND_SHIFT    56
/* Bytes behind the send buffer for the payload of one control message. */
#define VB_STREAM_CONTROL_PLACE 32

static inline uint64_t vb_stream_wr_id(enum vb_stream_kind kind, uint32_t bytes)
{
	return (uint64_t)kind << VB_STREAM_KIND_SHIFT | bytes;
}

/* The target area: entries for data, then iomap entries. */
static inline struct vb_rs_sge *vb_stream_target(const struct vb_stream *s)
{
	return (struct vb_rs_sge *)(void *)(s->in.buffer + s->in.size);
}

static inline struct vb_rs_iomap *vb_stream_target_iomap(const struct vb_stream *s)
{
	return (struct vb_rs_iomap *)(void *)(vb_stream_target(s) + VB_RS_SGES);
}

/* Whether a request that is not a control message has a place in the send queue. */
static inline bool vb_stream_has_request(const struct vb_stream *s)
{
	uint32_t done = __atomic_load_n(&s->returned.requests, __ATOMIC_ACQUIRE);

	return s->out.requests - done < (uint32_t)(s->sizes.send_queue - VB_STREAM_CONTROLS);
}

/* Whether one more message that needs a credit may go. */
static inline bool vb_stream_has_credit(const struct vb_stream *s)
{
	return vb_rs_before(s->out.messages, __atomic_load_n(&s->returned.limit, __ATOMIC_ACQUIRE));
}

/*
 * An RDMA WRITE with immediate, or without one (message NULL). Counts nothing. A negative errno
 * breaks the stream.
 */
int vb_stream_post(struct vb_stream *s, uint64_t wr_id, struct ibv_sge *sge, int count,
		   const struct vb_rs_sge *to, const uint32_t *message, unsigned int flags);

void vb_stream_break(struct vb_stream *s, int error);
/* Why nothing may be sent: 0 if something may. */
int vb_stream_refusal(const struct vb_stream *s);

/* Takes completions, also when another thread is at it. */
void vb_stream_drain(struct vb_stream *s);
/* Under the poll lock: sends the control messages that are due, as far as there is room. */
void vb_stream_controls(struct vb_stream *s);
/* Whether credits should be given to the peer now. Takes no lock. */
bool vb_stream_owes_credit(const struct vb_stream *s);

/* Under the lock of the sending direction: announces mappings. Whether all are announced. */
bool vb_stream_announce_iomaps(struct vb_stream *s);
bool vb_stream_has_iomaps(const struct vb_stream *s);
/* Under the poll lock: the peer has announced one. */
void vb_stream_iomap_came(struct vb_stream *s, uint32_t index);
void vb_stream_iomaps_close(struct vb_stream *s);

#endif
