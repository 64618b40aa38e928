/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The memory of a side: keys, scatter and gather, the responder's accesses, direct access. */
#include <string.h>

#include "world.h"

static struct sim_side *side_of(struct vb_tqp *qp)
{
	return (struct sim_side *)(void *)qp;
}

/* Copies between a list of elements and a buffer, from `offset` of the list on. */
static enum vb_reason copy(struct sim_side *s, const struct ibv_sge *sge, uint32_t count,
			   uint64_t offset, uint8_t *buffer, uint32_t length, bool in)
{
	for (uint32_t i = 0; i < count && length; i++) {
		uint32_t part;

		if (offset >= sge[i].length) {
			offset -= sge[i].length;
			continue;
		}
		part = sge[i].length - (uint32_t)offset;
		if (part > length)
			part = length;
		if (sge[i].lkey != SIM_KEY_ALL)
			return VB_REASON_LKEY_UNKNOWN;
		if (in)
			memcpy(s->memory + sge[i].addr + offset, buffer, part);
		else
			memcpy(buffer, s->memory + sge[i].addr + offset, part);
		buffer += part;
		length -= part;
		offset = 0;
	}
	if (length)
		world_fault(s->world, "side %u copies %u bytes beyond a list of elements",
			    s->number, length);
	return VB_REASON_NONE;
}

enum vb_reason memory_gather_check(struct vb_tqp *qp, struct vb_send_wqe *wqe)
{
	(void)qp;
	for (uint32_t i = 0; i < wqe->num_sge; i++) {
		if (vb_send_wqe_sge(wqe)[i].length && vb_send_wqe_sge(wqe)[i].lkey != SIM_KEY_ALL)
			return VB_REASON_LKEY_UNKNOWN;
	}
	return VB_REASON_NONE;
}

enum vb_reason memory_gather(struct vb_tqp *qp, struct vb_send_wqe *wqe, uint64_t offset, void *dst,
			     uint32_t length)
{
	if (wqe->is_inline) {
		memcpy(dst, (const char *)vb_send_wqe_inline(wqe) + offset, length);
		return VB_REASON_NONE;
	}
	return copy(side_of(qp), vb_send_wqe_sge(wqe), wqe->num_sge, offset, dst, length, false);
}

enum vb_reason memory_scatter_response(struct vb_tqp *qp, struct vb_send_wqe *wqe, uint64_t offset,
				       const void *src, uint32_t length)
{
	uint8_t buffer[SIM_PACKET_BYTES];

	memcpy(buffer, src, length);
	return copy(side_of(qp), vb_send_wqe_sge(wqe), wqe->num_sge, offset, buffer, length, true);
}

enum vb_reason memory_recv_scatter(struct vb_tqp *qp, struct vb_recv_wqe *wqe, uint64_t offset,
				   const void *src, uint32_t length)
{
	uint8_t buffer[SIM_PACKET_BYTES];

	memcpy(buffer, src, length);
	return copy(side_of(qp), vb_recv_wqe_sge(wqe), wqe->num_sge, offset, buffer, length, true);
}

/*
 * Queues with odd and with even numbers belong to different protection domains. The responder must
 * name a queue before it uses its domain.
 */
enum vb_reason memory_srq_enter(struct vb_tqp *qp, uint32_t srqn)
{
	side_of(qp)->pd = 1 + (srqn & 1);
	return srqn > ORACLE_OPS + 1 ? VB_REASON_SRQ_UNKNOWN : VB_REASON_NONE;
}

static enum vb_reason find(struct vb_tqp *qp, uint32_t rkey, uint64_t va, uint64_t length,
			   uint32_t need, uint64_t *addr)
{
	struct sim_side *s = side_of(qp);
	unsigned int index = rkey >> 12;

	if (index < 1 || index > 4)
		return VB_REASON_RKEY_UNKNOWN;
	return vb_access_check(&s->keys[index - 1], rkey, s->world->config.xrc ? s->pd : 1, qp->qpn,
			       va, length, need, VB_ACCESS_REMOTE, addr);
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
	struct sim_side *s = side_of(qp);
	uint64_t addr;
	enum vb_reason reason = find(qp, rkey, va, length, IBV_ACCESS_REMOTE_WRITE, &addr);

	if (!reason && s->memory_gone)
		reason = VB_REASON_MEMORY_GONE;
	if (!reason)
		memcpy(s->memory + addr, src, length);
	return reason;
}

enum vb_reason memory_remote_read(struct vb_tqp *qp, uint32_t rkey, uint64_t va, void *dst,
				  uint32_t length)
{
	struct sim_side *s = side_of(qp);
	uint64_t addr;
	enum vb_reason reason = find(qp, rkey, va, length, IBV_ACCESS_REMOTE_READ, &addr);

	if (!reason && s->memory_gone)
		reason = VB_REASON_MEMORY_GONE;
	if (!reason)
		memcpy(dst, s->memory + addr, length);
	return reason;
}

enum vb_reason memory_remote_atomic(struct vb_tqp *qp, uint32_t rkey, uint64_t va,
				    bool compare_swap, uint64_t swap_add, uint64_t compare,
				    uint64_t *original)
{
	struct sim_side *s = side_of(qp);
	uint64_t addr;
	uint64_t value;
	enum vb_reason reason = find(qp, rkey, va, 8, IBV_ACCESS_REMOTE_ATOMIC, &addr);

	if (reason)
		return reason;
	if (s->memory_gone)
		return VB_REASON_MEMORY_GONE;
	memcpy(original, s->memory + addr, 8);
	value = compare_swap ? *original == compare ? swap_add : *original : *original + swap_add;
	memcpy(s->memory + addr, &value, 8);
	return VB_REASON_NONE;
}

enum vb_reason memory_remote_atomic_write(struct vb_tqp *qp, uint32_t rkey, uint64_t va,
					  const void *value)
{
	struct sim_side *s = side_of(qp);
	uint64_t addr;
	enum vb_reason reason = find(qp, rkey, va, 8, IBV_ACCESS_REMOTE_WRITE, &addr);

	if (!reason && s->memory_gone)
		reason = VB_REASON_MEMORY_GONE;
	if (!reason)
		memcpy(s->memory + addr, value, 8);
	return reason;
}

enum vb_reason memory_remote_flush(struct vb_tqp *qp, uint32_t rkey, uint64_t va, uint64_t length,
				   uint32_t type, bool whole)
{
	struct sim_side *s = side_of(qp);
	uint32_t need = (type & IBV_FLUSH_GLOBAL ? IBV_ACCESS_FLUSH_GLOBAL : 0) |
			(type & IBV_FLUSH_PERSISTENT ? IBV_ACCESS_FLUSH_PERSISTENT : 0);
	uint64_t addr;
	enum vb_reason reason =
		find(qp, rkey, whole ? SIM_IOVA : va, whole ? 1 : length, need, &addr);

	return !reason && s->memory_gone ? VB_REASON_MEMORY_GONE : reason;
}

enum vb_reason memory_invalidate(struct vb_tqp *qp, uint32_t key)
{
	(void)qp;
	return key == SIM_KEY_WINDOW ? VB_REASON_NONE : VB_REASON_INVALIDATE;
}

enum vb_reason memory_bind(struct vb_tqp *qp, const struct vb_send_wqe *wqe)
{
	(void)qp;
	return wqe->rkey == SIM_KEY_WRONG ? VB_REASON_BIND_WINDOW : VB_REASON_NONE;
}

static enum vb_direct direct_copy(struct sim_side *s, struct sim_side *to, struct vb_send_wqe *wqe)
{
	uint8_t buffer[SIM_PACKET_BYTES];
	uint32_t length = (uint32_t)wqe->length;
	bool writes = wqe->opcode == IBV_WR_RDMA_WRITE;
	uint32_t need = writes ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;
	uint64_t original;

	if (wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		bool swaps = wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

		if (wqe->remote_addr & 7 || !(to->qp.access & IBV_ACCESS_REMOTE_ATOMIC) ||
		    memory_remote_atomic(&to->qp, wqe->rkey, wqe->remote_addr, swaps,
					 swaps ? wqe->swap : wqe->compare_add, wqe->compare_add,
					 &original))
			return VB_DIRECT_DECLINED;
		return memory_scatter_response(&s->qp, wqe, 0, &original, 8) ? VB_DIRECT_DECLINED
									     : VB_DIRECT_DONE;
	}
	if (wqe->opcode == IBV_WR_ATOMIC_WRITE) {
		if (wqe->remote_addr & 7 || !(to->qp.access & IBV_ACCESS_REMOTE_WRITE) ||
		    memory_gather(&s->qp, wqe, 0, buffer, 8) ||
		    memory_remote_atomic_write(&to->qp, wqe->rkey, wqe->remote_addr, buffer))
			return VB_DIRECT_DECLINED;
		return VB_DIRECT_DONE;
	}
	if (wqe->opcode == IBV_WR_FLUSH)
		return VB_DIRECT_DECLINED;
	if (!(to->qp.access & need))
		return VB_DIRECT_DECLINED;
	if (length && memory_remote_check(&to->qp, wqe->rkey, wqe->remote_addr, length, need))
		return VB_DIRECT_DECLINED;
	if (writes)
		return memory_gather(&s->qp, wqe, 0, buffer, length) ||
				       (length &&
					memory_remote_write(&to->qp, wqe->rkey, wqe->remote_addr,
							    buffer, length))
			       ? VB_DIRECT_DECLINED
			       : VB_DIRECT_DONE;
	if (length && memory_remote_read(&to->qp, wqe->rkey, wqe->remote_addr, buffer, length))
		return VB_DIRECT_DECLINED;
	return length && memory_scatter_response(&s->qp, wqe, 0, buffer, length)
		       ? VB_DIRECT_DECLINED
		       : VB_DIRECT_DONE;
}

static bool is_up(const struct sim_side *s)
{
	return s->qp.state == IBV_QPS_RTR || s->qp.state == IBV_QPS_RTS ||
	       s->qp.state == IBV_QPS_SQD;
}

enum vb_direct memory_direct(struct vb_tqp *qp, struct vb_send_wqe *wqe)
{
	struct sim_side *s = side_of(qp);
	struct sim_side *to = sim_peer(s);
	struct world *w = s->world;
	enum vb_direct answer = VB_DIRECT_DECLINED;

	if (wqe->wr_id != s->completed)
		world_fault(w, "side %u: direct access for %llu with %u the oldest", s->number,
			    (unsigned long long)wqe->wr_id, s->completed);
	if (is_up(to)) {
		unsigned int luck = sim_below(w, 10);

		if (luck < 2)
			answer = VB_DIRECT_MORE;
		else if (luck < 7 && memory_gather_check(qp, wqe) == VB_REASON_NONE)
			answer = direct_copy(s, to, wqe);
	}
	trace_line(w, "%c: direct access for %llu: %s", 'A' + (int)s->number,
		   (unsigned long long)wqe->wr_id,
		   answer == VB_DIRECT_DONE   ? "done"
		   : answer == VB_DIRECT_MORE ? "more"
					      : "declined");
	return answer;
}

/* Any number of the entries that the protocol offers, in order. */
uint32_t memory_direct_list(struct vb_tqp *qp, struct vb_send_wqe *wqe)
{
	struct sim_side *s = side_of(qp);
	struct sim_side *to = sim_peer(s);
	uint32_t done = 0, most = sim_below(s->world, 5);

	if (wqe->wr_id != s->completed)
		world_fault(s->world,
			    "side %u: a list of direct access for %llu with %u the oldest",
			    s->number, (unsigned long long)wqe->wr_id, s->completed);
	if (!is_up(to) || (wqe->opcode != IBV_WR_RDMA_WRITE && wqe->opcode != IBV_WR_RDMA_READ))
		return 0;
	while (wqe && done < most && wqe->length &&
	       memory_gather_check(qp, wqe) == VB_REASON_NONE &&
	       direct_copy(s, to, wqe) == VB_DIRECT_DONE)
		wqe = vb_requester_alike(qp, ++done);
	trace_line(s->world, "%c: direct access for a list: %u done", 'A' + (int)s->number, done);
	return done;
}

/* Whether to wait is random here; what the protocol says of the requests in flight must be true. */
bool memory_direct_waits(struct vb_tqp *qp, const struct vb_send_wqe *wqe, bool two_sided)
{
	struct sim_side *s = side_of(qp);
	bool any = false;

	for (uint64_t id = s->completed; id < wqe->wr_id; id++) {
		uint8_t opcode = s->plan[id].opcode;

		any |= opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
		       opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	}
	if (any != two_sided)
		world_fault(s->world, "side %u: %s messages are said to be in flight before %llu",
			    s->number, two_sided ? "some" : "no", (unsigned long long)wqe->wr_id);
	return sim_chance(s->world, 500);
}
