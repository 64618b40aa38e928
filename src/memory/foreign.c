/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Imported regions: judges the owner's entry and reaches the owner's memory. Runs under an engine's
 * lock.
 */
#include "memory/foreign.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "process/process.h"
#include "host/arena.h"
#include "host/guard.h"
#include "host/peer.h"
#include "memory/copy.h"
#include "memory/key_user.h"

/* Index: the slot of this process's own key. */
static _Atomic(struct vb_foreign *) table[VB_MAX_KEYS];
_Atomic uint32_t vb_foreign_count;

int vb_foreign_add(uint32_t key, const struct vb_foreign *record)
{
	struct vb_foreign *f = malloc(sizeof(*f));

	if (!f)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "no memory for an imported mr");
	*f = *record;
	atomic_store(&table[vb_key_slot(key)], f);
	atomic_fetch_add(&vb_foreign_count, 1);
	return 0;
}

void vb_foreign_remove(uint32_t key)
{
	struct vb_foreign *f = atomic_exchange(&table[vb_key_slot(key)], NULL);

	atomic_fetch_sub(&vb_foreign_count, 1);
	vb_peer_part(vb_process_node_started(), f->owner);
	free(f);
}

static const struct vb_key *entry_of(const struct vb_mem *mem, uint32_t key)
{
	return &mem->keys->key[vb_key_slot(key)];
}

bool vb_foreign_is(const struct vb_mem *mem, uint32_t key)
{
	const struct vb_key *k = entry_of(mem, key);

	return key && __atomic_load_n(&k->key, __ATOMIC_ACQUIRE) == key &&
	       k->kind == VB_KEY_FOREIGN;
}

bool vb_foreign_current(const struct vb_foreign *f)
{
	const struct vb_key *entry = vb_peer_key(f->owner, f->key);

	return entry && __atomic_load_n(&entry->key, __ATOMIC_ACQUIRE) == f->key;
}

static enum vb_reason owner_gone(enum vb_access_side side)
{
	return side == VB_ACCESS_LOCAL ? VB_REASON_OWNER_GONE : VB_REASON_RKEY_OWNER_GONE;
}

/*
 * Judges a copy of the owner's entry, then compares the entry with the copy: the owner may change
 * it meanwhile.
 */
static enum vb_reason judge(const struct vb_foreign *f, uint64_t va, uint64_t length, uint32_t need,
			    enum vb_access_side side, uint64_t *addr)
{
	const struct vb_key *entry = vb_peer_key(f->owner, f->key);
	enum vb_reason unknown = side == VB_ACCESS_LOCAL ? VB_REASON_LKEY_UNKNOWN
							 : VB_REASON_RKEY_UNKNOWN;
	struct vb_key copy;

	if (!vb_peer_alive(f->owner))
		return owner_gone(side);
	if (!entry)
		return VB_REASON_NO_DIRECT_ACCESS;
	if (__atomic_load_n(&entry->key, __ATOMIC_ACQUIRE) != f->key)
		return unknown;
	memcpy(&copy, entry, sizeof(copy));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&entry->key, __ATOMIC_RELAXED) != f->key || copy.kind != VB_KEY_REGION)
		return unknown;
	if (f->part) {
		struct vb_key part = {
			.key = f->key, .pd = f->pd, .access = f->access, .length = f->length};
		enum vb_reason reason =
			vb_access_check(&part, f->key, f->pd, 0, va, length, need, side, &va);

		if (reason != VB_REASON_NONE)
			return reason;
		va += f->offset;
	}
	copy.key = f->key;
	return vb_access_check(&copy, f->key, f->pd, 0, va, length, need, side, addr);
}

enum vb_reason vb_foreign_check(const struct vb_mem *mem, uint32_t key, uint64_t va,
				uint64_t length, uint32_t need, enum vb_access_side side,
				uint64_t *addr)
{
	const struct vb_foreign *f = atomic_load(&table[vb_key_slot(key)]);

	if (!vb_foreign_is(mem, key) || !f)
		return side == VB_ACCESS_LOCAL ? VB_REASON_LKEY_UNKNOWN : VB_REASON_RKEY_UNKNOWN;
	if (entry_of(mem, key)->pd != mem->pd)
		return side == VB_ACCESS_LOCAL ? VB_REASON_LKEY_PD : VB_REASON_RKEY_PD;
	return judge(f, va, length, need, side, addr);
}

static enum vb_reason reason_of(int err, enum vb_access_side side)
{
	switch (err) {
	case 0:
		return VB_REASON_NONE;
	case -ESRCH:
		return owner_gone(side);
	case -EFAULT:
		return VB_REASON_MEMORY_GONE;
	/* Revoked in the middle of the copy: reported as if it had been revoked before. */
	case -ESTALE:
		return side == VB_ACCESS_LOCAL ? VB_REASON_LKEY_UNKNOWN : VB_REASON_RKEY_UNKNOWN;
	default:
		return VB_REASON_NO_DIRECT_ACCESS;
	}
}

struct use {
	const struct vb_foreign *f;
	struct vb_node *node;
	uint64_t addr;
	struct vb_guard guard;
};

/*
 * Sets the mark first, then makes the judgement that counts (host/mark.c). To be followed by end().
 */
static enum vb_reason begin(const struct vb_mem *mem, uint32_t key, uint64_t va, uint64_t length,
			    uint32_t need, enum vb_access_side side, struct use *use)
{
	use->f = atomic_load(&table[vb_key_slot(key)]);
	use->node = vb_process_node_started();
	if (use->f)
		vb_mark_set(use->node, mem->engine, use->f->owner, 0, use->f->key);
	vb_guard_init(&use->guard);
	const struct vb_key *entry = use->f ? vb_peer_key(use->f->owner, use->f->key) : NULL;

	if (entry) {
		use->guard.first = &entry->generation;
		use->guard.first_is = __atomic_load_n(&entry->generation, __ATOMIC_ACQUIRE);
	}
	return vb_foreign_check(mem, key, va, length, need, side, &use->addr);
}

static enum vb_reason end(const struct vb_mem *mem, const struct use *use, uint32_t key,
			  enum vb_reason reason)
{
	if (use->f)
		vb_mark_clear(use->node, mem->engine);
	if (reason != VB_REASON_NONE)
		vb_note(reason, "qp 0x%x: imported key 0x%x (0x%x of process %u): %s", mem->qpn,
			key, use->f ? use->f->key : 0, use->f ? vb_peer_pid(use->f->owner) : 0,
			vb_reason_text(reason));
	return reason;
}

enum vb_reason vb_foreign_read(const struct vb_mem *mem, uint32_t key, uint64_t va, void *dst,
			       uint64_t length, uint32_t need, enum vb_access_side side)
{
	struct iovec iov = {dst, length};
	struct use use;
	enum vb_reason reason = begin(mem, key, va, length, need, side, &use);

	if (reason == VB_REASON_NONE && vb_peer_is_self(use.f->owner))
		reason = vb_mem_copy_out(dst, use.addr, length) ? reason : VB_REASON_MEMORY_GONE;
	else if (reason == VB_REASON_NONE)
		reason = reason_of(
			vb_peer_read(use.f->owner, use.addr, &iov, 1, length, &use.guard), side);
	return end(mem, &use, key, reason);
}

enum vb_reason vb_foreign_write(const struct vb_mem *mem, uint32_t key, uint64_t va,
				const void *src, uint64_t length, uint32_t need,
				enum vb_access_side side)
{
	struct iovec iov = {(void *)(uintptr_t)src, length};
	struct use use;
	enum vb_reason reason = begin(mem, key, va, length, need, side, &use);

	if (reason == VB_REASON_NONE && vb_peer_is_self(use.f->owner))
		reason = vb_mem_copy_in(use.addr, src, length) ? reason : VB_REASON_MEMORY_GONE;
	else if (reason == VB_REASON_NONE)
		reason = reason_of(vb_peer_write(use.f->owner, use.addr, &iov, 1, length, true,
						 &use.guard),
				   side);
	return end(mem, &use, key, reason);
}

/*
 * A word that processes other than its owner may have mapped is changed by its owner's processor.
 * An importer has not mapped it.
 */
static int atomic(const struct use *use, const struct vb_atomic *op, uint64_t *original)
{
	bool shared = vb_peer_key(use->f->owner, use->f->key)->shared;

	if (vb_peer_is_self(use->f->owner))
		return vb_node_atomic(use->node, use->addr, shared, op, original);
	if (shared && !vb_arena_holds(use->f->owner, use->addr, sizeof(*original)))
		return -EOPNOTSUPP;
	return vb_peer_atomic(use->f->owner, use->addr, op, original, &use->guard);
}

enum vb_reason vb_foreign_atomic(const struct vb_mem *mem, uint32_t key, uint64_t va,
				 bool compare_swap, uint64_t swap_add, uint64_t compare,
				 uint64_t *original)
{
	struct vb_atomic op = {compare_swap, swap_add, compare};
	struct use use;
	enum vb_reason reason = begin(mem, key, va, sizeof(*original), IBV_ACCESS_REMOTE_ATOMIC,
				      VB_ACCESS_REMOTE, &use);

	if (reason == VB_REASON_NONE)
		reason = reason_of(atomic(&use, &op, original), VB_ACCESS_REMOTE);
	return end(mem, &use, key, reason);
}
