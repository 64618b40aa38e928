/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Flow steering and flow counters: ibv_create_flow(3), ibv_create_counters(3),
 * ibv_read_counters(3).
 */
#include "verbs/face.h"
#include "verbs/slots.h"

struct ibv_flow *vb_slot_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	struct ibv_flow *flow = NULL;
	int err;

	if (!attr)
		return vb_answer_null(vb_refuse_null("create_flow", "flow_attr"));
	err = vb_ops(qp->context)->create_flow(qp, attr, &flow);
	return err ? vb_answer_null(err) : flow;
}

int vb_slot_destroy_flow(struct ibv_flow *flow)
{
	return vb_answer(vb_ops(flow->context)->destroy_flow(flow));
}

struct ibv_counters *vb_slot_create_counters(struct ibv_context *ctx,
					     struct ibv_counters_init_attr *attr)
{
	struct ibv_counters *counters = NULL;
	int err = attr ? vb_check_mask("create_counters", "comp_mask", attr->comp_mask, 0)
		       : vb_refuse_null("create_counters", "init_attr");

	if (!err)
		err = vb_ops(ctx)->create_counters(ctx, &counters);
	return err ? vb_answer_null(err) : counters;
}

int vb_slot_destroy_counters(struct ibv_counters *counters)
{
	return vb_answer(vb_ops(counters->context)->destroy_counters(counters));
}

/*
 * Only the static way is offered: points are attached first, and a rule's count action binds them
 * to the flow.
 */
int vb_slot_attach_counters_point_flow(struct ibv_counters *counters,
				       struct ibv_counter_attach_attr *attr, struct ibv_flow *flow)
{
	int err;

	if (!attr)
		return vb_answer(vb_refuse_null("attach_counters_point_flow", "attr"));
	if (flow)
		return vb_answer(vb_refuse(ENOTSUP, VB_REASON_UNSUPPORTED,
					   "attach_counters_point_flow: to a flow that exists; "
					   "name the counters when it is created"));
	err = vb_check_mask("attach_counters_point_flow", "comp_mask", attr->comp_mask, 0);
	if (!err && attr->counter_desc != IBV_COUNTER_PACKETS &&
	    attr->counter_desc != IBV_COUNTER_BYTES)
		err = vb_refuse(ENOTSUP, VB_REASON_UNSUPPORTED,
				"attach_counters_point_flow: counter_desc %d",
				(int)attr->counter_desc);
	if (!err)
		err = vb_ops(counters->context)->attach_counters(counters, attr);
	return vb_answer(err);
}

int vb_slot_read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t count,
			  uint32_t flags)
{
	int err;

	if (!values && count)
		return vb_answer(vb_refuse_null("read_counters", "counters_value"));
	err = vb_check_mask("read_counters", "flags", flags, IBV_READ_COUNTERS_ATTR_PREFER_CACHED);
	if (!err)
		err = vb_ops(counters->context)->read_counters(counters, values, count);
	return vb_answer(err);
}
