/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sending direction. Bytes are copied into the send buffer, which is a circle, and written from
 * there into what the peer has announced. A message starts with little and doubles, so that copying
 * the next one and carrying the last one overlap. Few bytes go with the request itself.
 */
#include <errno.h>
#include <string.h>

#include "rsocket/stream_private.h"

/* Where the bytes of a call are. */
struct cursor {
	const struct iovec *iov;
	int left;  /* elements, with this one */
	size_t at; /* in this one */
};

static void copy_out(struct cursor *from, uint8_t *to, size_t length)
{
	while (length) {
		size_t here = from->iov->iov_len - from->at;

		if (here > length)
			here = length;
		if (here) /* an empty element may have no address */
			memcpy(to, (const uint8_t *)from->iov->iov_base + from->at, here);
		to += here;
		length -= here;
		from->at += here;
		if (from->at == from->iov->iov_len && from->left > 1) {
			from->iov++;
			from->left--;
			from->at = 0;
		}
	}
}

int vb_stream_refusal(const struct vb_stream *s)
{
	uint32_t ends = vb_stream_ends(s);

	if (!(ends & (VB_STREAM_NO_WRITE | VB_STREAM_PEER_LEFT | VB_STREAM_BROKEN)))
		return 0;
	return ends & VB_STREAM_BROKEN ? s->error : -ECONNRESET;
}

static uint32_t free_bytes(const struct vb_stream *s)
{
	uint64_t back = __atomic_load_n(&s->returned.bytes, __ATOMIC_ACQUIRE);

	return s->out.size - (uint32_t)(s->out.bytes - back);
}

static bool has_target(const struct vb_stream *s)
{
	return s->out.target.length ||
	       __atomic_load_n(&s->returned.entries, __ATOMIC_ACQUIRE) != s->out.entries;
}

static bool has_room(const struct vb_stream *s)
{
	return vb_stream_has_request(s) && free_bytes(s) >= VB_STREAM_LEAST &&
	       vb_stream_has_credit(s) && has_target(s);
}

bool vb_stream_can_send(struct vb_stream *s)
{
	bool can;

	if (vb_stream_refusal(s))
		return true;
	vb_lock_take(&s->out.lock);
	can = s->begun && has_room(s);
	vb_lock_release(&s->out.lock);
	return can;
}

bool vb_stream_is_sent(const struct vb_stream *s)
{
	uint32_t requests = __atomic_load_n(&s->out.requests, __ATOMIC_RELAXED);

	if (vb_stream_ends(s) & (VB_STREAM_BROKEN | VB_STREAM_PEER_LEFT))
		return true;
	return __atomic_load_n(&s->returned.requests, __ATOMIC_ACQUIRE) == requests &&
	       !__atomic_load_n(&s->wanted, __ATOMIC_RELAXED) &&
	       __atomic_load_n(&s->controls, __ATOMIC_RELAXED) ==
		       __atomic_load_n(&s->controls_done, __ATOMIC_RELAXED);
}

/* The entry in use is full: the next one, which the peer announced before. */
static void next_target(struct vb_stream *s)
{
	if (s->out.target.length)
		return;
	__atomic_store_n(&s->out.entries, s->out.entries + 1, __ATOMIC_RELAXED);
	s->out.target = s->returned.sge[s->out.entries % VB_RS_SGES];
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* How much goes with the next message. */
static uint32_t next_length(struct vb_stream *s, size_t left)
{
	uint32_t length = least(s->out.chunk, s->out.target.length);

	length = least(length, free_bytes(s));
	return left < length ? (uint32_t)left : length;
}

/* Puts the bytes into the circle, in one piece or two. */
static int fill(struct vb_stream *s, struct cursor *from, uint32_t length, struct ibv_sge sge[2])
{
	uint32_t first = least(length, s->out.size - s->out.at);

	copy_out(from, s->out.buffer + s->out.at, first);
	sge[0] = (struct ibv_sge){(uintptr_t)(s->out.buffer + s->out.at), first, s->out.mr->lkey};
	s->out.at += first;
	if (s->out.at == s->out.size)
		s->out.at = 0;
	if (first == length)
		return 1;
	copy_out(from, s->out.buffer, length - first);
	sge[1] = (struct ibv_sge){(uintptr_t)s->out.buffer, length - first, s->out.mr->lkey};
	s->out.at = length - first;
	return 2;
}

/*
 * Few bytes take nothing of the buffer, so that only the request's place in the queue comes back when
 * it is done: some at a time are told, since each completion costs as much as a third of a message.
 * A full queue holds several that are told. For the last ones see vb_stream_is_sent().
 */
static bool small_is_told(const struct vb_stream *s)
{
	return s->out.requests + 1 - s->out.signaled >= vb_stream_queue(s) / 4;
}

/* Few bytes: with the request, from where they are if they are in one piece. */
static int post_small(struct vb_stream *s, struct cursor *from, uint32_t length, uint32_t message)
{
	unsigned int flags = IBV_SEND_INLINE | (small_is_told(s) ? IBV_SEND_SIGNALED : 0);
	uint8_t room[VB_STREAM_INLINE_MAX];
	struct ibv_sge sge = {0, length, 0};

	if (from->iov->iov_len - from->at >= length) {
		sge.addr = (uintptr_t)from->iov->iov_base + from->at;
		from->at += length;
		if (from->at == from->iov->iov_len && from->left > 1) {
			from->iov++;
			from->left--;
			from->at = 0;
		}
	} else {
		copy_out(from, room, length);
		sge.addr = (uintptr_t)room;
	}
	int err = vb_stream_post(s, vb_stream_data_id(s, 0), &sge, 1, &s->out.target, &message,
				 flags);

	if (!err)
		vb_stream_posted(s, flags & IBV_SEND_SIGNALED);
	return err;
}

/* Others: from the buffer. */
static int post_large(struct vb_stream *s, struct cursor *from, uint32_t length, uint32_t message)
{
	struct ibv_sge sge[2];
	int count = fill(s, from, length, sge);
	int err = vb_stream_post(s, vb_stream_data_id(s, length), sge, count, &s->out.target,
				 &message, IBV_SEND_SIGNALED);

	if (err)
		return err;
	s->out.bytes += length;
	vb_stream_posted(s, true);
	return 0;
}

static int send_one(struct vb_stream *s, struct cursor *from, uint32_t length)
{
	uint32_t message = vb_rs_message(VB_RS_DATA, length);
	int err = length <= s->sizes.inline_bytes ? post_small(s, from, length, message)
						  : post_large(s, from, length, message);

	if (err)
		return err;
	s->out.messages++;
	s->out.target.addr += length;
	s->out.target.length -= length;
	return 0;
}

static size_t total(const struct iovec *iov, int count)
{
	size_t sum = 0;

	for (int i = 0; i < count; i++)
		sum += iov[i].iov_len;
	return sum;
}

/* To an element that has a byte left, so many bytes further on. */
static void advance(struct cursor *from, size_t bytes)
{
	from->at += bytes;
	while (from->left > 1 && from->at >= from->iov->iov_len) {
		from->at -= from->iov->iov_len;
		from->iov++;
		from->left--;
	}
}

static ssize_t send_locked(struct vb_stream *s, struct cursor *from, size_t size)
{
	size_t left = size;
	int err = 0;

	s->out.chunk = VB_STREAM_LEAST;
	if (vb_stream_has_iomaps(s) && !vb_stream_announce_iomaps(s))
		return -EAGAIN;
	while (left && !(err = vb_stream_refusal(s)) && has_room(s)) {
		uint32_t length;

		next_target(s);
		advance(from, 0);
		length = next_length(s, left);
		if (!length)
			break;
		err = send_one(s, from, length);
		if (err)
			break;
		left -= length;
		if (s->out.chunk < VB_STREAM_MOST)
			s->out.chunk *= 2;
	}
	if (left < size)
		return (ssize_t)(size - left);
	return err ? err : -EAGAIN;
}

ssize_t vb_stream_send(struct vb_stream *s, const struct iovec *iov, int count, size_t skip)
{
	struct cursor from = {iov, count, 0};
	size_t size = total(iov, count) - skip;
	ssize_t sent;

	if (!size)
		return vb_stream_refusal(s);
	advance(&from, skip);
	vb_lock_take(&s->out.lock);
	sent = s->begun ? send_locked(s, &from, size) : -EAGAIN;
	vb_lock_release(&s->out.lock);
	return sent;
}
