/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registered memory: checks and copies. Runs under an engine's lock, which is what
 * vb_process_quiesce() waits for.
 */
#include "memory/memory.h"

#include <stdio.h>
#include <string.h>

#include "memory/copy.h"
#include "memory/foreign.h"

/* Logs a sentence that names the element, the region, and what is wrong between them. */
static void explain(const struct vb_mem *mem, const char *what, int element, uint32_t key,
		    uint64_t va, uint64_t length, enum vb_reason reason)
{
	const struct vb_key *k = &mem->keys->key[vb_key_slot(key)];
	char name[24] = "";

	if (element >= 0)
		snprintf(name, sizeof(name), " sge[%d]", element);
	if (__atomic_load_n(&k->key, __ATOMIC_ACQUIRE) != key)
		vb_note(reason, "%s: qp 0x%x%s 0x%llx+%llu: key 0x%x: %s", what, mem->qpn, name,
			(unsigned long long)va, (unsigned long long)length, key,
			vb_reason_text(reason));
	else
		vb_note(reason,
			"%s: qp 0x%x%s 0x%llx+%llu: mr key 0x%x is 0x%llx+%llu, access 0x%x, pd %u (queue's %u): %s",
			what, mem->qpn, name, (unsigned long long)va, (unsigned long long)length,
			key, (unsigned long long)k->start, (unsigned long long)k->length, k->access,
			k->pd, mem->pd, vb_reason_text(reason));
}

enum vb_reason vb_mem_check(const struct vb_mem *mem, uint32_t key, uint64_t va, uint64_t length,
			    uint32_t need, enum vb_access_side side, uint64_t *addr)
{
	const struct vb_key *entry = &mem->keys->key[vb_key_slot(key)];

	if (vb_foreign_any() && vb_foreign_is(mem, key))
		return vb_foreign_check(mem, key, va, length, need, side, addr);
	return vb_access_check(entry, key, mem->pd, mem->qpn, va, length, need, side, addr);
}

enum vb_reason vb_mem_check_explained(const struct vb_mem *mem, const char *what, uint32_t key,
				      uint64_t va, uint64_t length, uint32_t need, uint64_t *addr)
{
	enum vb_reason reason = vb_mem_check(mem, key, va, length, need, VB_ACCESS_REMOTE, addr);

	if (reason != VB_REASON_NONE)
		explain(mem, what, -1, key, va, length, reason);
	return reason;
}

static void note_odd(const struct vb_mem *mem, uint32_t key, int n, struct vb_mem_vectors *v)
{
	const struct vb_key *k = &mem->keys->key[vb_key_slot(key)];

	if (k->kind == VB_KEY_NULL)
		v->null |= 1ull << n;
	else if (vb_mem_is_paged(k))
		v->paged |= 1ull << n;
}

bool vb_mem_is_plain(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge)
{
	for (uint32_t i = 0; i < num_sge; i++) {
		const struct vb_key *k = &mem->keys->key[vb_key_slot(sge[i].lkey)];

		if (k->key == sge[i].lkey && (k->kind == VB_KEY_NULL || vb_mem_is_paged(k)))
			return false;
	}
	return true;
}

/* A piece of a part: the bytes of it that one element holds. */
struct piece {
	int element;
	uint32_t key;
	uint64_t va;
	uint64_t length;
};

/* False: the part or the list is at its end. */
static inline bool piece_next(struct vb_mem_cursor *c, struct piece *piece)
{
	const struct ibv_sge *sge;

	if (!c->length)
		return false;
	while (c->at < c->num_sge && c->offset >= c->sge[c->at].length)
		c->offset -= c->sge[c->at++].length;
	if (c->at == c->num_sge)
		return false;
	sge = &c->sge[c->at];
	piece->element = (int)c->at;
	piece->key = sge->lkey;
	piece->va = sge->addr + c->offset;
	piece->length = sge->length - c->offset;
	if (piece->length > c->length)
		piece->length = c->length;
	c->offset += piece->length;
	c->length -= piece->length;
	return true;
}

static enum vb_reason piece_check(const struct vb_mem_cursor *c, const struct piece *piece,
				  uint64_t *addr)
{
	enum vb_reason reason = vb_mem_check(c->mem, piece->key, piece->va, piece->length, c->need,
					     VB_ACCESS_LOCAL, addr);

	if (reason != VB_REASON_NONE)
		explain(c->mem, "local access", piece->element, piece->key, piece->va,
			piece->length, reason);
	return reason;
}

enum vb_reason vb_mem_next(struct vb_mem_cursor *cursor, struct vb_mem_vectors *v)
{
	struct piece piece;
	int n = 0;

	v->bytes = v->paged = v->null = 0;
	while (n < v->max && piece_next(cursor, &piece)) {
		uint64_t addr;
		enum vb_reason reason = piece_check(cursor, &piece, &addr);

		if (reason != VB_REASON_NONE)
			return reason;
		note_odd(cursor->mem, piece.key, n, v);
		v->iov[n].iov_base = (void *)(uintptr_t)addr;
		v->iov[n++].iov_len = piece.length;
		v->bytes += piece.length;
	}
	v->count = n;
	return VB_REASON_NONE;
}

enum vb_reason vb_mem_check_list(const struct vb_mem *mem, const struct ibv_sge *sge,
				 uint32_t num_sge, uint32_t need)
{
	for (uint32_t i = 0; i < num_sge; i++) {
		uint64_t addr;

		if (!sge[i].length)
			continue;
		enum vb_reason reason = vb_mem_check(mem, sge[i].lkey, sge[i].addr, sge[i].length,
						     need, VB_ACCESS_LOCAL, &addr);

		if (reason != VB_REASON_NONE) {
			explain(mem, "local access", (int)i, sge[i].lkey, sge[i].addr,
				sge[i].length, reason);
			return reason;
		}
	}
	return VB_REASON_NONE;
}

#define VECTORS 8

static enum vb_reason gone(const struct vb_mem *mem, const struct iovec *iov)
{
	vb_note(VB_REASON_MEMORY_GONE,
		"qp 0x%x: %p+%zu is registered on demand, but the program has unmapped it",
		mem->qpn, iov->iov_base, iov->iov_len);
	return VB_REASON_MEMORY_GONE;
}

/* The memory that a walk copies to or from: the bytes of the list, one behind the other. */
struct flat {
	bool out; /* of the list: a gather */
	char *to;
	const char *from;
};

static inline void flat_move(struct flat *f, uint64_t length)
{
	if (f->out)
		f->to += length;
	else
		f->from += length;
}

/* The leaves of the walk copy one vector out of the list, or into it. */
static inline enum vb_reason leaf_out(const struct vb_mem *mem, const struct iovec *iov, bool paged,
				      bool null, char *to)
{
	if (null)
		memset(to, 0, iov->iov_len);
	else if (!paged)
		memcpy(to, iov->iov_base, iov->iov_len);
	else if (!vb_mem_copy_out(to, (uintptr_t)iov->iov_base, iov->iov_len))
		return gone(mem, iov);
	return VB_REASON_NONE;
}

static inline enum vb_reason leaf_in(const struct vb_mem *mem, const struct iovec *iov, bool paged,
				     bool null, const char *from)
{
	if (null)
		return VB_REASON_NONE;
	if (!paged)
		memcpy(iov->iov_base, from, iov->iov_len);
	else if (!vb_mem_copy_in((uintptr_t)iov->iov_base, from, iov->iov_len))
		return gone(mem, iov);
	return VB_REASON_NONE;
}

static inline enum vb_reason vectors_copy(const struct vb_mem *mem, const struct vb_mem_vectors *v,
					  struct flat *f)
{
	for (int i = 0; i < v->count; i++) {
		bool paged = v->paged >> i & 1, null = v->null >> i & 1;
		enum vb_reason reason = f->out ? leaf_out(mem, &v->iov[i], paged, null, f->to)
					       : leaf_in(mem, &v->iov[i], paged, null, f->from);

		if (reason)
			return reason;
		flat_move(f, v->iov[i].iov_len);
	}
	return VB_REASON_NONE;
}

/* The list ends before the part. */
static enum vb_reason too_short(const struct flat *f)
{
	return f->out ? VB_REASON_LKEY_RANGE : VB_REASON_RECV_TOO_SMALL;
}

bool vb_mem_is_ours(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge)
{
	for (uint32_t i = 0; vb_foreign_any() && i < num_sge; i++) {
		if (vb_foreign_is(mem, sge[i].lkey))
			return false;
	}
	return true;
}

static enum vb_reason foreign_copy(const struct vb_mem_cursor *c, const struct piece *piece,
				   const struct flat *f)
{
	return f->out ? vb_foreign_read(c->mem, piece->key, piece->va, f->to, piece->length,
					c->need, VB_ACCESS_LOCAL)
		      : vb_foreign_write(c->mem, piece->key, piece->va, f->from, piece->length,
					 c->need, VB_ACCESS_LOCAL);
}

/* A list with imported elements: the elements are copied one after the other. */
static enum vb_reason mixed_copy(struct vb_mem_cursor *c, struct flat *f)
{
	struct iovec iov;
	struct vb_mem_vectors v = {.iov = &iov, .max = 1, .count = 1};
	struct piece piece;

	while (piece_next(c, &piece)) {
		enum vb_reason reason;
		uint64_t addr;

		if (vb_foreign_is(c->mem, piece.key)) {
			reason = foreign_copy(c, &piece, f);
			flat_move(f, piece.length);
		} else {
			reason = piece_check(c, &piece, &addr);
			iov = (struct iovec){(void *)(uintptr_t)addr, piece.length};
			v.paged = v.null = 0;
			note_odd(c->mem, piece.key, 0, &v);
			if (!reason)
				reason = vectors_copy(c->mem, &v, f);
		}
		if (reason)
			return reason;
	}
	return c->length ? too_short(f) : VB_REASON_NONE;
}

static inline __attribute__((always_inline)) enum vb_reason list_copy(struct vb_mem_cursor *c,
								      struct flat f)
{
	struct iovec iov[VECTORS];
	struct vb_mem_vectors v = {.iov = iov, .max = VECTORS};

	if (!vb_mem_is_ours(c->mem, c->sge, c->num_sge))
		return mixed_copy(c, &f);
	while (c->length) {
		enum vb_reason reason = vb_mem_next(c, &v);

		if (!reason && !v.count)
			reason = too_short(&f);
		if (!reason)
			reason = vectors_copy(c->mem, &v, &f);
		if (reason)
			return reason;
	}
	return VB_REASON_NONE;
}

enum vb_reason vb_mem_gather(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge,
			     uint64_t offset, void *dst, uint64_t length)
{
	const void *from = vb_mem_whole_part(mem, sge, num_sge, offset, length, 0);

	if (from) {
		memcpy(dst, from, length);
		return VB_REASON_NONE;
	}
	struct vb_mem_cursor c = {mem, sge, num_sge, 0, offset, length, 0};

	return list_copy(&c, (struct flat){.out = true, .to = dst});
}

enum vb_reason vb_mem_scatter(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge,
			      uint64_t offset, const void *src, uint64_t length)
{
	void *to = vb_mem_whole_part(mem, sge, num_sge, offset, length, IBV_ACCESS_LOCAL_WRITE);

	if (to) {
		memcpy(to, src, length);
		return VB_REASON_NONE;
	}
	struct vb_mem_cursor c = {mem, sge, num_sge, 0, offset, length, IBV_ACCESS_LOCAL_WRITE};

	return list_copy(&c, (struct flat){.from = src});
}
