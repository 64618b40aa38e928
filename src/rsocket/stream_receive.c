/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The receiving direction. What the peer has written lies in the receive buffer one after another;
 * a message says only how many bytes there are more.
 */
#include <errno.h>
#include <string.h>

#include "rsocket/stream_private.h"

size_t vb_stream_readable(const struct vb_stream *s)
{
	uint64_t come = __atomic_load_n(&s->arrived.bytes, __ATOMIC_ACQUIRE);

	return (size_t)(come - __atomic_load_n(&s->in.bytes, __ATOMIC_RELAXED));
}

bool vb_stream_can_receive(const struct vb_stream *s)
{
	return vb_stream_readable(s) || vb_stream_ends(s) & ~(uint32_t)VB_STREAM_NO_WRITE;
}

/* Copies from the circle. */
static void copy_in(const struct vb_stream *s, uint64_t from, uint8_t *to, size_t length)
{
	size_t at = (size_t)(from % s->in.size);
	size_t first = s->in.size - at;

	if (!length) /* an empty element may have no address */
		return;
	if (first >= length) {
		memcpy(to, s->in.buffer + at, length);
		return;
	}
	memcpy(to, s->in.buffer + at, first);
	memcpy(to + first, s->in.buffer, length - first);
}

/* The bytes have been read: messages that were read to their end give their credits back. */
static void consume(struct vb_stream *s, size_t length)
{
	uint32_t head = s->in.head;
	uint16_t messages = 0;
	size_t left = length;

	while (left) {
		uint32_t here = s->arrived.lengths[head] - s->in.taken;

		if (here > left) {
			s->in.taken += (uint32_t)left;
			break;
		}
		left -= here;
		s->in.taken = 0;
		messages++;
		if (++head == (uint32_t)s->sizes.receive_queue + 1)
			head = 0;
	}
	__atomic_store_n(&s->in.head, head, __ATOMIC_RELAXED);
	if (messages)
		__atomic_store_n(&s->in.messages, (uint16_t)(s->in.messages + messages),
				 __ATOMIC_RELEASE);
	__atomic_store_n(&s->in.bytes, s->in.bytes + length, __ATOMIC_RELEASE);
}

static size_t receive_locked(struct vb_stream *s, const struct iovec *iov, int count, size_t skip,
			     bool peek)
{
	size_t there = vb_stream_readable(s);
	size_t done = 0;

	for (int i = 0; i < count && done < there; i++) {
		uint8_t *to = iov[i].iov_base;
		size_t length = iov[i].iov_len;

		if (skip >= length) {
			skip -= length;
			continue;
		}
		to += skip;
		length -= skip;
		skip = 0;
		if (length > there - done)
			length = there - done;
		copy_in(s, s->in.bytes + done, to, length);
		done += length;
	}
	if (done && !peek)
		consume(s, done);
	return done;
}

/* Nothing is there to be read. Why, or what else the caller is told. */
static ssize_t nothing(const struct vb_stream *s)
{
	uint32_t ends = vb_stream_ends(s);

	/* The end was seen; what came before it may have been put there in between. */
	if (vb_stream_readable(s))
		return -EAGAIN;
	if (ends & (VB_STREAM_NO_READ | VB_STREAM_PEER_WROTE | VB_STREAM_PEER_LEFT))
		return 0;
	return ends & VB_STREAM_BROKEN ? s->error : -EAGAIN;
}

ssize_t vb_stream_receive(struct vb_stream *s, const struct iovec *iov, int count, size_t skip,
			  bool peek)
{
	size_t done;

	if (!vb_stream_readable(s)) /* as a program that looks again and again finds it mostly */
		return nothing(s);
	vb_lock_take(&s->in.lock);
	done = receive_locked(s, iov, count, skip, peek);
	vb_lock_release(&s->in.lock);
	if (!done)
		return nothing(s);
	if (!peek && vb_stream_owes_credit(s)) {
		vb_lock_take(&s->poll);
		vb_stream_controls(s);
		vb_lock_release(&s->poll);
	}
	return (ssize_t)done;
}
