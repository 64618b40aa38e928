/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Short names of operations and statuses for log lines: the enumerators without their prefix. */
#ifndef VB_PROCESS_NAMES_H
#define VB_PROCESS_NAMES_H

#include <infiniband/verbs.h>

const char *vb_wr_opcode_name(uint8_t opcode);            /* "RDMA_WRITE", "?" */
const char *vb_wc_status_name(enum ibv_wc_status status); /* "RETRY_EXC_ERR", "?" */

#endif
