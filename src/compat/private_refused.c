/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The private symbols that only a provider of rdma-core calls, on behalf of a kernel device.
 *
 * Programs that are linked with such a provider (perftest, UCX, libfabric, pyverbs) do not start
 * unless every one of these symbols resolves. A provider of rdma-core never drives a device of
 * verbatim, so a call can only be a mistake. It is refused in the manner of its return type, and
 * the reason names it.
 */
#include "compat/symver.h"
#include "verbs/face.h"

/* The arguments are not read, so the callers' own prototypes do not matter. */
#define REFUSE(type, name, value)                \
	type vb_private_##name(void);            \
	VB_EXPORT type vb_private_##name(void)   \
	{                                        \
		int err = vb_refuse_verb(#name); \
                                                 \
		return value;                    \
	}
#define REFUSE_VOID(name)                      \
	void vb_private_##name(void);          \
	VB_EXPORT void vb_private_##name(void) \
	{                                      \
		(void)vb_refuse_verb(#name);   \
	}
#define REFUSE_ERRNO(name)     REFUSE(int, name, vb_answer(err))
#define REFUSE_MINUS_ONE(name) REFUSE(int, name, vb_answer_minus_one(err))
#define REFUSE_NULL(name)      REFUSE(void *, name, vb_answer_null(err))

/* X(kind, name): in every node */
#define FROM_25(X)                               \
	X(NULL, _verbs_init_and_alloc_context)   \
	X(ERRNO, execute_ioctl)                  \
	X(ERRNO, ibv_cmd_advise_mr)              \
	X(ERRNO, ibv_cmd_alloc_dm)               \
	X(ERRNO, ibv_cmd_alloc_mw)               \
	X(ERRNO, ibv_cmd_alloc_pd)               \
	X(ERRNO, ibv_cmd_attach_mcast)           \
	X(ERRNO, ibv_cmd_close_xrcd)             \
	X(ERRNO, ibv_cmd_create_ah)              \
	X(ERRNO, ibv_cmd_create_counters)        \
	X(ERRNO, ibv_cmd_create_cq)              \
	X(ERRNO, ibv_cmd_create_cq_ex)           \
	X(ERRNO, ibv_cmd_create_flow)            \
	X(ERRNO, ibv_cmd_create_flow_action_esp) \
	X(ERRNO, ibv_cmd_create_qp)              \
	X(ERRNO, ibv_cmd_create_qp_ex)           \
	X(ERRNO, ibv_cmd_create_qp_ex2)          \
	X(ERRNO, ibv_cmd_create_rwq_ind_table)   \
	X(ERRNO, ibv_cmd_create_srq)             \
	X(ERRNO, ibv_cmd_create_srq_ex)          \
	X(ERRNO, ibv_cmd_create_wq)              \
	X(ERRNO, ibv_cmd_dealloc_mw)             \
	X(ERRNO, ibv_cmd_dealloc_pd)             \
	X(ERRNO, ibv_cmd_dereg_mr)               \
	X(ERRNO, ibv_cmd_destroy_ah)             \
	X(ERRNO, ibv_cmd_destroy_counters)       \
	X(ERRNO, ibv_cmd_destroy_cq)             \
	X(ERRNO, ibv_cmd_destroy_flow)           \
	X(ERRNO, ibv_cmd_destroy_flow_action)    \
	X(ERRNO, ibv_cmd_destroy_qp)             \
	X(ERRNO, ibv_cmd_destroy_rwq_ind_table)  \
	X(ERRNO, ibv_cmd_destroy_srq)            \
	X(ERRNO, ibv_cmd_destroy_wq)             \
	X(ERRNO, ibv_cmd_detach_mcast)           \
	X(ERRNO, ibv_cmd_free_dm)                \
	X(ERRNO, ibv_cmd_get_context)            \
	X(ERRNO, ibv_cmd_modify_cq)              \
	X(ERRNO, ibv_cmd_modify_flow_action_esp) \
	X(ERRNO, ibv_cmd_modify_qp)              \
	X(ERRNO, ibv_cmd_modify_qp_ex)           \
	X(ERRNO, ibv_cmd_modify_srq)             \
	X(ERRNO, ibv_cmd_modify_wq)              \
	X(ERRNO, ibv_cmd_open_qp)                \
	X(ERRNO, ibv_cmd_open_xrcd)              \
	X(MINUS_ONE, ibv_cmd_poll_cq)            \
	X(ERRNO, ibv_cmd_post_recv)              \
	X(ERRNO, ibv_cmd_post_send)              \
	X(ERRNO, ibv_cmd_post_srq_recv)          \
	X(ERRNO, ibv_cmd_query_context)          \
	X(ERRNO, ibv_cmd_query_mr)               \
	X(ERRNO, ibv_cmd_query_port)             \
	X(ERRNO, ibv_cmd_query_qp)               \
	X(ERRNO, ibv_cmd_query_srq)              \
	X(ERRNO, ibv_cmd_read_counters)          \
	X(ERRNO, ibv_cmd_reg_dm_mr)              \
	X(ERRNO, ibv_cmd_reg_mr)                 \
	X(ERRNO, ibv_cmd_req_notify_cq)          \
	X(ERRNO, ibv_cmd_rereg_mr)               \
	X(ERRNO, ibv_cmd_resize_cq)              \
	X(NULL, verbs_open_device)               \
	X(VOID, verbs_set_ops)                   \
	X(VOID, verbs_uninit_context)

#define ONLY_25(X)       X(ERRNO, ibv_cmd_query_device_ex)

#define FROM_25_TO_34(X) X(ERRNO, ibv_cmd_query_device)

#define FROM_33(X)       X(ERRNO, ibv_cmd_query_device_any)

#define FROM_34(X)                      \
	X(ERRNO, ibv_cmd_create_cq_ex2) \
	X(ERRNO, ibv_cmd_reg_dmabuf_mr)

#define FROM_59(X)                             \
	X(ERRNO, ibv_cmd_alloc_dmah)           \
	X(MINUS_ONE, ibv_cmd_export_dmabuf_fd) \
	X(ERRNO, ibv_cmd_free_dmah)            \
	X(ERRNO, ibv_cmd_query_port_speed)     \
	X(ERRNO, ibv_cmd_reg_mr_ex)

#define FROM_64(X)                              \
	X(NULL, ibv_dmabuf_heap_alloc)          \
	X(NULL, ibv_dmabuf_heap_cc_shared_init) \
	X(VOID, ibv_dmabuf_heap_destroy)        \
	X(VOID, ibv_dmabuf_heap_free)

#define FROM_65(X)                             \
	X(ERRNO, ibv_cmd_create_comp_cntr)     \
	X(ERRNO, ibv_cmd_destroy_comp_cntr)    \
	X(ERRNO, ibv_cmd_inc_comp_cntr)        \
	X(ERRNO, ibv_cmd_inc_err_comp_cntr)    \
	X(ERRNO, ibv_cmd_qp_attach_comp_cntr)  \
	X(ERRNO, ibv_cmd_query_comp_cntr_caps) \
	X(ERRNO, ibv_cmd_read_comp_cntr)       \
	X(ERRNO, ibv_cmd_read_err_comp_cntr)   \
	X(ERRNO, ibv_cmd_set_comp_cntr)        \
	X(ERRNO, ibv_cmd_set_err_comp_cntr)

#define REFUSE_AS(kind, name) REFUSE_##kind(name)
FROM_25(REFUSE_AS)
ONLY_25(REFUSE_AS)
FROM_25_TO_34(REFUSE_AS)
FROM_33(REFUSE_AS)
FROM_34(REFUSE_AS)
FROM_59(REFUSE_AS)
FROM_64(REFUSE_AS)
FROM_65(REFUSE_AS)

#define ATTACH_FROM_25(kind, name)  VB_SYMVER_FROM_25(vb_private_##name, name);
#define ATTACH_ONLY_25(kind, name)  VB_SYMVER_ONLY_25(vb_private_##name, name);
#define ATTACH_25_TO_34(kind, name) VB_SYMVER_25_TO_34(vb_private_##name, name);
#define ATTACH_FROM_33(kind, name)  VB_SYMVER_FROM_33(vb_private_##name, name);
#define ATTACH_FROM_34(kind, name)  VB_SYMVER_FROM_34(vb_private_##name, name);
#define ATTACH_FROM_59(kind, name)  VB_SYMVER_FROM_59(vb_private_##name, name);
#define ATTACH_FROM_64(kind, name)  VB_SYMVER_FROM_64(vb_private_##name, name);
#define ATTACH_FROM_65(kind, name)  VB_SYMVER_FROM_65(vb_private_##name, name);
FROM_25(ATTACH_FROM_25)
ONLY_25(ATTACH_ONLY_25)
FROM_25_TO_34(ATTACH_25_TO_34)
FROM_33(ATTACH_FROM_33)
FROM_34(ATTACH_FROM_34)
FROM_59(ATTACH_FROM_59)
FROM_64(ATTACH_FROM_64)
FROM_65(ATTACH_FROM_65)
