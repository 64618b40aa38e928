/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Transitions of a queue pair and their attribute masks, one row each. */
#include "transport/qp_state.h"

#include <stdint.h>

#define RC         (1u << IBV_QPT_RC)
#define UC         (1u << IBV_QPT_UC)
#define UD         (1u << IBV_QPT_UD)
#define RAW        (1u << IBV_QPT_RAW_PACKET)
#define XS         (1u << IBV_QPT_XRC_SEND)
#define XR         (1u << IBV_QPT_XRC_RECV)
#define ALL        (RC | UC | UD | XS | XR)
#define ANY        (ALL | RAW)
#define CONNECTED  (RC | UC | XS | XR)

#define BIT(state) (1u << (state))

#define ACC        IBV_QP_ACCESS_FLAGS
#define ALT        IBV_QP_ALT_PATH
#define AV         IBV_QP_AV
#define CUR        IBV_QP_CUR_STATE
#define DQPN       IBV_QP_DEST_QPN
#define MDRA       IBV_QP_MAX_DEST_RD_ATOMIC
#define MIG        IBV_QP_PATH_MIG_STATE
#define MRA        IBV_QP_MAX_QP_RD_ATOMIC
#define MRNR       IBV_QP_MIN_RNR_TIMER
#define MTU        IBV_QP_PATH_MTU
#define PKEY       IBV_QP_PKEY_INDEX
#define PORT       IBV_QP_PORT
#define QKEY       IBV_QP_QKEY
#define RATE       IBV_QP_RATE_LIMIT
#define RETRY      IBV_QP_RETRY_CNT
#define RNRR       IBV_QP_RNR_RETRY
#define RPSN       IBV_QP_RQ_PSN
#define SPSN       IBV_QP_SQ_PSN
#define TMO        IBV_QP_TIMEOUT

struct transition {
	uint16_t types;
	uint8_t from; /* bits of states */
	uint8_t to;
	int required;
	int optional;
};

#define NOT_RESET                                                                     \
	(BIT(IBV_QPS_INIT) | BIT(IBV_QPS_RTR) | BIT(IBV_QPS_RTS) | BIT(IBV_QPS_SQD) | \
	 BIT(IBV_QPS_SQE) | BIT(IBV_QPS_ERR))

static const struct transition transitions[] = {
	{ANY, BIT(IBV_QPS_RESET) | NOT_RESET, IBV_QPS_RESET, 0, 0},
	{ANY, NOT_RESET, IBV_QPS_ERR, 0, 0},

	{CONNECTED, BIT(IBV_QPS_RESET), IBV_QPS_INIT, PKEY | PORT | ACC, 0},
	{UD, BIT(IBV_QPS_RESET), IBV_QPS_INIT, PKEY | PORT | QKEY, 0},

	{RAW, BIT(IBV_QPS_RESET), IBV_QPS_INIT, PORT, 0},
	{RAW, BIT(IBV_QPS_INIT), IBV_QPS_RTR, 0, 0},
	{RAW, BIT(IBV_QPS_RTR), IBV_QPS_RTS, 0, RATE},
	{RAW, BIT(IBV_QPS_RTS), IBV_QPS_RTS, 0, RATE},
	{RAW, BIT(IBV_QPS_SQE), IBV_QPS_RTS, 0, CUR},

	{CONNECTED, BIT(IBV_QPS_INIT), IBV_QPS_INIT, 0, PKEY | PORT | ACC},
	{UD, BIT(IBV_QPS_INIT), IBV_QPS_INIT, 0, PKEY | PORT | QKEY},

	{RC | XR, BIT(IBV_QPS_INIT), IBV_QPS_RTR, AV | MTU | DQPN | RPSN | MDRA | MRNR,
	 ALT | ACC | PKEY},
	{UC | XS, BIT(IBV_QPS_INIT), IBV_QPS_RTR, AV | MTU | DQPN | RPSN, ALT | ACC | PKEY},
	{UD, BIT(IBV_QPS_INIT), IBV_QPS_RTR, 0, PKEY | QKEY},

	{RC, BIT(IBV_QPS_RTR), IBV_QPS_RTS, TMO | RETRY | RNRR | SPSN | MRA,
	 CUR | ALT | ACC | MRNR | MIG},
	{XS, BIT(IBV_QPS_RTR), IBV_QPS_RTS, TMO | RETRY | RNRR | SPSN | MRA, CUR | ALT | ACC | MIG},
	{XR, BIT(IBV_QPS_RTR), IBV_QPS_RTS, TMO | SPSN, CUR | ALT | ACC | MRNR | MIG},
	{UC, BIT(IBV_QPS_RTR), IBV_QPS_RTS, SPSN, CUR | ALT | ACC | MIG},
	{UD, BIT(IBV_QPS_RTR), IBV_QPS_RTS, SPSN, CUR | QKEY},

	{RC | XR, BIT(IBV_QPS_RTS) | BIT(IBV_QPS_SQD), IBV_QPS_RTS, 0,
	 CUR | ACC | ALT | MIG | MRNR},
	{UC | XS, BIT(IBV_QPS_RTS) | BIT(IBV_QPS_SQD), IBV_QPS_RTS, 0, CUR | ACC | ALT | MIG},
	{UD, BIT(IBV_QPS_RTS) | BIT(IBV_QPS_SQD), IBV_QPS_RTS, 0, CUR | QKEY},

	{ALL, BIT(IBV_QPS_RTS), IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},

	{RC, BIT(IBV_QPS_SQD), IBV_QPS_SQD, 0,
	 PORT | AV | TMO | RETRY | RNRR | MRA | MDRA | ALT | ACC | PKEY | MRNR | MIG},
	{XS, BIT(IBV_QPS_SQD), IBV_QPS_SQD, 0,
	 PORT | AV | TMO | RETRY | RNRR | MRA | ALT | ACC | PKEY | MIG},
	{XR, BIT(IBV_QPS_SQD), IBV_QPS_SQD, 0,
	 PORT | AV | TMO | MDRA | ALT | ACC | PKEY | MRNR | MIG},
	{UC, BIT(IBV_QPS_SQD), IBV_QPS_SQD, 0, AV | ALT | ACC | PKEY | MIG},
	{UD, BIT(IBV_QPS_SQD), IBV_QPS_SQD, 0, PKEY | QKEY},

	{UC, BIT(IBV_QPS_SQE), IBV_QPS_RTS, 0, CUR | ACC},
	{UD, BIT(IBV_QPS_SQE), IBV_QPS_RTS, 0, CUR | QKEY},
};

enum vb_reason vb_qp_state_check(enum ibv_qp_type type, enum ibv_qp_state from,
				 enum ibv_qp_state to, int mask, int *bits)
{
	const struct transition *t = transitions;
	const struct transition *end = t + sizeof(transitions) / sizeof(transitions[0]);

	*bits = 0;
	mask &= ~IBV_QP_STATE;
	/*
	 * The values come from the program. A value out of range means "no such transition"; it
	 * must not become a shift count.
	 */
	if ((unsigned int)type > IBV_QPT_XRC_RECV || (unsigned int)from > IBV_QPS_ERR)
		return VB_REASON_QP_TRANSITION;
	while (t != end &&
	       !(t->types & 1u << type && t->from & BIT(from) && t->to == (unsigned int)to))
		t++;
	if (t == end)
		return VB_REASON_QP_TRANSITION;
	*bits = t->required & ~mask;
	if (*bits)
		return VB_REASON_QP_ATTR_MISSING;
	*bits = mask & ~(t->required | t->optional);
	return *bits ? VB_REASON_QP_ATTR_EXTRA : VB_REASON_NONE;
}

const char *vb_qp_state_name(enum ibv_qp_state state)
{
	static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

	return (unsigned int)state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}
