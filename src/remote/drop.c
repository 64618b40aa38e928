/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packets that are not delivered. */
#include "remote/drop.h"

#include "process/names.h"

void vb_udp_drop(enum vb_reason reason, const struct vb_run *run)
{
	vb_note(reason, "packet for qp 0x%x: dropped %s psn 0x%x: %s", run->dest_qpn,
		vb_run_op_name(run->op), run->psn, vb_reason_text(reason));
}
