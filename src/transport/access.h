/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The pure check whether a key grants an access. The responder, local scatter/gather and direct
 * access (on a copy of the entry in another process's published table) use this one check, so all
 * of them judge alike.
 */
#ifndef VB_TRANSPORT_ACCESS_H
#define VB_TRANSPORT_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/reason.h"

/*
 * An entry of a key table: 64 bytes, published read-only to peers. The owner makes an entry valid
 * by storing `key` last (release), and invalid by storing 0 first, then fencing. A reader copies
 * the entry, then checks that `key` still stands. The upper 24 bits of a key name the entry, the
 * lower 8 are its tag. 0 is never a key.
 */
struct vb_key {
	uint32_t key;    /* the valid lkey == rkey, 0 = invalid */
	uint32_t access; /* enum ibv_access_flags, LOCAL_READ implied */
	uint32_t pd;     /* handle of the protection domain, unique in the process */
	uint32_t qpn;    /* 0, or the only QP that may use the key (type 2 windows) */
	uint64_t start;  /* iova of the first byte */
	uint64_t length;
	uint64_t base;    /* address of the first byte in the owner's address space */
	uint32_t kind;    /* enum vb_key_kind */
	uint32_t windows; /* region: how many windows are bound to it; used by the owner alone */
	/* Grows when the entry is made invalid: an earlier judgement must not be used after. */
	uint32_t generation;
	/*
	 * 1: other processes may have mapped this memory, so only atomics of the processor are
	 * atomic.
	 */
	uint32_t shared;
	/* 1: the memory is there for as long as the key is valid. For the owner alone. */
	uint32_t lasting;
	uint32_t pad;
};

/* No new access begins. Accesses that had begun are waited for elsewhere (host/mark.c). */
static inline void vb_key_withdraw(struct vb_key *k)
{
	__atomic_store_n(&k->key, 0, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&k->generation, 1, __ATOMIC_SEQ_CST);
}

enum vb_key_kind {
	VB_KEY_REGION,
	VB_KEY_WINDOW,
	VB_KEY_NULL,    /* null MR: reads zeros, swallows writes */
	VB_KEY_FOREIGN, /* a region of another process: this check grants nothing */
};

/* The rules that apply: the local ones (lkey) or the remote ones (rkey). */
enum vb_access_side { VB_ACCESS_LOCAL, VB_ACCESS_REMOTE };

/*
 * Whether `key` of protection domain `pd`, used by QP `qpn`, grants access to [va, va+length) with
 * all rights in `need` (bits of enum ibv_access_flags; for the local side 0 = read,
 * IBV_ACCESS_LOCAL_WRITE = write). `k` is the caller's copy of the entry that the key's index
 * names. Accesses of zero length need no check (IBA 9.7.4.1) and are not passed here. Returns
 * VB_REASON_NONE, and *addr gets the owner's address of va; or returns the reason. The range check
 * cannot wrap.
 */
enum vb_reason vb_access_check(const struct vb_key *k, uint32_t key, uint32_t pd, uint32_t qpn,
			       uint64_t va, uint64_t length, uint32_t need,
			       enum vb_access_side side, uint64_t *addr);

/*
 * The same for the common case, a region, used by either side: true where vb_access_check() would
 * grant it. False: ask vb_access_check().
 */
static inline bool vb_access_region(const struct vb_key *k, uint32_t key, uint32_t pd, uint32_t qpn,
				    uint64_t va, uint64_t length, uint32_t need)
{
	return key && __atomic_load_n(&k->key, __ATOMIC_ACQUIRE) == key &&
	       k->kind == VB_KEY_REGION && k->pd == pd && (!k->qpn || k->qpn == qpn) &&
	       (k->access & need) == need && va >= k->start && length <= k->length &&
	       va - k->start <= k->length - length;
}

#endif
