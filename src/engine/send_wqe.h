/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Send queue entries, for both ways of posting: ibv_post_send(3) and ibv_wr_*(3). */
#ifndef VB_ENGINE_SEND_WQE_H
#define VB_ENGINE_SEND_WQE_H

#include "base/seldom.h"
#include "object/ah.h"
#include "engine/qp.h"
#include "transport/operation.h"
#include "transport/wqe.h"

/*
 * The data of ibv_wr_atomic_write(3), kept in the entry, whatever room for inline data the queue
 * has.
 */
#define VB_ATOMIC_WRITE_BYTES 8u

/* Entries that are posted together. wr_lock is held from the first entry to handing over. */
struct vb_send_batch {
	uint32_t first; /* sq_posted when the batch was begun */
	uint32_t count;
	bool binds; /* some of them bind windows */
};

/* The entry behind those of the batch. NULL: the queue is full (the reason is recorded). */
struct vb_send_wqe *vb_send_wqe_full(const struct vb_qp *qp);
static inline struct vb_send_wqe *vb_send_wqe_next(struct vb_qp *qp,
						   const struct vb_send_batch *batch)
{
	uint32_t index = batch->first + batch->count;

	if (VB_SELDOM(
		    index - qp->sq_internal -
			    atomic_load_explicit(&qp->completions.released, memory_order_acquire) >=
		    qp->sq_max))
		return vb_send_wqe_full(qp);
	return vb_tqp_wqe(&qp->t, index);
}

/* Starts an entry: sets the fields that every operation has. */
static inline void vb_send_wqe_begin(const struct vb_qp *qp, struct vb_send_wqe *wqe,
				     uint64_t wr_id, uint8_t opcode, unsigned int flags)
{
	vb_send_wqe_clear(wqe);
	wqe->wr_id = wr_id;
	wqe->opcode = opcode;
	wqe->signaled = qp->sq_sig_all || (flags & IBV_SEND_SIGNALED);
	wqe->solicited = (flags & IBV_SEND_SOLICITED) != 0;
	wqe->fence = (flags & IBV_SEND_FENCE) != 0;
	wqe->ip_csum = (flags & IBV_SEND_IP_CSUM) != 0;
}

/*
 * Whether a request may have so many elements, or so many bytes in their place. 0, or EINVAL with
 * the reason recorded; `call` is the verb's name.
 */
int vb_send_wqe_list_refuse(const struct vb_qp *qp, uint64_t num_sge, const char *call);
static inline int vb_send_wqe_may_list(const struct vb_qp *qp, uint64_t num_sge, const char *call)
{
	return VB_SELDOM(num_sge > qp->max_sge) ? vb_send_wqe_list_refuse(qp, num_sge, call) : 0;
}

int vb_send_wqe_inline_refuse(const struct vb_qp *qp, const struct vb_send_wqe *wqe,
			      uint64_t length, const char *call);
static inline int vb_send_wqe_may_inline(const struct vb_qp *qp, const struct vb_send_wqe *wqe,
					 uint64_t length, const char *call)
{
	return VB_SELDOM(!(vb_operation(wqe->opcode)->carries & VB_CARRIES_INLINE) ||
			 length > qp->max_inline)
		       ? vb_send_wqe_inline_refuse(qp, wqe, length, call)
		       : 0;
}

/* The request sends nothing: its completion has this status and reason. */
void vb_send_wqe_fault(struct vb_send_wqe *wqe, enum ibv_wc_status status, enum vb_reason reason);

/* Sets the destination of a datagram. */
void vb_send_wqe_address(struct vb_qp *qp, struct vb_send_wqe *wqe, const struct vb_ah *ah,
			 uint32_t qpn, uint32_t qkey);

/*
 * The entry binds `mw`, which gets its key when the entry is handed over. The room for data behind
 * the entry is free, and holds `mw` until then.
 */
void vb_send_wqe_bind(struct vb_send_wqe *wqe, struct ibv_mw *mw, struct vb_send_batch *batch);

/*
 * The entries are complete: hands them to the protocol. Takes the engine's lock, under which the
 * queue pair's state decides whether they are posted. Returns 0 or EINVAL.
 */
int vb_send_hand_over(struct vb_qp *qp, const struct vb_send_batch *batch);

#endif
