/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Mappings of both sides. */
#include "rsocket/iomap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rsocket/stream_private.h"

/* One of this side; `next` keeps them in the order of their making. */
struct mapping {
	struct mapping *next;
	struct ibv_mr *mr;
	struct vb_rs_iomap iomap;
	int32_t index; /* in the peer's target area; -1: the peer does not know it */
	bool announced;
};

struct vb_stream_iomaps {
	struct mapping *own;         /* under the lock of the sending direction */
	uint32_t waiting;            /* of `own`, not announced; atomic */
	struct vb_rs_iomap theirs[]; /* as many as `sizes.iomaps`; under the poll lock */
};

/* The list is made with the first mapping of either side. */
static struct vb_stream_iomaps *iomaps_of(struct vb_stream *s)
{
	struct vb_stream_iomaps *now = __atomic_load_n(&s->iomaps, __ATOMIC_ACQUIRE);
	struct vb_stream_iomaps *fresh;

	if (now)
		return now;
	fresh = calloc(1, sizeof(*fresh) + s->sizes.iomaps * sizeof(fresh->theirs[0]));
	if (!fresh)
		return NULL;
	if (__atomic_compare_exchange_n(&s->iomaps, &now, fresh, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return fresh;
	free(fresh);
	return now;
}

void vb_stream_iomaps_close(struct vb_stream *s)
{
	struct mapping *next;

	if (!s->iomaps)
		return;
	for (struct mapping *m = s->iomaps->own; m; m = next) {
		next = m->next;
		ibv_dereg_mr(m->mr);
		free(m);
	}
	free(s->iomaps);
	s->iomaps = NULL;
}

/* A place in the peer's target area that no other mapping has; -1: there is none. */
static int32_t free_index(const struct vb_stream *s, const struct vb_stream_iomaps *maps)
{
	for (uint32_t i = 0; s->peer.iomap && i < s->peer.iomaps; i++) {
		const struct mapping *m = maps->own;

		while (m && m->index != (int32_t)i)
			m = m->next;
		if (!m)
			return (int32_t)i;
	}
	return -1;
}

static int add(struct vb_stream *s, struct vb_stream_iomaps *maps, struct mapping *m, bool remote)
{
	struct mapping **last = &maps->own;
	int err = 0;

	vb_lock_take(&s->out.lock);
	m->index = remote ? free_index(s, maps) : -1;
	if (remote && m->index < 0) {
		err = -ENOMEM;
	} else {
		while (*last)
			last = &(*last)->next;
		*last = m;
		if (remote)
			__atomic_add_fetch(&maps->waiting, 1, __ATOMIC_RELEASE);
	}
	vb_lock_release(&s->out.lock);
	return err;
}

off_t vb_stream_iomap(struct vb_stream *s, void *buffer, size_t length, bool remote, off_t offset)
{
	int access = IBV_ACCESS_LOCAL_WRITE | (remote ? IBV_ACCESS_REMOTE_WRITE : 0);
	struct vb_stream_iomaps *maps = iomaps_of(s);
	struct mapping *m = calloc(1, sizeof(*m));
	int err = -ENOMEM;

	if (!maps || !m || length > UINT32_MAX)
		goto fail;
	m->mr = ibv_reg_mr(s->pd, buffer, length, access);
	if (!m->mr) {
		err = -errno;
		goto fail;
	}
	m->iomap.offset = offset == -1 ? (uintptr_t)buffer : (uint64_t)offset;
	m->iomap.sge = (struct vb_rs_sge){(uintptr_t)buffer, m->mr->rkey, (uint32_t)length};
	err = add(s, maps, m, remote);
	if (!err)
		return (off_t)m->iomap.offset;
	ibv_dereg_mr(m->mr);
fail:
	free(m);
	return err;
}

int vb_stream_iounmap(struct vb_stream *s, const void *buffer, size_t length)
{
	struct vb_stream_iomaps *maps = __atomic_load_n(&s->iomaps, __ATOMIC_ACQUIRE);
	struct mapping *m = NULL;

	if (!maps)
		return -EINVAL;
	vb_lock_take(&s->out.lock);
	for (struct mapping **at = &maps->own; *at; at = &(*at)->next) {
		m = *at;
		if (m->iomap.sge.addr == (uintptr_t)buffer && m->iomap.sge.length == length) {
			*at = m->next;
			if (m->index >= 0 && !m->announced)
				__atomic_sub_fetch(&maps->waiting, 1, __ATOMIC_RELEASE);
			break;
		}
		m = NULL;
	}
	vb_lock_release(&s->out.lock);
	if (!m)
		return -EINVAL;
	ibv_dereg_mr(m->mr);
	free(m);
	return 0;
}

bool vb_stream_has_iomaps(const struct vb_stream *s)
{
	const struct vb_stream_iomaps *maps = __atomic_load_n(&s->iomaps, __ATOMIC_ACQUIRE);

	return maps && __atomic_load_n(&maps->waiting, __ATOMIC_ACQUIRE);
}

/* Puts bytes into the send buffer in one piece; a rest at its end that is too short is left out. */
static uint8_t *reserve(struct vb_stream *s, uint32_t length, uint32_t *taken)
{
	uint64_t back = __atomic_load_n(&s->returned.bytes, __ATOMIC_ACQUIRE);
	uint32_t rest = s->out.size - s->out.at;

	*taken = length + (rest < length ? rest : 0);
	if (s->out.size - (s->out.bytes - back) < *taken)
		return NULL;
	return s->out.buffer + (rest < length ? 0 : s->out.at);
}

static void reserved(struct vb_stream *s, uint32_t taken)
{
	s->out.at = (uint32_t)((s->out.at + (uint64_t)taken) % s->out.size);
	s->out.bytes += taken;
	vb_stream_posted(s, true);
}

static int announce(struct vb_stream *s, struct mapping *m)
{
	uint32_t message = vb_rs_message(VB_RS_IOMAP, (uint32_t)m->index);
	struct vb_rs_iomap entry = m->iomap;
	struct vb_rs_sge to = s->peer.target;
	struct ibv_sge sge;
	uint32_t taken;
	uint8_t *place;
	int err;

	if (!vb_stream_has_request(s) || !vb_stream_has_credit(s))
		return -EAGAIN;
	place = reserve(s, sizeof(entry), &taken);
	if (!place)
		return -EAGAIN;
	if (s->peer_swapped)
		vb_rs_iomap_swap(&entry);
	memcpy(place, &entry, sizeof(entry));
	sge = (struct ibv_sge){(uintptr_t)place, sizeof(entry), s->out.mr->lkey};
	to.addr += VB_RS_SGES * sizeof(struct vb_rs_sge) + (uint64_t)m->index * sizeof(entry);
	err = vb_stream_post(s, vb_stream_data_id(s, taken), &sge, 1, &to, &message,
			     IBV_SEND_SIGNALED);
	if (err)
		return err;
	reserved(s, taken);
	s->out.messages++;
	m->announced = true;
	return 0;
}

bool vb_stream_announce_iomaps(struct vb_stream *s)
{
	struct vb_stream_iomaps *maps = s->iomaps;

	for (struct mapping *m = maps->own; m; m = m->next) {
		if (m->index < 0 || m->announced)
			continue;
		if (announce(s, m))
			return false;
		__atomic_sub_fetch(&maps->waiting, 1, __ATOMIC_RELEASE);
	}
	return true;
}

void vb_stream_iomap_came(struct vb_stream *s, uint32_t index)
{
	struct vb_stream_iomaps *maps = iomaps_of(s);

	if (index >= s->sizes.iomaps) {
		vb_stream_break(s, -EPROTO);
		return;
	}
	if (maps)
		memcpy(&maps->theirs[index], &vb_stream_target_iomap(s)[index],
		       sizeof(maps->theirs[0]));
	/* The message is used up. */
	__atomic_store_n(&s->arrived.messages, (uint16_t)(s->arrived.messages + 1),
			 __ATOMIC_RELAXED);
}

/* Where the peer wants bytes for this offset; false: nowhere. */
static bool find(struct vb_stream *s, uint64_t offset, struct vb_rs_sge *to)
{
	struct vb_stream_iomaps *maps = __atomic_load_n(&s->iomaps, __ATOMIC_ACQUIRE);
	bool found = false;

	vb_lock_take(&s->poll);
	for (uint32_t i = 0; maps && !found && i < s->sizes.iomaps; i++) {
		const struct vb_rs_iomap *m = &maps->theirs[i];

		if (offset < m->offset || offset - m->offset >= m->sge.length)
			continue;
		*to = m->sge;
		to->addr += offset - m->offset;
		to->length -= (uint32_t)(offset - m->offset);
		found = true;
	}
	vb_lock_release(&s->poll);
	return found;
}

static ssize_t iowrite_some(struct vb_stream *s, const uint8_t *from, size_t length,
			    uint64_t offset)
{
	struct ibv_sge sge = {0};
	struct vb_rs_sge to;
	uint32_t taken;
	uint8_t *place;
	int err;

	if (!find(s, offset, &to))
		return -EINVAL;
	if (length > to.length)
		length = to.length;
	if (length > s->out.chunk)
		length = s->out.chunk;
	if (!vb_stream_has_request(s))
		return -EAGAIN;
	place = reserve(s, (uint32_t)length, &taken);
	if (!place)
		return -EAGAIN;
	memcpy(place, from, length);
	sge = (struct ibv_sge){(uintptr_t)place, (uint32_t)length, s->out.mr->lkey};
	err = vb_stream_post(s, vb_stream_data_id(s, taken), &sge, 1, &to, NULL, IBV_SEND_SIGNALED);
	if (err)
		return err;
	reserved(s, taken);
	return (ssize_t)length;
}

ssize_t vb_stream_iowrite(struct vb_stream *s, const void *buffer, size_t length, off_t offset)
{
	size_t done = 0;
	ssize_t n = 0;

	vb_lock_take(&s->out.lock);
	s->out.chunk = VB_STREAM_LEAST;
	while (done < length) {
		n = vb_stream_refusal(s);
		if (!n)
			n = iowrite_some(s, (const uint8_t *)buffer + done, length - done,
					 (uint64_t)offset + done);
		if (n < 0)
			break;
		done += (size_t)n;
		if (s->out.chunk < VB_STREAM_MOST && s->out.chunk * 4 <= s->out.size)
			s->out.chunk *= 2;
	}
	vb_lock_release(&s->out.lock);
	return done ? (ssize_t)done : n;
}
