/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of this device's contexts; each type of objects belongs to its room. */
#include "provider/table.h"

#include "engine/cq.h"
#include "engine/fastpath.h"
#include "engine/paths.h"
#include "engine/srq.h"
#include "memory/buf.h"
#include "memory/dm.h"
#include "memory/dmah.h"
#include "memory/mr.h"
#include "memory/mw.h"
#include "object/ah.h"
#include "object/pd.h"
#include "object/td.h"
#include "provider/ops.h"
#include "qp/comp_cntr.h"
#include "qp/qp.h"
#include "raw/counters.h"
#include "raw/flow.h"
#include "raw/wq.h"
#include "xrc/xrc.h"

static void set_slots(struct ibv_context_ops *slots)
{
	slots->post_send = vb_post_send;
	slots->post_recv = vb_post_recv;
	slots->post_srq_recv = vb_post_srq_recv;
	slots->poll_cq = vb_poll_cq;
	slots->req_notify_cq = vb_req_notify_cq;
}

static void closing(struct vb_context *c)
{
	vb_paths_log(c->vctx.context.device->name);
}

const struct vb_context_table vb_context_table = {
	.ops = &vb_device_ops,
	.forked_ops = &vb_forked_ops,
	.set_slots = set_slots,
	.set_forked_slots = vb_forked_slots,
	.types =
		{
			[VB_HANDLE_FLOW] = &vb_flow_type,
			[VB_HANDLE_QP] = &vb_qp_type,
			[VB_HANDLE_SRQ] = &vb_srq_type,
			[VB_HANDLE_MW] = &vb_mw_type,
			[VB_HANDLE_MR] = &vb_mr_type,
			[VB_HANDLE_DM] = &vb_dm_type,
			[VB_HANDLE_XRCD] = &vb_xrcd_type,
			[VB_HANDLE_TD] = &vb_td_type,
			[VB_HANDLE_PD] = &vb_pd_type,
			[VB_HANDLE_CQ] = &vb_cq_type,
			[VB_HANDLE_AH] = &vb_ah_type,
			[VB_HANDLE_BUF] = &vb_buf_type,
			[VB_HANDLE_DMAH] = &vb_dmah_type,
			[VB_HANDLE_COUNTERS] = &vb_counters_type,
			[VB_HANDLE_WQ] = &vb_wq_type,
			[VB_HANDLE_RWQ_TABLE] = &vb_rwq_table_type,
			[VB_HANDLE_COMP_CNTR] = &vb_comp_cntr_type,
		},
	.closing = closing,
};
