/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the files of the stream share. */
#ifndef VB_RSOCKET_STREAM_PRIVATE_H
#define VB_RSOCKET_STREAM_PRIVATE_H

#include "rsocket/stream.h"

/*
 * What a wr_id says: what the request was; of own requests, how many bytes of the buffer it had, and
 * what `out.requests` was when it had been posted. Its completion says that so many are done.
 */
enum vb_stream_kind {
	VB_STREAM_WR_DATA,
	VB_STREAM_WR_CONTROL,
	VB_STREAM_WR_RECEIVE,
};

#define VB_STREAM_KIND_SHIFT    56
#define VB_STREAM_BYTES_SHIFT   32
#define VB_STREAM_BYTES_MASK    0xffffffu /* more than VB_STREAM_MOST twice */
/* Bytes behind the send buffer for the payload of one control message. */
#define VB_STREAM_CONTROL_PLACE 32

static inline uint64_t vb_stream_wr_id(enum vb_stream_kind kind, uint32_t bytes, uint32_t requests)
{
	return (uint64_t)kind << VB_STREAM_KIND_SHIFT | (uint64_t)bytes << VB_STREAM_BYTES_SHIFT |
	       requests;
}

/* Under the lock of the sending direction: of the next request that is not a control message. */
static inline uint64_t vb_stream_data_id(const struct vb_stream *s, uint32_t bytes)
{
	return vb_stream_wr_id(VB_STREAM_WR_DATA, bytes, s->out.requests + 1);
}

/* It was posted. */
static inline void vb_stream_posted(struct vb_stream *s, bool signaled)
{
	uint32_t requests = s->out.requests + 1;

	if (signaled)
		s->out.signaled = requests;
	__atomic_store_n(&s->out.requests, requests, __ATOMIC_RELEASE);
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

/* The part of the send queue that is not kept for control messages. */
static inline uint32_t vb_stream_queue(const struct vb_stream *s)
{
	return (uint32_t)(s->sizes.send_queue - VB_STREAM_CONTROLS);
}

/* Whether a request that is not a control message has a place in the send queue. */
static inline bool vb_stream_has_request(const struct vb_stream *s)
{
	uint32_t done = __atomic_load_n(&s->returned.requests, __ATOMIC_ACQUIRE);

	return s->out.requests - done < vb_stream_queue(s);
}

/* Whether one more message that needs a credit may go. */
static inline bool vb_stream_has_credit(const struct vb_stream *s)
{
	return vb_rs_before(s->out.messages, __atomic_load_n(&s->returned.limit, __ATOMIC_ACQUIRE));
}

/*
 * An RDMA WRITE with immediate, or without one (message NULL). It completes if `flags` say so, or if
 * it fails. Counts nothing. A negative errno breaks the stream.
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
