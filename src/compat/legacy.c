/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The functions of IBVERBS_1.0 that got another form in 1.1 (2007).
 *
 * They took other structures. A program of that age finds an empty device list, is refused by every
 * other function, and goes no further.
 */
#include "compat/legacy.h"
#include "compat/symver.h"
#include "verbs/face.h"

/* The arguments are not read: without a device no object can have been passed. */
#define REFUSE(type, name, value)                               \
	type vb_legacy_##name(void);                            \
	VB_EXPORT type vb_legacy_##name(void)                   \
	{                                                       \
		int err = vb_refuse_verb(#name "@IBVERBS_1.0"); \
                                                                \
		return value;                                   \
	}
#define REFUSE_VOID(name)                                   \
	void vb_legacy_##name(void);                        \
	VB_EXPORT void vb_legacy_##name(void)               \
	{                                                   \
		(void)vb_refuse_verb(#name "@IBVERBS_1.0"); \
	}
#define REFUSE_ERRNO(name)     REFUSE(int, name, vb_answer(err))
#define REFUSE_MINUS_ONE(name) REFUSE(int, name, vb_answer_minus_one(err))
#define REFUSE_NULL(name)      REFUSE(void *, name, vb_answer_null(err))

/* X(kind, name) */
#define REFUSED(X)                        \
	X(VOID, ibv_ack_async_event)      \
	X(VOID, ibv_ack_cq_events)        \
	X(NULL, ibv_alloc_pd)             \
	X(ERRNO, ibv_attach_mcast)        \
	X(MINUS_ONE, ibv_close_device)    \
	X(NULL, ibv_create_ah)            \
	X(NULL, ibv_create_cq)            \
	X(NULL, ibv_create_qp)            \
	X(NULL, ibv_create_srq)           \
	X(ERRNO, ibv_dealloc_pd)          \
	X(ERRNO, ibv_dereg_mr)            \
	X(ERRNO, ibv_destroy_ah)          \
	X(ERRNO, ibv_destroy_cq)          \
	X(ERRNO, ibv_destroy_qp)          \
	X(ERRNO, ibv_destroy_srq)         \
	X(ERRNO, ibv_detach_mcast)        \
	X(VOID, ibv_free_device_list)     \
	X(MINUS_ONE, ibv_get_async_event) \
	X(MINUS_ONE, ibv_get_cq_event)    \
	X(NULL, ibv_get_device_name)      \
	X(ERRNO, ibv_modify_qp)           \
	X(ERRNO, ibv_modify_srq)          \
	X(NULL, ibv_open_device)          \
	X(ERRNO, ibv_query_device)        \
	X(MINUS_ONE, ibv_query_gid)       \
	X(MINUS_ONE, ibv_query_pkey)      \
	X(ERRNO, ibv_query_port)          \
	X(ERRNO, ibv_query_qp)            \
	X(ERRNO, ibv_query_srq)           \
	X(NULL, ibv_reg_mr)               \
	X(ERRNO, ibv_resize_cq)

#define REFUSE_AS(kind, name) REFUSE_##kind(name)
REFUSED(REFUSE_AS)

#define ATTACH(kind, name) VB_SYMVER(vb_legacy_##name, name, "IBVERBS_1.0");
REFUSED(ATTACH)

VB_EXPORT void *vb_legacy_get_device_list(int *num)
{
	if (num)
		*num = 0;
	return vb_answer_null(vb_refuse_verb("ibv_get_device_list@IBVERBS_1.0"));
}
VB_SYMVER(vb_legacy_get_device_list, ibv_get_device_list, "IBVERBS_1.0");

VB_EXPORT __be64 vb_legacy_get_device_guid(void *device)
{
	(void)device;
	(void)vb_refuse_verb("ibv_get_device_guid@IBVERBS_1.0");
	return 0;
}
VB_SYMVER(vb_legacy_get_device_guid, ibv_get_device_guid, "IBVERBS_1.0");
