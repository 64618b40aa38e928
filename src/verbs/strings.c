/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names of values: ibv_event_type_str(3), ibv_wc_status_str(3) and the like. Never NULL. */
#include "verbs/face.h"

#define WORDS(table, value) words(table, sizeof(table) / sizeof((table)[0]), (long)(value))

static const char *words(const char *const *table, size_t count, long value)
{
	if (value < 0 || (size_t)value >= count || !table[value])
		return "unknown";
	return table[value];
}

VB_EXPORT const char *ibv_node_type_str(enum ibv_node_type node_type)
{
	static const char *const table[] = {
		[IBV_NODE_CA] = "channel adapter",
		[IBV_NODE_SWITCH] = "switch",
		[IBV_NODE_ROUTER] = "router",
		[IBV_NODE_RNIC] = "iWARP adapter",
		[IBV_NODE_USNIC] = "usNIC",
		[IBV_NODE_USNIC_UDP] = "usNIC over UDP",
		[IBV_NODE_UNSPECIFIED] = "unspecified",
	};

	return WORDS(table, node_type);
}

VB_EXPORT const char *ibv_port_state_str(enum ibv_port_state port_state)
{
	static const char *const table[] = {
		[IBV_PORT_NOP] = "unchanged", [IBV_PORT_DOWN] = "down",
		[IBV_PORT_INIT] = "init",     [IBV_PORT_ARMED] = "armed",
		[IBV_PORT_ACTIVE] = "active", [IBV_PORT_ACTIVE_DEFER] = "active deferred",
	};

	return WORDS(table, port_state);
}

VB_EXPORT const char *ibv_event_type_str(enum ibv_event_type event)
{
	static const char *const table[] = {
		[IBV_EVENT_CQ_ERR] = "CQ overrun or fault",
		[IBV_EVENT_QP_FATAL] = "QP fatal error",
		[IBV_EVENT_QP_REQ_ERR] = "QP received an invalid request",
		[IBV_EVENT_QP_ACCESS_ERR] = "QP received a request without access rights",
		[IBV_EVENT_COMM_EST] = "first packet arrived at QP",
		[IBV_EVENT_SQ_DRAINED] = "send queue drained",
		[IBV_EVENT_PATH_MIG] = "path migrated",
		[IBV_EVENT_PATH_MIG_ERR] = "path migration failed",
		[IBV_EVENT_DEVICE_FATAL] = "device fatal error",
		[IBV_EVENT_PORT_ACTIVE] = "port active",
		[IBV_EVENT_PORT_ERR] = "port down",
		[IBV_EVENT_LID_CHANGE] = "LID change",
		[IBV_EVENT_PKEY_CHANGE] = "P_Key table change",
		[IBV_EVENT_SM_CHANGE] = "subnet manager change",
		[IBV_EVENT_SRQ_ERR] = "SRQ fatal error",
		[IBV_EVENT_SRQ_LIMIT_REACHED] = "SRQ below its limit",
		[IBV_EVENT_QP_LAST_WQE_REACHED] = "last receive of QP completed",
		[IBV_EVENT_CLIENT_REREGISTER] = "subnet manager asks to register anew",
		[IBV_EVENT_GID_CHANGE] = "GID table change",
		[IBV_EVENT_WQ_FATAL] = "WQ fatal error",
		[IBV_EVENT_DEVICE_SPEED_CHANGE] = "link speed change",
	};

	return WORDS(table, event);
}

VB_EXPORT const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	static const char *const table[] = {
		[IBV_WC_SUCCESS] = "success",
		[IBV_WC_LOC_LEN_ERR] = "local length error",
		[IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
		[IBV_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
		[IBV_WC_LOC_PROT_ERR] = "local protection error",
		[IBV_WC_WR_FLUSH_ERR] = "work request flushed",
		[IBV_WC_MW_BIND_ERR] = "memory window bind error",
		[IBV_WC_BAD_RESP_ERR] = "bad response",
		[IBV_WC_LOC_ACCESS_ERR] = "local access error",
		[IBV_WC_REM_INV_REQ_ERR] = "remote invalid request error",
		[IBV_WC_REM_ACCESS_ERR] = "remote access error",
		[IBV_WC_REM_OP_ERR] = "remote operation error",
		[IBV_WC_RETRY_EXC_ERR] = "transport retries exceeded",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "receiver-not-ready retries exceeded",
		[IBV_WC_LOC_RDD_VIOL_ERR] = "local RDD violation",
		[IBV_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
		[IBV_WC_REM_ABORT_ERR] = "aborted by the remote side",
		[IBV_WC_INV_EECN_ERR] = "invalid EE context number",
		[IBV_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
		[IBV_WC_FATAL_ERR] = "fatal error",
		[IBV_WC_RESP_TIMEOUT_ERR] = "response timeout",
		[IBV_WC_GENERAL_ERR] = "general error",
		[IBV_WC_TM_ERR] = "tag matching error",
		[IBV_WC_TM_RNDV_INCOMPLETE] = "tag matching: rendezvous left to software",
	};

	return WORDS(table, status);
}
