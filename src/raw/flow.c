/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Flow steering: rules made and ended, and frames matched in order of priority. */
#include "raw/flow.h"

#include <errno.h>
#include <stdlib.h>

#include "base/fork.h"
#include "base/lock.h"
#include "base/reason.h"
#include "object/context.h"
#include "raw/counters.h"
#include "device/port.h"
#include "qp/qp.h"
#include "raw/qp.h"
#include "wire/flow_match.h"

struct vb_flow {
	struct ibv_flow flow;
	struct vb_qp *qp;
	const struct vb_device *device;
	enum ibv_flow_attr_type type;
	uint32_t priority;
	bool dont_trap;
	struct vb_flow_rule rule;
	struct vb_flow *next;
};

/*
 * All rules, the most urgent (numerically lowest) priority first; among equal ones the oldest
 * first.
 */
static struct vb_lock table_lock = VB_LOCK_AT(VB_ORDER_FLOWS);
static struct vb_flow *table;

static int attr_check(const struct ibv_qp *qp, const struct ibv_flow_attr *attr)
{
	uint32_t known = IBV_FLOW_ATTR_FLAGS_DONT_TRAP | IBV_FLOW_ATTR_FLAGS_EGRESS;

	if (qp->qp_type == IBV_QPT_UD)
		return vb_refuse(
			EOPNOTSUPP, VB_REASON_UNSUPPORTED,
			"create_flow: only raw packet queue pairs can be steered to, UD receives datagrams");
	if (qp->qp_type != IBV_QPT_RAW_PACKET)
		return vb_refuse(EINVAL, VB_REASON_ARG, "create_flow: queue pair of type %d",
				 (int)qp->qp_type);
	if (attr->comp_mask)
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK, "create_flow: comp_mask 0x%x",
				 attr->comp_mask);
	/* 0 is no port, as for Linux since 5.13. */
	if (attr->port != VB_PORT)
		return vb_refuse(EINVAL, VB_REASON_ARG, "create_flow: port %u", attr->port);
	if ((unsigned int)attr->type > IBV_FLOW_ATTR_SNIFFER)
		return vb_refuse(EINVAL, VB_REASON_ARG, "create_flow: type %d", (int)attr->type);
	if (attr->flags & ~known)
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK, "create_flow: flags 0x%x",
				 attr->flags);
	if (attr->flags & IBV_FLOW_ATTR_FLAGS_EGRESS)
		return vb_refuse(EOPNOTSUPP, VB_REASON_UNSUPPORTED,
				 "create_flow: frames that are sent are not matched");
	if (attr->type != IBV_FLOW_ATTR_NORMAL && attr->flags)
		return vb_refuse(EINVAL, VB_REASON_ARG,
				 "create_flow: only a normal rule may have DONT_TRAP");
	if (attr->type != IBV_FLOW_ATTR_NORMAL && attr->num_of_specs)
		return vb_refuse(EINVAL, VB_REASON_ARG, "create_flow: type %d takes no specs",
				 (int)attr->type);
	return 0;
}

static void table_add(struct vb_flow *f)
{
	struct vb_flow **at = &table;

	vb_lock_take(&table_lock);
	while (*at && (*at)->priority <= f->priority)
		at = &(*at)->next;
	f->next = *at;
	*at = f;
	vb_lock_release(&table_lock);
}

static void table_remove(const struct vb_flow *f)
{
	vb_lock_take(&table_lock);
	for (struct vb_flow **at = &table; *at; at = &(*at)->next) {
		if (*at == f) {
			*at = f->next;
			break;
		}
	}
	vb_lock_release(&table_lock);
}

static void counters_put(const struct vb_flow *f, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		vb_counters_unbind(f->rule.counters[i]);
}

static int counters_get(const struct vb_flow *f, struct ibv_context *ctx)
{
	for (uint32_t i = 0; i < f->rule.num_counters; i++) {
		int err = vb_counters_bind(ctx, f->rule.counters[i]);

		if (err) {
			counters_put(f, i);
			return err;
		}
	}
	return 0;
}

/* What the interface must let through for the rule. */
static enum vb_raw_frames frames_wanted(const struct vb_flow *f, const uint8_t **mac)
{
	static const uint8_t whole[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

	switch (f->type) {
	case IBV_FLOW_ATTR_NORMAL:
		for (uint32_t i = 0; i < f->rule.specs; i++) {
			const struct ibv_flow_spec_eth *eth = &f->rule.spec[i].eth;

			if (eth->type != IBV_FLOW_SPEC_ETH ||
			    __builtin_memcmp(eth->mask.dst_mac, whole, sizeof(whole)) != 0)
				continue;
			*mac = eth->val.dst_mac;
			return VB_RAW_FRAMES_ADDRESS;
		}
		return VB_RAW_FRAMES_OWN;
	case IBV_FLOW_ATTR_MC_DEFAULT:
		return VB_RAW_FRAMES_MULTICAST;
	default:
		return VB_RAW_FRAMES_ALL;
	}
}

int vb_flow_create(struct ibv_qp *ibqp, const struct ibv_flow_attr *attr, struct ibv_flow **flow)
{
	struct vb_qp *qp = vb_qp_of(ibqp);
	struct ibv_context *ctx = ibqp->context;
	const char *wrong = NULL;
	const uint8_t *mac = NULL;
	int err = vb_context_check(ctx, VB_HANDLE_QP, ibqp->handle, qp, "qp");

	if (!err)
		err = attr_check(ibqp, attr);
	if (err)
		return err;
	struct vb_flow *f = calloc(1, sizeof(*f));

	if (!f)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "create_flow");
	err = vb_flow_rule_read(&f->rule, attr, &wrong);
	if (err) {
		err = vb_refuse(-err,
				err == -EOPNOTSUPP ? VB_REASON_UNSUPPORTED : VB_REASON_FLOW_SPEC,
				"create_flow: %s", wrong);
		goto free_flow;
	}
	f->qp = qp;
	f->device = vb_context_of(ctx)->device;
	f->type = attr->type;
	f->priority = attr->priority;
	f->dont_trap = attr->flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	f->flow.context = ctx;
	err = counters_get(f, ctx);
	if (err)
		goto free_flow;
	err = vb_context_add(ctx, VB_HANDLE_FLOW, f, &f->flow.handle);
	if (err)
		goto put_counters;
	enum vb_raw_frames what = frames_wanted(f, &mac);

	err = vb_raw_receive_begin(qp, what, mac);
	if (err)
		goto remove_handle;
	vb_raw_catch_up();
	table_add(f);
	*flow = &f->flow;
	return 0;
remove_handle:
	vb_context_remove(ctx, VB_HANDLE_FLOW, f->flow.handle, f);
put_counters:
	counters_put(f, f->rule.num_counters);
free_flow:
	free(f);
	return err;
}

int vb_flow_destroy(struct ibv_flow *flow)
{
	struct vb_flow *f = (struct vb_flow *)(void *)flow;
	int err = vb_context_remove(flow->context, VB_HANDLE_FLOW, flow->handle, f);

	if (err)
		return err;
	vb_raw_catch_up();
	table_remove(f);
	vb_raw_receive_end(f->qp);
	counters_put(f, f->rule.num_counters);
	free(f);
	return 0;
}

/* The result for a frame while the rules are gone through. */
struct verdict {
	const struct vb_qp *qp;
	const struct vb_frame *frame;
	const struct vb_device *device;
	uint32_t tag;
	bool mine;
};

/* The rule matches the frame. Counting and dropping concern the copy of its own queue pair. */
static void hit(const struct vb_flow *f, struct verdict *v)
{
	if (f->qp != v->qp)
		return;
	for (uint32_t i = 0; i < f->rule.num_counters; i++)
		vb_counters_count(f->rule.counters[i], v->frame->length);
	if (f->rule.drop)
		return;
	if (!v->mine)
		v->tag = f->rule.tag;
	v->mine = true;
}

/*
 * Normal rules: the first one that matches keeps the frame from less urgent ones, unless it has
 * DONT_TRAP.
 */
static bool steer_normal(struct verdict *v)
{
	bool trapped = false;
	uint32_t priority = 0;

	for (const struct vb_flow *f = table; f; f = f->next) {
		if (f->device != v->device || f->type != IBV_FLOW_ATTR_NORMAL)
			continue;
		if (trapped && f->priority != priority)
			break;
		if (!vb_flow_rule_matches(&f->rule, v->frame))
			continue;
		hit(f, v);
		if (!f->dont_trap) {
			trapped = true;
			priority = f->priority;
		}
	}
	return trapped;
}

static void steer_other(struct verdict *v, enum ibv_flow_attr_type type)
{
	for (const struct vb_flow *f = table; f; f = f->next) {
		if (f->device == v->device && f->type == type)
			hit(f, v);
	}
}

bool vb_flow_steer(const struct vb_qp *qp, const struct vb_frame *frame, uint32_t *tag)
{
	struct verdict v = {
		.qp = qp,
		.frame = frame,
		.device = vb_context_of(qp->u.qp.context)->device,
	};

	vb_lock_take(&table_lock);
	if (!steer_normal(&v)) {
		steer_other(&v, IBV_FLOW_ATTR_ALL_DEFAULT);
		if (vb_frame_is_multicast(frame))
			steer_other(&v, IBV_FLOW_ATTR_MC_DEFAULT);
	}
	steer_other(&v, IBV_FLOW_ATTR_SNIFFER);
	vb_lock_release(&table_lock);
	*tag = v.tag;
	return v.mine;
}

/* In the child the rules are the parent's. */
static void forked(void)
{
	table_lock = (struct vb_lock)VB_LOCK_AT(VB_ORDER_FLOWS);
	table = NULL;
}

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);

static void end(struct vb_context *c, void *object, uint32_t handle)
{
	if (vb_flow_destroy(object))
		vb_context_remove(&c->vctx.context, VB_HANDLE_FLOW, handle, object);
}

const struct vb_object_type vb_flow_type = {
	.name = "flow",
	.limit = VB_MAX_FLOW,
	.end = end,
};
