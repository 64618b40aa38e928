/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Short names of operations and statuses for log lines: the enumerators without their prefix. */
#ifndef VB_PROCESS_NAMES_H
#define VB_PROCESS_NAMES_H

#include <stddef.h>

#include <infiniband/verbs.h>

const char *vb_wr_opcode_name(uint8_t opcode);            /* "RDMA_WRITE", "?" */
const char *vb_wc_status_name(enum ibv_wc_status status); /* "RETRY_EXC_ERR", "?" */
const char *vb_run_op_name(uint8_t op);                   /* of enum vb_op: "WRITE", "?" */

/* The names of mask bits of ibv_modify_qp(3): "AV PATH_MTU". Returns `text`. */
const char *vb_qp_mask_names(int bits, char *text, size_t size);

#endif
