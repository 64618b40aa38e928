/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names of states. */
#include "cm/conn.h"

const char *vb_cm_state_name(enum vb_cm_state state)
{
	static const char *const names[VB_CM_STATE_COUNT] = {
		[VB_CM_IDLE] = "IDLE",
		[VB_CM_REQ_SENT] = "REQ_SENT",
		[VB_CM_REP_RCVD] = "REP_RCVD",
		[VB_CM_REQ_RCVD] = "REQ_RCVD",
		[VB_CM_REP_SENT] = "REP_SENT",
		[VB_CM_ESTABLISHED] = "ESTABLISHED",
		[VB_CM_DREQ_SENT] = "DREQ_SENT",
		[VB_CM_DREQ_RCVD] = "DREQ_RCVD",
		[VB_CM_TIMEWAIT] = "TIMEWAIT",
		[VB_CM_REJ_SENT] = "REJ_SENT",
		[VB_CM_SIDR_REQ_SENT] = "SIDR_REQ_SENT",
		[VB_CM_SIDR_REQ_RCVD] = "SIDR_REQ_RCVD",
		[VB_CM_SIDR_REP_SENT] = "SIDR_REP_SENT",
	};

	return (unsigned int)state < VB_CM_STATE_COUNT ? names[state] : "?";
}
