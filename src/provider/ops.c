/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The operations of the device, in the order of verbs/ops.h. */
#include "provider/ops.h"

#include "object/ah.h"
#include "object/async.h"
#include "memory/buf.h"
#include "object/comp_channel.h"
#include "raw/counters.h"
#include "engine/cq.h"
#include "memory/dm.h"
#include "memory/dmah.h"
#include "raw/flow.h"
#include "provider/import.h"
#include "provider/kinds.h"
#include "remote/mcast.h"
#include "memory/mr.h"
#include "memory/mw.h"
#include "object/pd.h"
#include "qp/comp_cntr.h"
#include "object/query.h"
#include "qp/mw_post.h"
#include "qp/qp.h"
#include "engine/srq.h"
#include "tag/srq.h"
#include "object/td.h"
#include "raw/wq.h"
#include "xrc/xrc.h"

const struct vb_ops vb_device_ops = {
	.query_device = vb_query_device,
	.query_port = vb_query_port,
	.query_port_speed = vb_query_port_speed,
	.query_gid_entry = vb_query_gid,
	.query_pkey = vb_query_pkey,
	.query_rt_values = vb_query_clock,

	.alloc_pd = vb_pd_alloc,
	.dealloc_pd = vb_pd_dealloc,
	.alloc_parent_domain = vb_parent_domain_alloc,
	.alloc_td = vb_td_alloc,
	.dealloc_td = vb_td_dealloc,

	.reg_mr = vb_mr_register,
	.rereg_mr = vb_mr_reregister,
	.dereg_mr = vb_mr_deregister,

	.alloc_dm = vb_dm_alloc,
	.free_dm = vb_dm_free,
	.copy_dm = vb_dm_copy,
	.reg_dm_mr = vb_dm_register,
	.reg_dmabuf_mr = vb_mr_register_dmabuf,
	.alloc_null_mr = vb_mr_alloc_null,
	.advise_mr = vb_mr_advise,
	.alloc_mw = vb_mw_alloc,
	.dealloc_mw = vb_mw_dealloc,
	.bind_mw = vb_mw_post_bind,
	.export_dm = vb_dm_export,

	.alloc_buf = vb_buf_alloc,
	.free_buf = vb_buf_free,
	.reg_buf_mr = vb_buf_register,
	.export_buf = vb_buf_export,
	.alloc_dmah = vb_dmah_alloc,
	.dealloc_dmah = vb_dmah_dealloc,
	.check_dmah = vb_dmah_check,

	.import_pd = vb_import_pd,
	.import_mr = vb_import_mr,
	.import_dm = vb_import_dm,

	.create_comp_channel = vb_comp_channel_create,
	.destroy_comp_channel = vb_comp_channel_destroy,
	.get_cq_event = vb_comp_channel_get_event,
	.get_async_event = vb_async_get,

	.create_cq = vb_cq_create,
	.resize_cq = vb_cq_resize,
	.modify_cq = vb_cq_modify,
	.retire_cq = vb_cq_retire,
	.free_cq = vb_cq_free,

	.create_srq = vb_kinds_create_srq,
	.modify_srq = vb_srq_modify,
	.query_srq = vb_srq_query,
	.retire_srq = vb_srq_retire,
	.free_srq = vb_srq_free,
	.post_srq_ops = vb_tm_post_ops,
	.get_srq_num = vb_srq_number,

	.open_xrcd = vb_xrcd_open,
	.close_xrcd = vb_xrcd_close,

	.create_qp = vb_kinds_create_qp,
	.open_qp = vb_xrc_qp_open,
	.query_qp = vb_qp_query,
	.modify_qp = vb_qp_modify,
	.query_qp_data_in_order = vb_qp_data_in_order,
	.modify_qp_rate_limit = vb_qp_modify_rate_limit,
	.set_ece = vb_qp_set_ece,
	.query_ece = vb_qp_query_ece,
	.retire_qp = vb_qp_retire,
	.free_qp = vb_qp_free,

	.query_comp_cntr_caps = vb_comp_cntr_caps,
	.create_comp_cntr = vb_comp_cntr_create,
	.destroy_comp_cntr = vb_comp_cntr_destroy,
	.change_comp_cntr = vb_comp_cntr_change,
	.read_comp_cntr = vb_comp_cntr_read,
	.attach_comp_cntr = vb_comp_cntr_attach,

	.create_flow = vb_flow_create,
	.destroy_flow = vb_flow_destroy,
	.create_counters = vb_counters_create,
	.destroy_counters = vb_counters_destroy,
	.attach_counters = vb_counters_attach,
	.read_counters = vb_counters_read,

	.create_wq = vb_wq_create,
	.modify_wq = vb_wq_modify,
	.retire_wq = vb_wq_retire,
	.free_wq = vb_wq_free,
	.create_rwq_ind_table = vb_rwq_table_create,
	.destroy_rwq_ind_table = vb_rwq_table_destroy,

	.create_ah = vb_ah_create,
	.destroy_ah = vb_ah_destroy,

	.attach_mcast = vb_mcast_attach,
	.detach_mcast = vb_mcast_detach,
};
