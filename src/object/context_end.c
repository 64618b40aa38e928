/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Objects that the program has left when it closes their context (ibv_close_device(3)). As on an adapter, where the
 * kernel destroys them then, nothing of them works any more and what they held is the device's again: queue pairs stop,
 * keys die, device memory, XRC domains and the numbers of thread domains can be had by others. The structures
 * themselves stay until the process ends, because the program may still name them; so does the memory of buffers
 * (ibv_alloc_buf(3)), which is the program's until ibv_free_buf(3).
 */
#include "object/context.h"
#include "memory/dm.h"
#include "raw/flow.h"
#include "remote/mcast.h"
#include "memory/mr.h"
#include "memory/mw.h"
#include "qp/qp.h"
#include "engine/srq.h"
#include "xrc/xrc.h"

static void end_flow(struct vb_context *c, void *object, uint32_t handle)
{
	if (vb_flow_destroy(object))
		vb_context_remove(&c->vctx.context, VB_HANDLE_FLOW, handle, object);
}

static void end_qp(struct vb_context *c, void *object, uint32_t handle)
{
	struct vb_events_got got;

	vb_mcast_leave(object);
	if (vb_qp_retire(object, &got))
		vb_handle_remove(&c->handles[VB_HANDLE_QP], handle, object);
}

/* Only those of XRC domains are known to others than their queue pairs. */
static void end_srq(struct vb_context *c, void *object, uint32_t handle)
{
	vb_handle_remove(&c->handles[VB_HANDLE_SRQ], handle, object);
	if (vb_srq_of(object)->xrcd)
		vb_xrc_srq_remove(object);
}

static void end_mw(struct vb_context *c, void *object, uint32_t handle)
{
	vb_mw_revoke(object);
	vb_context_remove(&c->vctx.context, VB_HANDLE_MW, handle, object);
}

static void end_mr(struct vb_context *c, void *object, uint32_t handle)
{
	(void)c;
	(void)handle;
	vb_mr_abandon(object);
}

static void end_dm(struct vb_context *c, void *object, uint32_t handle)
{
	(void)c;
	(void)handle;
	vb_dm_abandon(object);
}

static void end_xrcd(struct vb_context *c, void *object, uint32_t handle)
{
	(void)c;
	(void)handle;
	vb_xrcd_abandon(object);
}

/* Its engine stays: completion queues that the program may still poll know it. */
static void end_td(struct vb_context *c, void *object, uint32_t handle)
{
	vb_context_remove(&c->vctx.context, VB_HANDLE_TD, handle, object);
}

static const struct {
	enum vb_handle_type type;
	void (*end)(struct vb_context *c, void *object,
		    uint32_t handle); /* takes the handle away */
} turns[] = {
	{VB_HANDLE_FLOW, end_flow}, {VB_HANDLE_QP, end_qp}, {VB_HANDLE_SRQ, end_srq},
	{VB_HANDLE_MW, end_mw},     {VB_HANDLE_MR, end_mr}, {VB_HANDLE_DM, end_dm},
	{VB_HANDLE_XRCD, end_xrcd}, {VB_HANDLE_TD, end_td},
};

void vb_context_end_objects(struct vb_context *c)
{
	for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
		uint32_t handle;
		void *object;

		while ((object = vb_handle_any(&c->handles[turns[i].type], &handle)))
			turns[i].end(c, object, handle);
	}
}
