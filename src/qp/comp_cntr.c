/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion counters: two numbers, attached to queue pairs for some of their operations until the
 * queue pairs are destroyed.
 */
#include "qp/comp_cntr.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/reason.h"
#include "engine/engines.h"
#include "object/context.h"
#include "process/limits.h"
#include "qp/parts.h"

struct vb_comp_cntr {
	struct ibv_comp_cntr cntr;
	enum ibv_comp_cntr_type type;
	_Atomic uint64_t done, failed; /* they wrap */
	_Atomic uint32_t qps;
};

static struct vb_comp_cntr *cntr_of(struct ibv_comp_cntr *cntr)
{
	return (struct vb_comp_cntr *)(void *)cntr;
}

static int cntr_check(struct ibv_comp_cntr *cntr)
{
	return vb_context_check(cntr->context, VB_HANDLE_COMP_CNTR, cntr->handle, cntr,
				"comp_cntr");
}

int vb_comp_cntr_caps(struct ibv_context *ctx, struct ibv_comp_cntr_caps *caps)
{
	(void)ctx;
	*caps = (struct ibv_comp_cntr_caps){
		.max_value = UINT64_MAX,
		.max_counters = VB_MAX_COMP_CNTR,
		.supported_qp_attach_ops = VB_COMP_CNTR_OPS,
	};
	return 0;
}

int vb_comp_cntr_create(struct ibv_context *ctx, const struct ibv_comp_cntr_init_attr *attr,
			struct ibv_comp_cntr **cntr)
{
	struct vb_comp_cntr *c = calloc(1, sizeof(*c));
	int err = c ? 0 : vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "create_comp_cntr");

	if (!err)
		err = vb_context_add(ctx, VB_HANDLE_COMP_CNTR, c, &c->cntr.handle);
	if (err) {
		free(c);
		return err;
	}
	c->type = attr->type;
	c->cntr.context = ctx;
	*cntr = &c->cntr;
	return 0;
}

int vb_comp_cntr_destroy(struct ibv_comp_cntr *cntr)
{
	struct vb_comp_cntr *c = cntr_of(cntr);
	int err = cntr_check(cntr);

	if (err)
		return err;
	if (atomic_load(&c->qps))
		return vb_refuse(EBUSY, VB_REASON_BUSY,
				 "destroy_comp_cntr: attached to %u queue pairs",
				 atomic_load(&c->qps));
	err = vb_context_remove(cntr->context, VB_HANDLE_COMP_CNTR, cntr->handle, c);
	if (!err)
		free(c);
	return err;
}

static _Atomic uint64_t *count_of(struct vb_comp_cntr *c, bool errors)
{
	return errors ? &c->failed : &c->done;
}

int vb_comp_cntr_change(struct ibv_comp_cntr *cntr, bool errors, bool set, uint64_t value)
{
	_Atomic uint64_t *count = count_of(cntr_of(cntr), errors);
	int err = cntr_check(cntr);

	if (err)
		return err;
	if (set)
		atomic_store(count, value);
	else
		atomic_fetch_add(count, value);
	return 0;
}

int vb_comp_cntr_read(struct ibv_comp_cntr *cntr, bool errors, uint64_t *value)
{
	int err = cntr_check(cntr);

	if (!err)
		*value = atomic_load(count_of(cntr_of(cntr), errors));
	return err;
}

static bool attached(const struct vb_qp *qp, const struct vb_comp_cntr *c)
{
	for (int i = 0; i < VB_COMP_CNTR_NUM_OPS; i++) {
		if (qp->counters->of[i] == c)
			return true;
	}
	return false;
}

/* Under the engine's lock. */
static int attach(struct vb_qp *qp, struct vb_comp_cntr *c, uint32_t op_mask)
{
	if (qp->t.state != IBV_QPS_RESET && qp->t.state != IBV_QPS_INIT)
		return vb_refuse(EINVAL, VB_REASON_QP_STATE,
				 "qp_attach_comp_cntr: qp 0x%x is beyond INIT", qp->t.qpn);
	if (op_mask & qp->counted)
		return vb_refuse(
			EBUSY, VB_REASON_BUSY,
			"qp_attach_comp_cntr: qp 0x%x: operations 0x%x are counted already",
			qp->t.qpn, op_mask & qp->counted);
	if (!qp->counters)
		qp->counters = calloc(1, sizeof(*qp->counters));
	if (!qp->counters)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "qp_attach_comp_cntr");
	if (!attached(qp, c))
		atomic_fetch_add(&c->qps, 1);
	for (int i = 0; i < VB_COMP_CNTR_NUM_OPS; i++) {
		if (op_mask & 1u << i)
			qp->counters->of[i] = c;
	}
	qp->counted |= op_mask;
	/*
	 * This process does not see what peers do by direct access: with such a counter they must
	 * ask the responder.
	 */
	qp->t.tells = qp->counted & VB_COMP_CNTR_REMOTE_OPS;
	vb_qp_publish(qp);
	return 0;
}

int vb_comp_cntr_attach(struct ibv_qp *ibqp, struct ibv_comp_cntr *cntr, uint32_t op_mask)
{
	struct vb_qp *qp = vb_qp_of(ibqp);
	int err = vb_context_check(ibqp->context, VB_HANDLE_QP, ibqp->handle, qp, "qp");

	if (!err)
		err = vb_context_check(ibqp->context, VB_HANDLE_COMP_CNTR, cntr->handle, cntr,
				       "comp_cntr");
	if (err)
		return err;
	if (ibqp->qp_type == IBV_QPT_XRC_RECV)
		return vb_refuse(ENOTSUP, VB_REASON_UNSUPPORTED,
				 "qp_attach_comp_cntr: an XRC receive queue pair has many owners");
	vb_engine_take(qp->engine);
	err = attach(qp, cntr_of(cntr), op_mask);
	vb_lock_release(&qp->engine->lock);
	return err;
}

void vb_comp_cntr_release(struct vb_qp *qp)
{
	for (int i = 0; qp->counters && i < VB_COMP_CNTR_NUM_OPS; i++) {
		struct vb_comp_cntr *c = qp->counters->of[i];

		qp->counters->of[i] = NULL;
		if (c && !attached(qp, c))
			atomic_fetch_sub(&c->qps, 1);
	}
}

void vb_comp_cntr_count(struct vb_qp *qp, uint32_t op, uint64_t bytes, bool ok)
{
	if (!(qp->counted & op))
		return;
	struct vb_comp_cntr *c = qp->counters->of[__builtin_ctz(op)];

	if (ok)
		atomic_fetch_add_explicit(&c->done, c->type == IBV_COMP_CNTR_TYPE_BYTES ? bytes : 1,
					  memory_order_relaxed);
	else
		atomic_fetch_add_explicit(&c->failed, 1, memory_order_relaxed);
}

uint32_t vb_comp_cntr_op(uint8_t wr_opcode)
{
	switch (wr_opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		return IBV_QP_ATTACH_COMP_CNTR_OP_SEND;
	case IBV_WR_RDMA_READ:
		return IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE;
	default:
		return 0;
	}
}

const struct vb_object_type vb_comp_cntr_type = {
	.name = "comp_cntr",
	.limit = VB_MAX_COMP_CNTR,
};
