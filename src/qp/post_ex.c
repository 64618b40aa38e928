/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_wr_*(3): a batch is built entry by entry between start and complete. complete alone reports a
 * fault of any entry, and then discards the whole batch. The queue pair's send side is held from
 * start to complete or abort.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "engine/send_wqe.h"
#include "qp/parts.h"
#include "qp/mw_post.h"
#include "qp/qp.h"

static struct vb_qp *qp_of(struct ibv_qp_ex *ex)
{
	return (struct vb_qp *)(void *)ex;
}

/* Later calls belong to no batch. */
static void batch_close(struct vb_qp *qp)
{
	qp->builder->open = false;
	qp->builder->current = NULL;
	qp->builder->error = EINVAL;
}

static void fail(struct vb_qp *qp, int err)
{
	if (!qp->builder->error)
		qp->builder->error = err;
	qp->builder->current = NULL;
}

static struct vb_send_wqe *begin(struct ibv_qp_ex *ex, uint8_t opcode)
{
	struct vb_qp *qp = qp_of(ex);

	qp->builder->current = NULL;
	if (qp->builder->error)
		return NULL;
	struct vb_send_wqe *wqe = vb_send_wqe_next(qp, &qp->builder->batch);

	if (!wqe) {
		fail(qp, ENOMEM);
		return NULL;
	}
	vb_send_wqe_begin(qp, wqe, ex->wr_id, opcode, ex->wr_flags);
	wqe->peer_hint = VB_HINT_NOWHERE; /* a datagram without an address has no destination */
	qp->builder->batch.count++;
	qp->builder->current = wqe;
	return wqe;
}

/*
 * The request that a setter applies to. A setter without one is a fault of the batch, unless the
 * batch has an earlier fault.
 */
static struct vb_send_wqe *current(struct vb_qp *qp, const char *setter)
{
	if (!qp->builder->current && !qp->builder->error) {
		vb_note_refused(EINVAL, VB_REASON_ARG, "%s: qp 0x%x: no request was begun", setter,
				qp->t.qpn);
		fail(qp, EINVAL);
	}
	return qp->builder->current;
}

/* For a request without data these setters have no meaning, as with ibv_post_send(3). */
static bool has_data(const struct vb_send_wqe *wqe)
{
	return vb_operation(wqe->opcode)->carries & VB_CARRIES_MEMORY;
}

static void begin_remote(struct ibv_qp_ex *ex, uint8_t opcode, uint32_t rkey, uint64_t remote_addr,
			 __be32 imm)
{
	struct vb_send_wqe *wqe = begin(ex, opcode);

	if (!wqe)
		return;
	wqe->rkey = rkey;
	wqe->remote_addr = remote_addr;
	wqe->imm = imm;
}

static void begin_invalidate(struct ibv_qp_ex *ex, uint8_t opcode, uint32_t key)
{
	struct vb_send_wqe *wqe = begin(ex, opcode);

	if (wqe)
		wqe->invalidate_key = key;
}

static void begin_atomic(struct ibv_qp_ex *ex, uint8_t opcode, uint32_t rkey, uint64_t remote_addr,
			 uint64_t compare_add, uint64_t swap)
{
	begin_remote(ex, opcode, rkey, remote_addr, 0);
	struct vb_send_wqe *wqe = qp_of(ex)->builder->current;

	if (!wqe)
		return;
	wqe->compare_add = compare_add;
	wqe->swap = swap;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	begin_remote(ex, IBV_WR_SEND_WITH_IMM, 0, 0, imm);
}

/* No queue pair is made with this operation: it fails as IBV_WR_TSO does. */
static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	(void)hdr;
	(void)hdr_sz;
	(void)mss;
	begin(ex, IBV_WR_TSO);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	begin_invalidate(ex, IBV_WR_SEND_WITH_INV, invalidate_rkey);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	begin_invalidate(ex, IBV_WR_LOCAL_INV, invalidate_rkey);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct vb_qp *qp = qp_of(ex);
	struct vb_send_wqe *wqe = begin(ex, IBV_WR_BIND_MW);
	int err = wqe ? -vb_mw_fill(wqe, mw, rkey, info) : 0;

	if (err)
		fail(qp, err);
	if (!wqe || err)
		return;
	vb_send_wqe_bind(wqe, mw, &qp->builder->batch);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_remote(ex, IBV_WR_RDMA_WRITE, rkey, remote_addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm)
{
	begin_remote(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr, imm);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_remote(ex, IBV_WR_RDMA_READ, rkey, remote_addr, 0);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	begin_atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	begin_atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			    const void *value)
{
	begin_remote(ex, IBV_WR_ATOMIC_WRITE, rkey, remote_addr, 0);
	struct vb_send_wqe *wqe = qp_of(ex)->builder->current;

	if (!wqe)
		return;
	if (!value) {
		vb_note_refused(EINVAL, VB_REASON_ARG, "wr_atomic_write: qp 0x%x: no value",
				qp_of(ex)->t.qpn);
		fail(qp_of(ex), EINVAL);
		return;
	}
	memcpy(vb_send_wqe_inline(wqe), value, VB_ATOMIC_WRITE_BYTES);
	wqe->is_inline = 1;
	wqe->length = VB_ATOMIC_WRITE_BYTES;
}

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t length,
		     uint8_t type, uint8_t level)
{
	struct vb_qp *qp = qp_of(ex);

	begin_remote(ex, IBV_WR_FLUSH, rkey, remote_addr, 0);
	struct vb_send_wqe *wqe = qp->builder->current;

	if (!wqe)
		return;
	wqe->flush_length = length;
	wqe->feth = VB_FETH(type, level);
	if (type && type <= (IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT) && level <= IBV_FLUSH_MR)
		return;
	vb_note_refused(EINVAL, VB_REASON_FLUSH_TYPE, "wr_flush: qp 0x%x: type 0x%x, level %u",
			qp->t.qpn, type, level);
	fail(qp, EINVAL);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *list)
{
	struct vb_qp *qp = qp_of(ex);
	struct vb_send_wqe *wqe = current(qp, "wr_set_sge_list");

	if (!wqe || !has_data(wqe))
		return;
	int err = vb_send_wqe_may_list(qp, num_sge, "wr_set_sge_list");

	if (err) {
		fail(qp, err);
		return;
	}
	wqe->num_sge = (uint32_t)num_sge;
	wqe->is_inline = 0;
	wqe->length = 0;
	for (size_t i = 0; i < num_sge; i++) {
		vb_send_wqe_sge(wqe)[i] = list[i];
		wqe->length += list[i].length;
	}
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

	wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *list)
{
	struct vb_qp *qp = qp_of(ex);
	struct vb_send_wqe *wqe = current(qp, "wr_set_inline_data");
	size_t length = 0;

	if (!wqe || !has_data(wqe))
		return;
	for (size_t i = 0; i < num_buf && length <= qp->max_inline; i++)
		length = list[i].length < SIZE_MAX - length ? length + list[i].length : SIZE_MAX;
	int err = vb_send_wqe_may_inline(qp, wqe, length, "wr_set_inline_data");

	if (err) {
		fail(qp, err);
		return;
	}
	char *to = vb_send_wqe_inline(wqe);

	for (size_t i = 0; i < num_buf; i++) {
		memcpy(to, list[i].addr, list[i].length);
		to += list[i].length;
	}
	wqe->is_inline = 1;
	wqe->num_sge = 0;
	wqe->length = length;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = {.addr = addr, .length = length};

	wr_set_inline_data_list(ex, 1, &buf);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	struct vb_qp *qp = qp_of(ex);

	if (!current(qp, "wr_set_ud_addr"))
		return;
	if (!ah) {
		vb_note_refused(EINVAL, VB_REASON_ARG, "wr_set_ud_addr: qp 0x%x: no address handle",
				qp->t.qpn);
		fail(qp, EINVAL);
		return;
	}
	vb_send_wqe_address(qp, qp->builder->current, vb_ah_of(ah), remote_qpn, remote_qkey);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	struct vb_qp *qp = qp_of(ex);

	if (current(qp, "wr_set_xrc_srqn"))
		qp->builder->current->srqn = remote_srqn & VB_SRQN_MASK;
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct vb_qp *qp = qp_of(ex);

	vb_lock_take(&qp->wr_lock);
	qp->builder->open = true;
	qp->builder->batch = (struct vb_send_batch){.first = vb_tqp_posted(&qp->t)};
	qp->builder->error = 0;
	qp->builder->current = NULL;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct vb_qp *qp = qp_of(ex);
	int err;

	if (!qp->builder->open)
		return -vb_refuse(EINVAL, VB_REASON_ARG, "wr_complete: qp 0x%x: no wr_start before",
				  qp->t.qpn);
	err = qp->builder->error;
	if (!err)
		err = vb_send_hand_over(qp, &qp->builder->batch);
	batch_close(qp);
	vb_lock_release(&qp->wr_lock);
	return err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct vb_qp *qp = qp_of(ex);

	if (!qp->builder->open)
		return;
	batch_close(qp);
	vb_lock_release(&qp->wr_lock);
}

int vb_qp_ex_init(struct vb_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->u.ex;

	qp->builder = calloc(1, sizeof(*qp->builder));
	if (!qp->builder)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "create_qp");
	batch_close(qp);
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_send_tso = wr_send_tso;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_atomic_write = wr_atomic_write;
	ex->wr_flush = wr_flush;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	return 0;
}

static void inherited_start(struct ibv_qp_ex *ex)
{
	(void)ex;
}

static int inherited_complete(struct ibv_qp_ex *ex)
{
	return -vb_refuse(ENODEV, VB_REASON_FORKED, "wr_complete: qp 0x%x is the parent process's",
			  qp_of(ex)->t.qpn);
}

/*
 * wr_lock may be held for ever, and the send queue may be memory that parent and child share.
 * Therefore the builders return an error.
 */
void vb_qp_forked(void *object)
{
	struct vb_qp *qp = object;
	struct ibv_qp_ex *ex = &qp->u.ex;

	qp->inherited = true;
	if (!qp->builder)
		return;
	qp->builder->error = ENODEV;
	qp->builder->current = NULL;
	ex->wr_start = inherited_start;
	ex->wr_complete = inherited_complete;
	ex->wr_abort = inherited_start;
}
