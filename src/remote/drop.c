/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packets that are not delivered. */
#include "remote/drop.h"

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "host/node.h"
#include "process/names.h"

enum vb_reason vb_udp_no_part(struct vb_node *node, uint32_t qpn)
{
	const struct vb_page_qp *p = vb_node_qp_entry(node, qpn);
	uint32_t state = p ? __atomic_load_n(&p->state, __ATOMIC_RELAXED) : IBV_QPS_RESET;
	bool works = state > IBV_QPS_INIT && state < IBV_QPS_ERR;

	return works && __atomic_load_n(&p->service, __ATOMIC_RELAXED) != VB_SERVICE_UD
		       ? VB_REASON_DROP_SOURCE
		       : VB_REASON_DROP_STATE;
}

void vb_udp_drop(enum vb_reason reason, const struct vb_run *run)
{
	vb_note(reason, "packet for qp 0x%x: dropped %s psn 0x%x: %s", run->dest_qpn,
		vb_run_op_name(run->op), run->psn, vb_reason_text(reason));
}
