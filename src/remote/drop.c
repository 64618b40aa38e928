/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packets that are not delivered. */
#include "remote/drop.h"

void vb_udp_drop(enum vb_reason reason, const struct vb_run *run)
{
	vb_note(reason, "packet for qp 0x%x op %u psn 0x%x: %s", run->dest_qpn, run->op, run->psn,
		vb_reason_text(reason));
}
