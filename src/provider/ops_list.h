/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Each operation of verbs/ops.h, in its order: what does it, and what does it for a context that
 * was inherited through fork and not re-opened. Both tables are made of this list, so that neither
 * lacks an entry that the other has. NULL: cannot be reached there, since the retire_*() before it
 * refuses.
 */
#ifndef VB_PROVIDER_OPS_LIST_H
#define VB_PROVIDER_OPS_LIST_H

/* clang-format off */
#define VB_OPS(X) \
	X(query_device,           vb_query_device,           vb_query_device) \
	X(query_port,             vb_query_port,             vb_query_port) \
	X(query_port_speed,       vb_query_port_speed,       vb_query_port_speed) \
	X(query_gid_entry,        vb_query_gid,              vb_query_gid) \
	X(query_pkey,             vb_query_pkey,             vb_query_pkey) \
	X(query_rt_values,        vb_query_clock,            vb_query_clock) \
	X(alloc_pd,               vb_pd_alloc,               vb_reopen_alloc_pd) \
	X(dealloc_pd,             vb_pd_dealloc,             vb_pd_dealloc) \
	X(alloc_parent_domain,    vb_parent_domain_alloc,    vb_reopen_alloc_parent_domain) \
	X(alloc_td,               vb_td_alloc,               vb_reopen_alloc_td) \
	X(dealloc_td,             vb_td_dealloc,             vb_td_dealloc) \
	X(reg_mr,                 vb_mr_register,            vb_reopen_reg_mr) \
	X(rereg_mr,               vb_mr_reregister,          refuse_rereg_mr) \
	X(dereg_mr,               vb_mr_deregister,          refuse_dereg_mr) \
	X(alloc_dm,               vb_dm_alloc,               vb_reopen_alloc_dm) \
	X(free_dm,                vb_dm_free,                refuse_free_dm) \
	X(copy_dm,                vb_dm_copy,                refuse_copy_dm) \
	X(reg_dm_mr,              vb_dm_register,            refuse_reg_dm_mr) \
	X(reg_dmabuf_mr,          vb_mr_register_dmabuf,     vb_reopen_reg_dmabuf_mr) \
	X(alloc_null_mr,          vb_mr_alloc_null,          vb_reopen_alloc_null_mr) \
	X(advise_mr,              vb_mr_advise,              refuse_advise_mr) \
	X(alloc_mw,               vb_mw_alloc,               vb_reopen_alloc_mw) \
	X(dealloc_mw,             vb_mw_dealloc,             refuse_dealloc_mw) \
	X(bind_mw,                vb_mw_post_bind,           refuse_bind_mw) \
	X(export_dm,              vb_dm_export,              refuse_export_dm) \
	X(alloc_buf,              vb_buf_alloc,              vb_reopen_alloc_buf) \
	X(free_buf,               vb_buf_free,               refuse_change_buf) \
	X(reg_buf_mr,             vb_buf_register,           refuse_reg_buf_mr) \
	X(export_buf,             vb_buf_export,             refuse_change_buf) \
	X(alloc_dmah,             vb_dmah_alloc,             vb_reopen_alloc_dmah) \
	X(dealloc_dmah,           vb_dmah_dealloc,           refuse_dealloc_dmah) \
	X(check_dmah,             vb_dmah_check,             refuse_check_dmah) \
	X(import_pd,              vb_import_pd,              refuse_import_pd) \
	X(import_mr,              vb_import_mr,              refuse_import_mr) \
	X(import_dm,              vb_import_dm,              refuse_import_dm) \
	X(create_comp_channel,    vb_comp_channel_create,    vb_reopen_create_comp_channel) \
	X(destroy_comp_channel,   vb_comp_channel_destroy,   refuse_destroy_comp_channel) \
	X(get_cq_event,           vb_comp_channel_get_event, refuse_get_cq_event) \
	X(get_async_event,        vb_async_get,              refuse_get_async_event) \
	X(create_cq,              vb_cq_create,              vb_reopen_create_cq) \
	X(resize_cq,              vb_cq_resize,              refuse_resize_cq) \
	X(modify_cq,              vb_cq_modify,              refuse_modify_cq) \
	X(retire_cq,              vb_cq_retire,              refuse_destroy_cq) \
	X(free_cq,                vb_cq_free,                NULL) \
	X(create_srq,             vb_kinds_create_srq,       vb_reopen_create_srq) \
	X(modify_srq,             vb_srq_modify,             refuse_modify_srq) \
	X(query_srq,              vb_srq_query,              refuse_query_srq) \
	X(retire_srq,             vb_srq_retire,             refuse_destroy_srq) \
	X(free_srq,               vb_srq_free,               NULL) \
	X(post_srq_ops,           vb_tm_post_ops,            refuse_post_srq_ops) \
	X(get_srq_num,            vb_srq_number,             refuse_get_srq_num) \
	X(open_xrcd,              vb_xrcd_open,              vb_reopen_open_xrcd) \
	X(close_xrcd,             vb_xrcd_close,             refuse_close_xrcd) \
	X(create_qp,              vb_kinds_create_qp,        vb_reopen_create_qp) \
	X(open_qp,                vb_xrc_qp_open,            refuse_open_qp) \
	X(query_qp,               vb_qp_query,               refuse_query_qp) \
	X(modify_qp,              vb_qp_modify,              refuse_modify_qp) \
	X(query_qp_data_in_order, vb_qp_data_in_order,       no_order) \
	X(modify_qp_rate_limit,   vb_qp_modify_rate_limit,   refuse_rate_limit) \
	X(set_ece,                vb_qp_set_ece,             refuse_ece) \
	X(query_ece,              vb_qp_query_ece,           refuse_ece) \
	X(retire_qp,              vb_qp_retire,              refuse_destroy_qp) \
	X(free_qp,                vb_qp_free,                NULL) \
	X(query_comp_cntr_caps,   vb_comp_cntr_caps,         vb_comp_cntr_caps) \
	X(create_comp_cntr,       vb_comp_cntr_create,       vb_reopen_create_comp_cntr) \
	X(destroy_comp_cntr,      vb_comp_cntr_destroy,      refuse_destroy_comp_cntr) \
	X(change_comp_cntr,       vb_comp_cntr_change,       refuse_change_comp_cntr) \
	X(read_comp_cntr,         vb_comp_cntr_read,         refuse_read_comp_cntr) \
	X(attach_comp_cntr,       vb_comp_cntr_attach,       refuse_attach_comp_cntr) \
	X(create_flow,            vb_flow_create,            refuse_create_flow) \
	X(destroy_flow,           vb_flow_destroy,           refuse_destroy_flow) \
	X(create_counters,        vb_counters_create,        vb_reopen_create_counters) \
	X(destroy_counters,       vb_counters_destroy,       refuse_destroy_counters) \
	X(attach_counters,        vb_counters_attach,        refuse_attach_counters) \
	X(read_counters,          vb_counters_read,          refuse_read_counters) \
	X(create_wq,              vb_wq_create,              vb_reopen_create_wq) \
	X(modify_wq,              vb_wq_modify,              refuse_modify_wq) \
	X(retire_wq,              vb_wq_retire,              refuse_destroy_wq) \
	X(free_wq,                vb_wq_free,                NULL) \
	X(create_rwq_ind_table,   vb_rwq_table_create,       vb_reopen_create_rwq_ind_table) \
	X(destroy_rwq_ind_table,  vb_rwq_table_destroy,      refuse_destroy_rwq_ind_table) \
	X(create_ah,              vb_ah_create,              vb_reopen_create_ah) \
	X(destroy_ah,             vb_ah_destroy,             refuse_destroy_ah) \
	X(attach_mcast,           vb_mcast_attach,           refuse_change_mcast) \
	X(detach_mcast,           vb_mcast_detach,           refuse_change_mcast)
/* clang-format on */

#endif
