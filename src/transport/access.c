/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Whether a key grants an access. */
#include "transport/access.h"

#include <infiniband/verbs.h>
#include <stdbool.h>

struct verdict {
	enum vb_reason unknown;
	enum vb_reason pd;
	enum vb_reason range;
	enum vb_reason access;
};

static const struct verdict verdicts[] = {
	[VB_ACCESS_LOCAL] = {VB_REASON_LKEY_UNKNOWN, VB_REASON_LKEY_PD, VB_REASON_LKEY_RANGE,
			     VB_REASON_LKEY_ACCESS},
	[VB_ACCESS_REMOTE] = {VB_REASON_RKEY_UNKNOWN, VB_REASON_RKEY_PD, VB_REASON_RKEY_RANGE,
			      VB_REASON_RKEY_ACCESS},
};

/* Windows are for remote access, and the null region is for local access only. */
static bool usable(const struct vb_key *k, uint32_t key, enum vb_access_side side)
{
	/* Acquire: the fields belong to the key, which was stored after them. */
	if (!key || __atomic_load_n(&k->key, __ATOMIC_ACQUIRE) != key)
		return false;
	if (k->kind == VB_KEY_REGION)
		return true;
	if (k->kind == VB_KEY_WINDOW)
		return side == VB_ACCESS_REMOTE;
	return k->kind == VB_KEY_NULL && side == VB_ACCESS_LOCAL;
}

enum vb_reason vb_access_check(const struct vb_key *k, uint32_t key, uint32_t pd, uint32_t qpn,
			       uint64_t va, uint64_t length, uint32_t need,
			       enum vb_access_side side, uint64_t *addr)
{
	const struct verdict *no = &verdicts[side];

	if (!usable(k, key, side))
		return no->unknown;
	if (k->qpn && k->qpn != qpn)
		return VB_REASON_RKEY_QP;
	if (k->pd != pd)
		return no->pd;
	if ((k->access & need) != need)
		return no->access;
	if (k->kind == VB_KEY_NULL) {
		*addr = 0;
		return VB_REASON_NONE;
	}
	/* No sum is formed, so nothing can wrap. */
	if (va < k->start || length > k->length || va - k->start > k->length - length)
		return no->range;
	*addr = k->base + (va - k->start);
	return VB_REASON_NONE;
}
