/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The masks of qp_state.h. They stand apart for programs that are not linked with the library. */
#include "support/qp_state.h"

static int to_init(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RAW_PACKET:
		return IBV_QP_PORT;
	case IBV_QPT_UD:
		return IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	default:
		return IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	}
}

static int to_rtr(enum ibv_qp_type type)
{
	int connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	switch (type) {
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_UD:
		return 0;
	case IBV_QPT_RC:
	case IBV_QPT_XRC_RECV:
		return connected | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	default:
		return connected;
	}
}

static int to_rts(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RAW_PACKET:
		return 0;
	case IBV_QPT_RC:
	case IBV_QPT_XRC_SEND:
		return IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC;
	case IBV_QPT_XRC_RECV:
		return IBV_QP_SQ_PSN | IBV_QP_TIMEOUT;
	default:
		return IBV_QP_SQ_PSN;
	}
}

int qp_step_mask(enum ibv_qp_type type, enum ibv_qp_state to)
{
	switch (to) {
	case IBV_QPS_INIT:
		return IBV_QP_STATE | to_init(type);
	case IBV_QPS_RTR:
		return IBV_QP_STATE | to_rtr(type);
	case IBV_QPS_RTS:
		return IBV_QP_STATE | to_rts(type);
	default:
		return IBV_QP_STATE;
	}
}
