/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The steps of qp_state.h. */
#include "support/qp_state.h"

#include <errno.h>

#include "support/check.h"

int qp_step(struct ibv_qp *qp, const struct ibv_qp_attr *attr, enum ibv_qp_state to)
{
	struct ibv_qp_attr step = *attr;

	step.qp_state = to;
	return ibv_modify_qp(qp, &step, qp_step_mask(qp->qp_type, to));
}

int qp_bring_to(struct ibv_qp *qp, const struct ibv_qp_attr *attr, enum ibv_qp_state to)
{
	int err;

	if (to == IBV_QPS_RESET)
		return qp_step(qp, attr, to);
	err = qp_step(qp, attr, IBV_QPS_INIT);
	if (!err && to != IBV_QPS_INIT && to != IBV_QPS_ERR)
		err = qp_step(qp, attr, IBV_QPS_RTR);
	if (!err && (to == IBV_QPS_RTS || to == IBV_QPS_SQD))
		err = qp_step(qp, attr, IBV_QPS_RTS);
	if (!err && (to == IBV_QPS_SQD || to == IBV_QPS_ERR))
		err = qp_step(qp, attr, to);
	return err;
}

struct ibv_qp_attr qp_attr_within(struct ibv_context *ctx, uint32_t dest)
{
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}},
	};

	CHECK_ZERO(ibv_query_gid(ctx, 1, 0, &attr.ah_attr.grh.dgid));
	return attr;
}

void qp_link_self(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = qp_attr_within(qp->context, qp->qp_num);

	CHECK_ZERO(qp_bring_to(qp, &attr, IBV_QPS_RTS));
}

void qp_move(struct ibv_qp *qp, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = {.qp_state = to};

	CHECK_ZERO(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

enum ibv_qp_state qp_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init = {0};
	struct ibv_qp_attr attr = {0};

	CHECK_ZERO(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}
