/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One pure check whether a key grants an access. Used by the responder, by local scatter/gather and, on a copy of the
 * entry in another process's published table, by direct access: so that all of them judge alike.
 */
#ifndef VB_TRANSPORT_ACCESS_H
#define VB_TRANSPORT_ACCESS_H

#include <stdint.h>

#include "base/reason.h"

/*
 * An entry of a key table: 64 bytes, published read-only to peers. The owner makes an entry valid by storing `key` last
 * (release) and invalid by storing 0 first, then fencing; a reader copies it, then checks that `key` still stands.
 * A key's upper 24 bits name the entry, the lower 8 are its tag; 0 is never a key.
 */
struct vb_key {
	uint32_t key;    /* the valid lkey == rkey, 0 = invalid */
	uint32_t access; /* enum ibv_access_flags, LOCAL_READ implied */
	uint32_t pd;     /* handle of the protection domain, unique in the process */
	uint32_t qpn;    /* 0, or the only QP that may use it (type 2 windows) */
	uint64_t start;  /* iova of the first byte */
	uint64_t length;
	uint64_t base;    /* address of the first byte in the owner's address space */
	uint32_t kind;    /* enum vb_key_kind */
	uint32_t windows; /* region: how many windows are bound to it; the owner's own */
	uint32_t generation; /* counts how often it was made invalid: what was judged before must not be used after */
	uint32_t shared; /* 1: other processes may have mapped this memory, so only the processor's atomics are atomic */
	uint64_t pad;
};

/* No new access begins; those that had begun are waited for (host/mark.c). */
static inline void vb_key_withdraw(struct vb_key *k)
{
	__atomic_store_n(&k->key, 0, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&k->generation, 1, __ATOMIC_SEQ_CST);
}

enum vb_key_kind {
	VB_KEY_REGION,
	VB_KEY_WINDOW,
	VB_KEY_NULL,    /* null MR: reads zeros, swallows writes */
	VB_KEY_FOREIGN, /* another process's region: nothing that this check could grant */
};

/* Which rules apply: the local ones (lkey) or the remote ones (rkey). */
enum vb_access_side { VB_ACCESS_LOCAL, VB_ACCESS_REMOTE };

/*
 * May `key` of protection domain `pd`, used by QP `qpn`, access [va, va+length) with all rights in `need` (bits of
 * enum ibv_access_flags; for the local side 0 = read, IBV_ACCESS_LOCAL_WRITE = write)? `k` is the entry that the key's
 * index names, copied by the caller. Zero-length accesses need no check at all (IBA 9.7.4.1) and are not passed here.
 * Returns VB_REASON_NONE or the reason; then *addr is the owner's address of va. The range check cannot wrap.
 */
enum vb_reason vb_access_check(const struct vb_key *k, uint32_t key, uint32_t pd, uint32_t qpn,
			       uint64_t va, uint64_t length, uint32_t need,
			       enum vb_access_side side, uint64_t *addr);

#endif
