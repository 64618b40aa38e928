/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_modify_qp(3): the transition is checked against the table, and every value against its
 * limits, before anything changes. A refused call has no effect.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/reason.h"
#include "object/ah.h"
#include "object/context.h"
#include "engine/cq.h"
#include "engine/drive.h"
#include "engine/engine_channel.h"
#include "engine/engines.h"
#include "engine/schedule.h"
#include "engine/settle.h"
#include "process/limits.h"
#include "process/process.h"
#include "qp/link.h"
#include "qp/parts.h"
#include "process/names.h"
#include "qp/qp.h"
#include "transport/qp_state.h"

/* Between IBV_QP_DEST_QPN and IBV_QP_RATE_LIMIT there are bits without a meaning. */
#define KNOWN_MASK (((IBV_QP_DEST_QPN << 1) - 1) | IBV_QP_RATE_LIMIT)
/*
 * Most of these have no meaning for a queue pair; programs pass the flags of their regions
 * (ibv_reg_mr(3)).
 */
#define KNOWN_ACCESS                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |     \
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_FLUSH_GLOBAL |       \
	 IBV_ACCESS_FLUSH_PERSISTENT | IBV_ACCESS_OPTIONAL_RANGE)
#define QKEY_PRIVILEGED 0x80000000u

struct change {
	enum ibv_qp_state from, to;
	struct vb_path path;
	const struct vb_link *link;
};

static int refuse(const struct vb_qp *qp, const char *what, uint64_t value)
{
	return vb_refuse(EINVAL, VB_REASON_ARG, "modify_qp: qp 0x%x: %s (%llu)", qp->t.qpn, what,
			 (unsigned long long)value);
}

#define MASK_TEXT 320 /* room for the names of all bits */

static int transition_check(const struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask,
			    struct change *c)
{
	char names[MASK_TEXT];
	int bits = 0;

	if (mask & ~KNOWN_MASK)
		return vb_refuse(EOPNOTSUPP, VB_REASON_ARG_MASK,
				 "modify_qp: qp 0x%x: unknown mask bits 0x%x", qp->t.qpn,
				 mask & ~KNOWN_MASK);
	c->from = (enum ibv_qp_state)qp->t.state;
	c->to = (mask & IBV_QP_STATE) ? attr->qp_state : c->from;
	if ((unsigned int)c->to > IBV_QPS_ERR)
		return refuse(qp, "no such state", c->to);
	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != c->from)
		return vb_refuse(EINVAL, VB_REASON_QP_STATE,
				 "modify_qp: qp 0x%x is in %s, cur_qp_state says %s", qp->t.qpn,
				 vb_qp_state_name(c->from), vb_qp_state_name(attr->cur_qp_state));
	enum vb_reason reason = vb_qp_state_check(qp->u.qp.qp_type, c->from, c->to, mask, &bits);

	if (reason != VB_REASON_NONE)
		return vb_refuse(EINVAL, reason, "modify_qp: qp 0x%x: %s -> %s, mask 0x%x: %s%s%s",
				 qp->t.qpn, vb_qp_state_name(c->from), vb_qp_state_name(c->to),
				 mask, vb_reason_text(reason), bits ? ": " : "",
				 vb_qp_mask_names(bits, names, sizeof(names)));
	return 0;
}

static int values_check(const struct vb_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	if ((mask & IBV_QP_PORT) && a->port_num != 1)
		return refuse(qp, "no such port", a->port_num);
	if ((mask & IBV_QP_PKEY_INDEX) && a->pkey_index >= VB_MAX_PKEYS)
		return refuse(qp, "no such pkey_index", a->pkey_index);
	if ((mask & IBV_QP_PATH_MTU) && (a->path_mtu < IBV_MTU_256 || a->path_mtu > IBV_MTU_4096))
		return refuse(qp, "no such path_mtu", a->path_mtu);
	if ((mask & IBV_QP_TIMEOUT) && a->timeout > 31)
		return refuse(qp, "timeout exceeds 31", a->timeout);
	if ((mask & IBV_QP_RETRY_CNT) && a->retry_cnt > 7)
		return refuse(qp, "retry_cnt exceeds 7", a->retry_cnt);
	if ((mask & IBV_QP_RNR_RETRY) && a->rnr_retry > 7)
		return refuse(qp, "rnr_retry exceeds 7", a->rnr_retry);
	if ((mask & IBV_QP_MIN_RNR_TIMER) && a->min_rnr_timer > 31)
		return refuse(qp, "min_rnr_timer exceeds 31", a->min_rnr_timer);
	if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && a->max_rd_atomic > VB_MAX_RD_ATOMIC)
		return refuse(qp, "max_rd_atomic exceeds max_qp_init_rd_atom", a->max_rd_atomic);
	if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && a->max_dest_rd_atomic > VB_MAX_RD_ATOMIC)
		return refuse(qp, "max_dest_rd_atomic exceeds max_qp_rd_atom",
			      a->max_dest_rd_atomic);
	if ((mask & IBV_QP_ACCESS_FLAGS) && (a->qp_access_flags & ~(unsigned int)KNOWN_ACCESS))
		return refuse(qp, "unknown qp_access_flags", a->qp_access_flags);
	if ((mask & IBV_QP_DEST_QPN) && a->dest_qp_num > VB_QPN_MASK)
		return refuse(qp, "dest_qp_num has more than 24 bits", a->dest_qp_num);
	if (mask & IBV_QP_ALT_PATH)
		return refuse(qp, "there is no alternate path", (unsigned int)mask);
	if ((mask & IBV_QP_RATE_LIMIT) && a->rate_limit > VB_PACE_MAX_KBPS)
		return refuse(qp, "rate_limit exceeds qp_rate_limit_max", a->rate_limit);
	if ((mask & IBV_QP_PATH_MIG_STATE) && a->path_mig_state > IBV_MIG_ARMED)
		return refuse(qp, "no such path_mig_state", a->path_mig_state);
	if ((mask & IBV_QP_QKEY) && (a->qkey & QKEY_PRIVILEGED) && geteuid() != 0)
		return vb_refuse(EPERM, VB_REASON_PERMISSION,
				 "modify_qp: qp 0x%x: qkey 0x%x is a privileged one", qp->t.qpn,
				 a->qkey);
	return 0;
}

static int address_check(const struct vb_qp *qp, const struct ibv_qp_attr *a, int mask,
			 struct change *c)
{
	if (!(mask & IBV_QP_AV))
		return 0;
	if (a->ah_attr.port_num != 1)
		return refuse(qp, "the address vector's port is not the queue pair's",
			      a->ah_attr.port_num);
	bool near;
	int err = vb_ah_resolve(qp->u.qp.context, &a->ah_attr, &c->path, &near);

	if (!err)
		c->link = vb_qp_link_to(qp, near);
	if (!err && qp->t.service != VB_SERVICE_UD)
		c->path.hop_limit = VB_HOP_LIMIT_ROUTE; /* as Linux does (ibv_modify_qp(3)) */
	return err;
}

/* Whether the queue pair is about to take a path, or to receive datagrams. */
static bool takes_path(const struct vb_qp *qp, int mask)
{
	return !qp->kind->frames && qp->t.service != VB_SERVICE_UD && (mask & IBV_QP_AV);
}

static bool listens(const struct vb_qp *qp, const struct change *c)
{
	return !qp->kind->frames && qp->t.service == VB_SERVICE_UD && c->to == IBV_QPS_RTR;
}

static int path_check(struct vb_qp *qp, const struct ibv_qp_attr *a, int mask,
		      const struct change *c)
{
	if (!takes_path(qp, mask) || !c->link->path_check)
		return 0;
	return c->link->path_check(
		qp, &c->path, (mask & IBV_QP_PATH_MTU) ? a->path_mtu : qp->attrs->set.path_mtu);
}

/*
 * Sockets, and where the kernel steers packets, are waited for. So this is done without the
 * engine's lock.
 */
static bool link_lacks(const struct vb_qp *qp, int mask, const struct change *c)
{
	if (takes_path(qp, mask))
		return c->link->lacks && c->link->lacks(qp, &c->path);
	return listens(qp, c) && vb_qp_links_lack(qp);
}

static int link_open(struct vb_qp *qp, int mask, const struct change *c)
{
	if (takes_path(qp, mask))
		return c->link->open(qp, &c->path);
	vb_qp_links_open(qp);
	return 0;
}

/* The last of the checks: acquires what a destination on another host needs. */
static int link_prepare(struct vb_qp *qp, const struct ibv_qp_attr *a, int mask,
			const struct change *c)
{
	if (listens(qp, c))
		vb_qp_links_listen(qp);
	if (!takes_path(qp, mask) || !c->link->connect)
		return 0;
	return c->link->connect(qp, &a->ah_attr, &c->path);
}

/* ibv_query_qp(3) returns the value that was set last. */
static void remember(struct vb_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct ibv_qp_attr *m = &qp->attrs->set;

	if (mask & IBV_QP_ACCESS_FLAGS)
		m->qp_access_flags = a->qp_access_flags;
	if (mask & IBV_QP_PKEY_INDEX)
		m->pkey_index = a->pkey_index;
	if (mask & IBV_QP_PORT)
		m->port_num = a->port_num;
	if (mask & IBV_QP_QKEY)
		m->qkey = a->qkey;
	if (mask & IBV_QP_AV)
		m->ah_attr = a->ah_attr;
	if (mask & IBV_QP_PATH_MTU)
		m->path_mtu = a->path_mtu;
	if (mask & IBV_QP_TIMEOUT)
		m->timeout = a->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		m->retry_cnt = a->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		m->rnr_retry = a->rnr_retry;
	if (mask & IBV_QP_RQ_PSN)
		m->rq_psn = a->rq_psn & VB_QPN_MASK;
	if (mask & IBV_QP_SQ_PSN)
		m->sq_psn = a->sq_psn & VB_QPN_MASK;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		m->max_rd_atomic = a->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		m->max_dest_rd_atomic = a->max_dest_rd_atomic;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		m->min_rnr_timer = a->min_rnr_timer;
	if (mask & IBV_QP_RATE_LIMIT)
		m->rate_limit = a->rate_limit;
	if (mask & IBV_QP_PATH_MIG_STATE)
		m->path_mig_state = a->path_mig_state;
	if (mask & IBV_QP_DEST_QPN)
		m->dest_qp_num = a->dest_qp_num;
}

/* The protocol's copy of the attributes. */
static void apply(struct vb_qp *qp, int mask, const struct change *c)
{
	const struct ibv_qp_attr *m = &qp->attrs->set;
	struct vb_tqp *t = &qp->t;

	t->access = m->qp_access_flags;
	t->qkey = m->qkey;
	t->pkey = 0xffff;
	t->dest_qpn = m->dest_qp_num;
	t->timeout = m->timeout;
	t->retry_cnt = m->retry_cnt;
	t->rnr_retry = m->rnr_retry;
	t->min_rnr_timer = m->min_rnr_timer;
	t->max_rd_atomic = m->max_rd_atomic;
	t->max_dest_rd_atomic = m->max_dest_rd_atomic;
	if (mask & IBV_QP_RATE_LIMIT)
		vb_pace_set(&qp->pace, m->rate_limit, 0, vb_clock_ns());
	if (mask & IBV_QP_PATH_MTU)
		t->mtu = 128u << m->path_mtu;
	if (mask & IBV_QP_AV) {
		qp->path = c->path;
		qp->link = c->link;
		vb_engine_set_channel(qp, NULL);
		qp->peer_qp = NULL;
		vb_qp_link_tune(qp);
	}
}

/* The ring shares no cache line with memory that other threads write. */
static int ring_alloc(uint32_t most, size_t each, void **ring)
{
	if (!posix_memalign(ring, 64, vb_resource_slots(most) * each))
		return 0;
	return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY,
			 "modify_qp: no memory for %u READs and ATOMICs at once", most);
}

/* Room for the requester's requests in flight. A ring from before may exist: it never shrinks. */
static int requests_prepare(struct vb_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct vb_requester *r = &qp->t.req;
	void *ring;
	int err;

	if (!(mask & IBV_QP_MAX_QP_RD_ATOMIC) || vb_resource_slots(a->max_rd_atomic) <= r->rd_slots)
		return 0;
	err = ring_alloc(a->max_rd_atomic, sizeof(*r->rd_end), &ring);
	if (!err)
		free(vb_requester_grow(r, ring, vb_resource_slots(a->max_rd_atomic)));
	return err;
}

/* The same for the resources that the responder remembers. */
static int resources_prepare(struct vb_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct vb_responder *p = &qp->t.resp;
	void *ring;
	int err;

	if (!(mask & IBV_QP_MAX_DEST_RD_ATOMIC) ||
	    vb_resource_slots(a->max_dest_rd_atomic) <= p->res_slots)
		return 0;
	err = ring_alloc(a->max_dest_rd_atomic, sizeof(*p->res), &ring);
	if (!err)
		free(vb_responder_grow(p, ring, vb_resource_slots(a->max_dest_rd_atomic)));
	return err;
}

static void to_reset(struct vb_qp *qp)
{
	vb_tqp_reset(&qp->t);
	vb_qp_links_release(qp);
	vb_qp_queues_clear(qp);
	qp->attrs->set = (struct ibv_qp_attr){0};
	qp->pace.kbps = 0;
	qp->t.access = 0;
	qp->t.dest_qpn = 0;
	qp->t.max_rd_atomic = qp->t.max_dest_rd_atomic = 0;
}

static void enter(struct vb_qp *qp, const struct change *c)
{
	struct vb_tqp *t = &qp->t;

	switch (c->to) {
	case IBV_QPS_RESET:
		to_reset(qp);
		break;
	case IBV_QPS_RTR:
		qp->connected_at = vb_clock_ns();
		vb_tqp_start_responder(t, qp->attrs->set.rq_psn);
		t->state = IBV_QPS_RTR;
		qp->seeking = t->service != VB_SERVICE_UD && qp->link->seek;
		break;
	case IBV_QPS_RTS:
		if (c->from == IBV_QPS_RTR)
			vb_tqp_start_requester(t, qp->attrs->set.sq_psn);
		t->state = IBV_QPS_RTS;
		break;
	case IBV_QPS_ERR:
		vb_tqp_to_error(t);
		break;
	default:
		t->state = (uint8_t)c->to;
		break;
	}
}

static void change(struct vb_qp *qp, const struct ibv_qp_attr *a, int mask, const struct change *c)
{
	struct vb_engine *e = qp->engine;

	remember(qp, a, mask);
	apply(qp, mask, c);
	if (c->from != c->to)
		enter(qp, c);
	vb_qp_publish(qp);
	if (c->to == IBV_QPS_ERR && c->from != IBV_QPS_ERR)
		vb_qp_entered_error(qp);
	if (c->to == IBV_QPS_SQD && c->from == IBV_QPS_RTS) {
		qp->draining = true;
		qp->drain_notify = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) && a->en_sqd_async_notify;
	}
	vb_qp_settle(qp);
	vb_engine_run_qp(e, qp);
	vb_engine_flush(e);
}

/*
 * Programs set both halves of a connection at both ends. Attributes of a half that an XRC queue
 * pair does not have are ignored, as Linux does.
 */
static int other_half(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_XRC_SEND:
		return IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	case IBV_QPT_XRC_RECV:
		return IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
	default:
		return 0;
	}
}

/* The path to the peer, as ibv_modify_qp(3) would have prepared it here. */
static int mirror_path(struct vb_qp *qp, const struct ibv_qp_attr *attr, struct change *c)
{
	bool near;
	int err = vb_ah_resolve(qp->u.qp.context, &attr->ah_attr, &c->path, &near);

	c->path.hop_limit = VB_HOP_LIMIT_ROUTE;
	if (!err)
		c->link = vb_qp_link_to(qp, near);
	if (!err && c->link->path_check)
		err = c->link->path_check(qp, &c->path, attr->path_mtu);
	if (!err && c->link->connect)
		err = c->link->connect(qp, &attr->ah_attr, &c->path);
	return err ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU;
}

void vb_qp_mirror(struct vb_qp *qp, const struct ibv_qp_attr *attr, enum ibv_qp_state state)
{
	struct change c = {.from = (enum ibv_qp_state)qp->t.state, .to = state};
	bool serves = state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD;
	int mask = serves ? mirror_path(qp, attr, &c) : 0;

	qp->attrs->set = *attr;
	apply(qp, mask, &c);
	if (c.from != c.to && (state == IBV_QPS_RESET || state == IBV_QPS_ERR))
		enter(qp, &c);
	else
		qp->t.state = (uint8_t)state;
	qp->seeking = serves && qp->link->seek && !qp->channel;
	vb_qp_ordinary_publish(qp);
	if (state == IBV_QPS_ERR && c.from != IBV_QPS_ERR)
		vb_qp_entered_error(qp);
	vb_engine_make_runnable(qp->engine, qp);
}

/* Every check, and the memory that the change needs. */
static int judge(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask, struct change *c)
{
	int err;

	*c = (struct change){0};
	if (qp->kind->pull)
		qp->kind->pull(qp);
	err = transition_check(qp, attr, mask, c);
	if (!err)
		err = values_check(qp, attr, mask);
	if (!err)
		err = address_check(qp, attr, mask, c);
	if (!err && c->from == IBV_QPS_SQD && c->to == IBV_QPS_RTS && vb_tqp_busy(&qp->t))
		err = vb_refuse(EINVAL, VB_REASON_QP_STATE, "modify_qp: qp 0x%x is still draining",
				qp->t.qpn);
	if (!err)
		err = requests_prepare(qp, attr, mask);
	if (!err)
		err = resources_prepare(qp, attr, mask);
	if (!err)
		err = path_check(qp, attr, mask, c);
	return err;
}

/* Another call may have changed the queue pair while the link was opened: it is judged again. */
static int judge_and_open(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask,
			  struct change *c)
{
	int err = judge(qp, attr, mask, c);

	if (err || !link_lacks(qp, mask, c))
		return err;
	vb_lock_release(&qp->engine->lock);
	err = link_open(qp, mask, c);
	vb_engine_take(qp->engine);
	return err ? err : judge(qp, attr, mask, c);
}

/*
 * An adapter takes in what arrives at once: a request whose acknowledgement has come by now is complete,
 * and is not flushed; a message that has come is received.
 */
static void arrivals_take(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_STATE &&
	    (attr->qp_state == IBV_QPS_ERR || attr->qp_state == IBV_QPS_RESET))
		(void)vb_engine_drive(qp->engine);
}

int vb_qp_modify(struct ibv_qp *ibqp, const struct ibv_qp_attr *attr, int mask)
{
	struct vb_qp *qp = vb_qp_of(ibqp);
	struct change c;
	int err = vb_context_check(ibqp->context, VB_HANDLE_QP, ibqp->handle, qp, "qp");

	if (err)
		return err;
	qp = vb_qp_body(qp);
	if (qp->kind->may_modify)
		err = qp->kind->may_modify(qp);
	if (err)
		return err;
	mask &= ~other_half(qp->u.qp.qp_type);
	vb_engine_take(qp->engine);
	arrivals_take(qp, attr, mask);
	err = judge_and_open(qp, attr, mask, &c);
	if (!err)
		err = link_prepare(qp, attr, mask, &c);
	if (!err)
		change(qp, attr, mask, &c);
	vb_lock_release(&qp->engine->lock);
	/* After this call no peer touches memory through this queue pair any more. */
	if (!err && c.from != c.to && (c.to == IBV_QPS_ERR || c.to == IBV_QPS_RESET))
		vb_process_quiesce(qp->t.qpn, 0);
	return err;
}
