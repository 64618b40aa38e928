/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names for log lines. */
#include "process/names.h"

#include <stdio.h>

#include "transport/run.h"

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

static const char *const operations[] = {
	NAME(VB_OP_, SEND),          NAME(VB_OP_, WRITE),        NAME(VB_OP_, READ_REQUEST),
	NAME(VB_OP_, READ_RESPONSE), NAME(VB_OP_, COMPARE_SWAP), NAME(VB_OP_, FETCH_ADD),
	NAME(VB_OP_, ATOMIC_ACK),    NAME(VB_OP_, ACK),          NAME(VB_OP_, DROP),
	NAME(VB_OP_, ATOMIC_WRITE),  NAME(VB_OP_, FLUSH),
};

#define BIT(name)                    \
	{                            \
		IBV_QP_##name, #name \
	}

static const struct {
	int bit;
	const char *name;
} mask_bits[] = {
	BIT(STATE),
	BIT(CUR_STATE),
	BIT(EN_SQD_ASYNC_NOTIFY),
	BIT(ACCESS_FLAGS),
	BIT(PKEY_INDEX),
	BIT(PORT),
	BIT(QKEY),
	BIT(AV),
	BIT(PATH_MTU),
	BIT(TIMEOUT),
	BIT(RETRY_CNT),
	BIT(RNR_RETRY),
	BIT(RQ_PSN),
	BIT(MAX_QP_RD_ATOMIC),
	BIT(ALT_PATH),
	BIT(MIN_RNR_TIMER),
	BIT(SQ_PSN),
	BIT(MAX_DEST_RD_ATOMIC),
	BIT(PATH_MIG_STATE),
	BIT(CAP),
	BIT(DEST_QPN),
	BIT(RATE_LIMIT),
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

const char *vb_run_op_name(uint8_t op)
{
	const char *name = op < sizeof(operations) / sizeof(operations[0]) ? operations[op] : NULL;

	return name ? name : "?";
}

const char *vb_qp_mask_names(int bits, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < sizeof(mask_bits) / sizeof(mask_bits[0]) && used < size; i++) {
		if (bits & mask_bits[i].bit)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " " : "",
						 mask_bits[i].name);
	}
	return text;
}
