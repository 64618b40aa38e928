/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The extended completion queue: iteration entry by entry (ibv_create_cq_ex(3)). Other pollers wait
 * from start_poll to end_poll; engines that add entries do not. Entries become free at end_poll.
 */
#include <errno.h>
#include <time.h>

#include "base/lock.h"
#include "base/reason.h"
#include "engine/cq.h"
#include "engine/give_way.h"
#include "engine/poll_others.h"

static struct vb_cq *cq_of(struct ibv_cq_ex *ex)
{
	return (struct vb_cq *)(void *)ex;
}

static const struct vb_cqe *current(struct ibv_cq_ex *ex)
{
	return &vb_cq_extended_of(cq_of(ex))->current;
}

static const struct vb_cqe_more *current_more(struct ibv_cq_ex *ex)
{
	return &vb_cq_extended_of(cq_of(ex))->current_more;
}

/* Under the lock: the entry at iter_tail becomes the current one. */
static int entry_load(struct vb_cq *cq)
{
	struct vb_cq_extended *x = vb_cq_extended_of(cq);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	/* Entries were lost meanwhile (IGNORE_OVERRUN): continues with the oldest that is left. */
	if ((int32_t)(tail - cq->iter_tail) > 0)
		cq->iter_tail = tail;
	cq->seen_empty = cq->iter_tail == cq->head;
	if (cq->seen_empty)
		return ENOENT;
	x->current = cq->ring[cq->iter_tail & cq->mask];
	if (cq->more)
		x->current_more = cq->more[cq->iter_tail & cq->mask];
	cq->iter_tail++;
	vb_cq_consume(&x->current);
	cq->ex.status = x->current.wc.status;
	cq->ex.wr_id = x->current.wc.wr_id;
	return 0;
}

/* Drives the queue and begins an iteration. *e: an engine that was driven, or NULL. */
static int iteration_begin(struct vb_cq *cq, struct vb_engine **e)
{
	*e = vb_cq_drive(cq, 1);
	if (!cq->single_threaded)
		vb_mutex_take(&vb_cq_extended_of(cq)->consume, VB_ORDER_CONSUME);
	vb_lock_take(&cq->lock);
	cq->iter_tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	int err = entry_load(cq);

	/* As ibv_poll_cq(3) returns then: the iterating thread would wait for ever otherwise. */
	if (err && cq->overrun)
		err = EIO;
	cq->iterating = !err;
	vb_lock_release(&cq->lock);
	/* No entry: the iteration has not begun, and no end_poll follows. */
	if (err && !cq->single_threaded)
		vb_mutex_release(&vb_cq_extended_of(cq)->consume);
	return err;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct vb_cq *cq = cq_of(ex);
	struct vb_engine *e;

	if (attr && attr->comp_mask)
		return -vb_refuse(EINVAL, VB_REASON_ARG_MASK, "start_poll: comp_mask 0x%x",
				  attr->comp_mask);
	int err = iteration_begin(cq, &e);

	if (err && e)
		vb_poll_others(e);
	if (err && vb_polled_in_vain(e))
		err = iteration_begin(cq, &e);
	if (err)
		return err;
	if (e)
		vb_poll_found(e);
	vb_polled_well();
	return 0;
}

/*
 * Whether the next entry is one that an event told of which the program has not fetched. The iteration
 * ends before it: a program that fetches an event and then finds no entry takes that for an error
 * (ibv_rc_pingpong -t). start_poll takes such an entry, for a program that polls without events.
 */
static bool is_left_to_event(const struct vb_cq *cq)
{
	return (int32_t)(cq->iter_tail - cq->event_from) >= 0 &&
	       (int32_t)(cq->told - cq->iter_tail) > 0 && vb_event_is_pending(&cq->comp_event);
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct vb_cq *cq = cq_of(ex);

	vb_lock_take(&cq->lock);
	int err = is_left_to_event(cq) ? ENOENT : entry_load(cq);

	vb_lock_release(&cq->lock);
	return err;
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct vb_cq *cq = cq_of(ex);

	vb_lock_take(&cq->lock);
	/* Forward only: an overrun that is ignored may have passed the iteration. */
	if ((int32_t)(cq->iter_tail - atomic_load_explicit(&cq->tail, memory_order_relaxed)) > 0)
		atomic_store_explicit(&cq->tail, cq->iter_tail, memory_order_relaxed);
	cq->iterating = false;
	vb_lock_release(&cq->lock);
	if (!cq->single_threaded)
		vb_mutex_release(&vb_cq_extended_of(cq)->consume);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return current(ex)->wc.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return current(ex)->wc.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return current(ex)->wc.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return current(ex)->wc.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return current(ex)->wc.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return current(ex)->wc.src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return current(ex)->wc.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return current(ex)->wc.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return current(ex)->wc.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return current(ex)->wc.dlid_path_bits;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return current_more(ex)->stamp;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	return clock_ns(CLOCK_REALTIME) - (clock_ns(CLOCK_MONOTONIC) - current_more(ex)->stamp);
}

static uint16_t read_cvlan(struct ibv_cq_ex *ex)
{
	return current_more(ex)->cvlan;
}

static uint32_t read_flow_tag(struct ibv_cq_ex *ex)
{
	return current_more(ex)->flow_tag;
}

static void read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *info)
{
	info->tag = current_more(ex)->tag;
	info->priv = current_more(ex)->priv;
}

/* Every reader is always set, because the inline functions do not check the size. */
void vb_cq_ex_init(struct vb_cq *cq)
{
	struct ibv_cq_ex *ex = &cq->ex;

	pthread_mutex_init(&vb_cq_extended_of(cq)->consume, NULL);
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_wc_flags = read_wc_flags;
	ex->read_slid = read_slid;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_dlid_path_bits;
	ex->read_completion_ts = read_completion_ts;
	ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
	ex->read_cvlan = read_cvlan;
	ex->read_flow_tag = read_flow_tag;
	ex->read_tm_info = read_tm_info;
}

static int inherited_start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	(void)attr;
	return -vb_refuse(ENODEV, VB_REASON_FORKED, "start_poll: cq 0x%x is the parent process's",
			  ex->handle);
}

static int inherited_next_poll(struct ibv_cq_ex *ex)
{
	return inherited_start_poll(ex, NULL);
}

static void inherited_end_poll(struct ibv_cq_ex *ex)
{
	(void)ex;
}

/* The locks may be held for ever, and the ring may be memory that parent and child share. */
void vb_cq_forked(void *object)
{
	struct vb_cq *cq = object;

	cq->inherited = true;
	cq->ex.start_poll = inherited_start_poll;
	cq->ex.next_poll = inherited_next_poll;
	cq->ex.end_poll = inherited_end_poll;
}
