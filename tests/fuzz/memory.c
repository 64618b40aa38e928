/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory of an endpoint under test. Every copy is checked against what the protocol was given.
 */
#include <string.h>

#include "memory.h"

enum vb_reason memory_gather_check(struct vb_tqp *qp, struct vb_send_wqe *wqe)
{
	(void)qp;
	return wqe->num_sge > 1 ? VB_REASON_LKEY_UNKNOWN : VB_REASON_NONE;
}

enum vb_reason memory_gather(struct vb_tqp *qp, struct vb_send_wqe *wqe, uint64_t offset, void *dst,
			     uint32_t length)
{
	struct endpoint *e = endpoint_of(qp);

	DEMAND(offset <= wqe->length && length <= wqe->length - offset);
	DEMAND(length <= e->room_bytes && dst == e->room);
	memcpy(dst, e->local + offset, length);
	return VB_REASON_NONE;
}

enum vb_reason memory_scatter_response(struct vb_tqp *qp, struct vb_send_wqe *wqe, uint64_t offset,
				       const void *src, uint32_t length)
{
	struct endpoint *e = endpoint_of(qp);

	DEMAND(offset <= wqe->length && length <= wqe->length - offset);
	memcpy(e->local + offset, src, length);
	return wqe->peer_hint ? VB_REASON_MEMORY_GONE : VB_REASON_NONE;
}

enum vb_reason memory_recv_scatter(struct vb_tqp *qp, struct vb_recv_wqe *wqe, uint64_t offset,
				   const void *src, uint32_t length)
{
	struct endpoint *e = endpoint_of(qp);

	DEMAND(e->recvs_taken && wqe == &e->recv[(e->recvs_taken - 1) % END_RECVS]);
	DEMAND(offset <= wqe->length && length <= wqe->length - offset);
	memcpy(e->local + offset, src, length);
	return wqe->num_sge > 1 ? VB_REASON_LKEY_UNKNOWN : VB_REASON_NONE;
}

static enum vb_reason find(struct vb_tqp *qp, uint32_t rkey, uint64_t va, uint64_t length,
			   uint32_t need, uint64_t *addr)
{
	struct endpoint *e = endpoint_of(qp);

	DEMAND(length); /* an access of no bytes needs no key and is not asked for */
	DEMAND(qp->service != VB_SERVICE_XRC || e->entered);
	for (size_t i = 0; i < sizeof(e->keys) / sizeof(e->keys[0]); i++) {
		if (e->keys[i].key >> 8 == rkey >> 8)
			return vb_access_check(&e->keys[i], rkey, 1, qp->qpn, va, length, need,
					       VB_ACCESS_REMOTE, addr);
	}
	return VB_REASON_RKEY_UNKNOWN;
}

enum vb_reason memory_remote_check(struct vb_tqp *qp, uint32_t rkey, uint64_t va, uint64_t length,
				   uint32_t need)
{
	uint64_t addr;

	return find(qp, rkey, va, length, need, &addr);
}

enum vb_reason memory_remote_write(struct vb_tqp *qp, uint32_t rkey, uint64_t va, const void *src,
				   uint32_t length)
{
	uint64_t addr;
	enum vb_reason reason = find(qp, rkey, va, length, IBV_ACCESS_REMOTE_WRITE, &addr);

	if (!reason)
		memcpy((void *)(uintptr_t)addr, src, length);
	return reason;
}

enum vb_reason memory_remote_read(struct vb_tqp *qp, uint32_t rkey, uint64_t va, void *dst,
				  uint32_t length)
{
	struct endpoint *e = endpoint_of(qp);
	uint64_t addr;
	enum vb_reason reason = find(qp, rkey, va, length, IBV_ACCESS_REMOTE_READ, &addr);

	DEMAND(length <= e->room_bytes && dst == e->room);
	if (!reason)
		memcpy(dst, (const void *)(uintptr_t)addr, length);
	return reason;
}

enum vb_reason memory_remote_atomic(struct vb_tqp *qp, uint32_t rkey, uint64_t va,
				    bool compare_swap, uint64_t swap_add, uint64_t compare,
				    uint64_t *original)
{
	uint64_t addr;
	uint64_t value;
	enum vb_reason reason = find(qp, rkey, va, 8, IBV_ACCESS_REMOTE_ATOMIC, &addr);

	DEMAND(va % 8 == 0);
	if (reason)
		return reason;
	memcpy(original, (const void *)(uintptr_t)addr, 8);
	value = compare_swap ? *original == compare ? swap_add : *original : *original + swap_add;
	memcpy((void *)(uintptr_t)addr, &value, 8);
	return VB_REASON_NONE;
}

enum vb_reason memory_remote_atomic_write(struct vb_tqp *qp, uint32_t rkey, uint64_t va,
					  const void *value)
{
	uint64_t addr;
	enum vb_reason reason = find(qp, rkey, va, 8, IBV_ACCESS_REMOTE_WRITE, &addr);

	DEMAND(va % 8 == 0);
	if (!reason)
		memcpy((void *)(uintptr_t)addr, value, 8);
	return reason;
}

enum vb_reason memory_remote_flush(struct vb_tqp *qp, uint32_t rkey, uint64_t va, uint64_t length,
				   uint32_t type, bool whole)
{
	uint64_t addr;

	DEMAND(type && type <= (IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT) && (whole || length));
	return find(qp, rkey, va, whole ? 1 : length, 0, &addr);
}

enum vb_reason memory_invalidate(struct vb_tqp *qp, uint32_t key)
{
	struct endpoint *e = endpoint_of(qp);

	if (!key || key != e->keys[1].key)
		return VB_REASON_INVALIDATE;
	e->keys[1].key = 0;
	return VB_REASON_NONE;
}
