/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names for log lines. */
#include "process/names.h"

#define NAME(prefix, name) [prefix##name] = #name

static const char *const opcodes[] = {
	NAME(IBV_WR_, RDMA_WRITE), NAME(IBV_WR_, RDMA_WRITE_WITH_IMM),
	NAME(IBV_WR_, SEND),       NAME(IBV_WR_, SEND_WITH_IMM),
	NAME(IBV_WR_, RDMA_READ),  NAME(IBV_WR_, ATOMIC_CMP_AND_SWP),
	NAME(IBV_WR_, LOCAL_INV),  NAME(IBV_WR_, ATOMIC_FETCH_AND_ADD),
	NAME(IBV_WR_, BIND_MW),    NAME(IBV_WR_, SEND_WITH_INV),
	NAME(IBV_WR_, TSO),        NAME(IBV_WR_, DRIVER1),
	NAME(IBV_WR_, FLUSH),      NAME(IBV_WR_, ATOMIC_WRITE),
};

static const char *const statuses[] = {
	NAME(IBV_WC_, SUCCESS),           NAME(IBV_WC_, LOC_LEN_ERR),
	NAME(IBV_WC_, LOC_QP_OP_ERR),     NAME(IBV_WC_, LOC_PROT_ERR),
	NAME(IBV_WC_, WR_FLUSH_ERR),      NAME(IBV_WC_, MW_BIND_ERR),
	NAME(IBV_WC_, BAD_RESP_ERR),      NAME(IBV_WC_, LOC_ACCESS_ERR),
	NAME(IBV_WC_, REM_INV_REQ_ERR),   NAME(IBV_WC_, REM_ACCESS_ERR),
	NAME(IBV_WC_, REM_OP_ERR),        NAME(IBV_WC_, RETRY_EXC_ERR),
	NAME(IBV_WC_, RNR_RETRY_EXC_ERR),
};

const char *vb_wr_opcode_name(uint8_t opcode)
{
	const char *name = opcode < sizeof(opcodes) / sizeof(opcodes[0]) ? opcodes[opcode] : NULL;

	return name ? name : "?";
}

const char *vb_wc_status_name(enum ibv_wc_status status)
{
	const char *name = (unsigned int)status < sizeof(statuses) / sizeof(statuses[0])
				   ? statuses[status]
				   : NULL;

	return name ? name : "?";
}
