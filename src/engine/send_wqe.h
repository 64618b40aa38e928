/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Send queue entries, for both ways of posting: ibv_post_send(3) and ibv_wr_*(3). */
#ifndef VB_ENGINE_SEND_WQE_H
#define VB_ENGINE_SEND_WQE_H

#include "object/ah.h"
#include "engine/qp.h"
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
struct vb_send_wqe *vb_send_wqe_next(struct vb_qp *qp, const struct vb_send_batch *batch);

/* Starts an entry: sets the fields that every operation has. */
void vb_send_wqe_begin(struct vb_qp *qp, struct vb_send_wqe *wqe, uint64_t wr_id, uint8_t opcode,
		       unsigned int flags);

/*
 * Whether a request may have so many elements, or so many bytes in their place. 0, or EINVAL with
 * the reason recorded; `call` is the verb's name.
 */
int vb_send_wqe_may_list(const struct vb_qp *qp, uint64_t num_sge, const char *call);
int vb_send_wqe_may_inline(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint64_t length,
			   const char *call);

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
