/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The receive of the message in progress: taken, given back, completed. */
#include "transport/grh.h"
#include "transport/responder.h"
#include "transport/tqp.h"

struct vb_recv_wqe *vb_responder_recv(struct vb_tqp *qp)
{
	if (!qp->resp.recv)
		qp->resp.recv = qp->env->queue.recv_take(qp);
	return qp->resp.recv;
}

void vb_responder_recv_return(struct vb_tqp *qp)
{
	if (qp->resp.recv)
		qp->env->queue.recv_untake(qp, qp->resp.recv);
	qp->resp.recv = NULL;
}

void vb_responder_recv_done(struct vb_tqp *qp, const struct vb_run *run, enum ibv_wc_opcode opcode,
			    uint32_t byte_len)
{
	struct vb_recv_done done;

	done.wqe = qp->resp.recv;
	done.status = IBV_WC_SUCCESS;
	done.reason = VB_REASON_NONE;
	done.opcode = opcode;
	done.byte_len = byte_len;
	done.wc_flags = run->flags & VB_RUN_IMM   ? IBV_WC_WITH_IMM
			: run->flags & VB_RUN_INV ? IBV_WC_WITH_INV
						  : 0;
	done.imm = run->flags & (VB_RUN_IMM | VB_RUN_INV) ? run->imm : 0;
	done.src_qp = run->src_qpn;
	done.header_kind = 0;
	done.solicited = run->flags & VB_RUN_SOLICITED;
	if (qp->service == VB_SERVICE_UD) {
		done.wc_flags |= IBV_WC_GRH;
		done.header_kind = vb_grh_kind(&run->path);
	}
	qp->resp.recv = NULL;
	qp->env->queue.recv_done(qp, &done);
}

void vb_responder_recv_fail(struct vb_tqp *qp, enum ibv_wc_status status, enum vb_reason reason)
{
	struct vb_recv_done done = {
		.wqe = qp->resp.recv,
		.status = status,
		.reason = reason,
		.opcode = IBV_WC_RECV,
	};

	if (!done.wqe)
		return;
	qp->resp.recv = NULL;
	qp->env->queue.recv_done(qp, &done);
}
