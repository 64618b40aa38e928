/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Delivery of packets from the wire. */
#include "device/udp_deliver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "device/engine.h"
#include "device/process.h"
#include "device/qp.h"
#include "udp/send.h"

#define INBOX_BYTES   (1u << 20) /* a power of two */
#define STAGING_BYTES 65536u

/*
 * Packets for an engine that other engines' drives read from the socket: a ring of copies. One producer at a time (the
 * drain lock), one consumer (the engine's lock).
 */
struct vb_udp_inbox {
	_Atomic uint64_t head, tail;
	uint8_t data[INBOX_BYTES];
};

struct parcel {
	struct vb_run run;
	uint32_t skip; /* the rest of the ring is unused: go to its start */
	uint8_t payload[];
};

int vb_udp_inbox_create(struct vb_engine *e)
{
	if (!e->udp_staging)
		e->udp_staging = malloc(STAGING_BYTES);
	if (!e->udp_inbox)
		__atomic_store_n(&e->udp_inbox, calloc(1, sizeof(*e->udp_inbox)), __ATOMIC_RELEASE);
	if (!e->udp_staging || !e->udp_inbox)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "udp buffers of an engine");
	return 0;
}

void vb_udp_inbox_destroy(struct vb_engine *e)
{
	free(e->udp_staging);
	free(e->udp_inbox);
	e->udp_staging = NULL;
	e->udp_inbox = NULL;
}

static uint32_t parcel_bytes(uint32_t length)
{
	return (uint32_t)(sizeof(struct parcel) + length + 15) & ~15u;
}

static bool inbox_push(struct vb_udp_inbox *box, const struct vb_run *run, const uint8_t *payload)
{
	uint64_t head = atomic_load_explicit(&box->head, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&box->tail, memory_order_acquire);
	uint32_t bytes = parcel_bytes(run->length);
	uint32_t rest = INBOX_BYTES - (uint32_t)(head & (INBOX_BYTES - 1));
	uint32_t waste = rest < bytes ? rest : 0;

	if (head + waste + bytes - tail > INBOX_BYTES)
		return false;
	if (waste) {
		if (waste >= sizeof(struct parcel))
			((struct parcel *)(void *)(box->data + (head & (INBOX_BYTES - 1))))->skip = 1;
		head += waste;
	}
	struct parcel *p = (struct parcel *)(void *)(box->data + (head & (INBOX_BYTES - 1)));

	p->run = *run;
	p->skip = 0;
	memcpy(p->payload, payload, run->length);
	atomic_store_explicit(&box->head, head + bytes, memory_order_release);
	return true;
}

struct hand_over {
	const struct vb_run *run;
	const uint8_t *payload;
	bool asleep;
};

static void hand_over(struct vb_engine *e, void *arg)
{
	struct hand_over *h = arg;
	struct vb_udp_inbox *box = __atomic_load_n(&e->udp_inbox, __ATOMIC_ACQUIRE);

	if (!box || !inbox_push(box, h->run, h->payload)) {
		vb_note(VB_REASON_DROP_INBOX, "packet for qp 0x%x: its engine's inbox is full", h->run->dest_qpn);
		return;
	}
	h->asleep = __atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED);
}

/* The wire's rules that shared memory does not need: who may send to this queue pair. */
static enum vb_reason judge(const struct vb_qp *qp, const struct vb_run *run)
{
	if (!qp->udp)
		return VB_REASON_DROP_STATE;
	if (qp->t.service == VB_SERVICE_UD)
		return VB_REASON_NONE;
	return qp->path_local || memcmp(run->path.sgid, qp->path.dgid, 16) ? VB_REASON_DROP_SOURCE : VB_REASON_NONE;
}

static void qp_in(struct vb_engine *e, const struct vb_run *run, const uint8_t *payload)
{
	struct vb_qp *qp = vb_qp_lookup(e, run->dest_qpn);
	enum vb_reason reason = qp ? judge(qp, run) : VB_REASON_DROP_QPN;

	if (reason) {
		vb_note(reason, "packet for qp 0x%x op %u psn 0x%x: %s", run->dest_qpn, run->op, run->psn,
			vb_reason_text(reason));
		return;
	}
	vb_tqp_receive(&qp->t, run, payload);
	vb_qp_settle(qp);
	vb_engine_make_runnable(e, qp);
}

void vb_udp_deliver(void *arg, const struct vb_run *run, const uint8_t *payload)
{
	struct vb_engine *e = arg;
	struct hand_over h = {.run = run, .payload = payload};
	uint32_t owner;

	switch (vb_qp_owner(e->node, run->dest_qpn, &owner)) {
	case VB_QP_HERE:
		if (owner == e->index) {
			qp_in(e, run, payload);
			return;
		}
		vb_process_with_engine(owner, hand_over, &h);
		if (h.asleep)
			vb_progress_expect(1);
		return;
	case VB_QP_UNKNOWN:
	default:
		vb_note(VB_REASON_DROP_QPN, "packet for qp 0x%x: %s", run->dest_qpn, vb_reason_text(VB_REASON_DROP_QPN));
		return;
	}
}

bool vb_udp_inbox_serve(struct vb_engine *e)
{
	struct vb_udp_inbox *box = e->udp_inbox;
	uint64_t tail = atomic_load_explicit(&box->tail, memory_order_relaxed);
	uint64_t head = atomic_load_explicit(&box->head, memory_order_acquire);
	bool worked = tail != head;

	while (tail != head) {
		uint32_t at = (uint32_t)(tail & (INBOX_BYTES - 1));
		uint32_t rest = INBOX_BYTES - at;
		const struct parcel *p = (const struct parcel *)(const void *)(box->data + at);

		if (rest < sizeof(*p) || p->skip) {
			tail += rest;
			continue;
		}
		qp_in(e, &p->run, p->payload);
		tail += parcel_bytes(p->run.length);
		atomic_store_explicit(&box->tail, tail, memory_order_release);
	}
	atomic_store_explicit(&box->tail, tail, memory_order_release);
	return worked;
}
