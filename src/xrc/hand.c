/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests for a queue of another process than the queue pair's home. They are handed over one at a
 * time, and later ones wait, so that they are executed in order, whichever process executes them.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "object/context.h"
#include "engine/engine.h"
#include "engine/engine_channel.h"
#include "engine/schedule.h"
#include "engine/settle.h"
#include "process/process.h"
#include "qp/qp.h"
#include "xrc/table.h"
#include "host/slot.h"

/* Types of events for which a word of the table has a bit. */
#define EVENT_BITS 32u

/* Members on either side whose end this process notices. */
#define NEIGHBOURS 3u

/* The immediate of a handed VB_OP_DROP. */
enum { WORD_DONE = 1, WORD_NEWS };

/*
 * More than a sender has in flight while it waits for answers. A sender with more is told to try
 * again.
 */
#define HELD_MOST       1024u
#define HELD_BYTES_MOST (32u << 20)

struct vb_xrc_held {
	struct vb_xrc_held *next;
	struct vb_run run;
	char payload[];
};

static uint32_t member_of(const struct vb_xrc_domain *d, uint32_t seat)
{
	return __atomic_load_n(&d->table->seat[seat].used, __ATOMIC_ACQUIRE);
}

static struct vb_channel *member_channel(struct vb_xrc_domain *d, uint32_t seat,
					 enum vb_contact *why)
{
	const struct vb_xrc_seat *s = &d->table->seat[seat];

	*why = VB_CONTACT_ABSENT;
	if (!member_of(d, seat))
		return NULL;
	vb_seats_add(&d->met, seat);
	struct vb_channel *c = vb_channel_find(
		d->engine->node, d->engine->index,
		__atomic_load_n(&s->contact_qpn, __ATOMIC_RELAXED) & VB_QPN_MASK, why);

	if (c && atomic_load_explicit(&c->dead, memory_order_relaxed)) {
		*why = VB_CONTACT_DEAD;
		return NULL;
	}
	return c;
}

static bool channel_put(struct vb_engine *e, struct vb_channel *c, const struct vb_run *run,
			const void *payload)
{
	bool fits = vb_slot_fits_inline(run);
	void *bulk = NULL;
	struct vb_slot *slot = vb_ring_reserve(&c->tx, fits ? 0 : run->length, fits ? NULL : &bulk);

	if (!slot)
		return false;
	uint8_t *to = vb_slot_encode_handed(slot, run);

	if (!to)
		to = bulk;
	if (run->length && to)
		memcpy(to, payload, run->length);
	vb_ring_push(&c->tx);
	vb_engine_pushed(e, c);
	return true;
}

static bool say(struct vb_xrc_domain *d, uint32_t seat, uint32_t qpn, uint32_t word, bool *absent)
{
	enum vb_contact why;
	struct vb_channel *c = member_channel(d, seat, &why);
	struct vb_run run;

	*absent = !c && why != VB_CONTACT_PENDING;
	if (!c)
		return false;
	memset(&run, 0, sizeof(run));
	run.service = VB_SERVICE_XRC;
	run.op = VB_OP_DROP;
	run.segments = 1;
	run.dest_qpn = qpn;
	run.imm = word;
	return channel_put(d->engine, c, &run, NULL);
}

/* Contacts the next members in one direction: step 1 or -1 modulo the number of seats. */
static void meet_neighbours(struct vb_xrc_domain *d, uint32_t step)
{
	uint32_t seat = d->seat;
	enum vb_contact why;

	for (uint32_t i = 1, found = 0; i < VB_COMMONS_SEATS && found < NEIGHBOURS; i++) {
		seat = (seat + step) % VB_COMMONS_SEATS;
		if (!member_of(d, seat))
			continue;
		member_channel(d, seat, &why);
		found++;
	}
}

void vb_xrc_meet(struct vb_xrc_domain *d)
{
	enum vb_contact why;

	meet_neighbours(d, 1);
	meet_neighbours(d, VB_COMMONS_SEATS - 1);
	for (struct vb_qp *body = d->bodies; body; body = vb_xrc_body_of(body)->next) {
		uint32_t home = __atomic_load_n(
			&vb_xrc_place(d, vb_xrc_shared_of(body)->place)->home, __ATOMIC_ACQUIRE);

		if (home < VB_COMMONS_SEATS && home != d->seat)
			member_channel(d, home, &why);
	}
}

bool vb_xrc_seat_lost(struct vb_xrc_domain *d, uint32_t seat)
{
	enum vb_contact why;

	if (seat == d->seat || vb_seats_next(&d->met, seat) != seat)
		return false;
	return !member_channel(d, seat, &why) && why != VB_CONTACT_PENDING;
}

static bool hold(struct vb_qp *body, const struct vb_run *run, const void *payload)
{
	struct vb_xrc_shared *xb = vb_xrc_shared_of(body);
	struct vb_xrc_held *h = NULL;

	if (xb->num_held < HELD_MOST && xb->held_bytes + run->length <= HELD_BYTES_MOST)
		h = malloc(sizeof(*h) + run->length);
	if (!h)
		return false;
	h->next = NULL;
	h->run = *run;
	if (run->length)
		memcpy(h->payload, payload, run->length);
	*xb->last = h;
	xb->last = &h->next;
	xb->num_held++;
	xb->held_bytes += run->length;
	return true;
}

static void held_pop(struct vb_xrc_shared *xb)
{
	struct vb_xrc_held *h = xb->first;

	xb->first = h->next;
	if (!xb->first)
		xb->last = &xb->first;
	xb->num_held--;
	xb->held_bytes -= h->run.length;
	free(h);
}

void vb_xrc_forget_held(struct vb_qp *body)
{
	while (vb_xrc_shared_of(body)->first)
		held_pop(vb_xrc_shared_of(body));
	vb_xrc_shared_of(body)->away = 0;
}

static void execute(struct vb_qp *body, const struct vb_run *run, const void *payload)
{
	vb_tqp_receive(&body->t, run, payload);
	vb_xrc_save(body);
}

/*
 * Executes a run that was held or handed over. Runs that arrive by a link go through
 * vb_qp_arrived().
 */
static void execute_late(struct vb_qp *body, const struct vb_run *run, const void *payload)
{
	execute(body, run, payload);
	vb_qp_touched(body);
}

enum passed {
	PASSED,
	/* Contact or room is missing, or an answer of this process must be sent first. */
	PASS_LATER,
	PASS_HERE, /* it is for this process, or for none */
};

static enum passed pass(struct vb_qp *body, const struct vb_run *run, const void *payload)
{
	struct vb_xrc_domain *d = vb_xrc_body_of(body)->domain;
	uint32_t seat = vb_xrc_srq_seat(d, run->srqn);
	enum vb_contact why;
	struct vb_channel *c;

	if (seat == d->seat || seat == VB_XRC_NOBODY || body->t.state < IBV_QPS_RTR ||
	    body->t.state > IBV_QPS_SQD)
		return PASS_HERE;
	if (body->t.resp.owed)
		return PASS_LATER;
	uint32_t member = member_of(d, seat);

	c = member_channel(d, seat, &why);
	if (!c)
		return why == VB_CONTACT_PENDING ? PASS_LATER : PASS_HERE;
	if (!channel_put(body->engine, c, run, payload))
		return PASS_LATER;
	vb_xrc_shared_of(body)->away = seat + 1;
	vb_xrc_shared_of(body)->away_member = member;
	vb_seats_add(&vb_xrc_shared_of(body)->handed, seat);
	vb_xrc_shared_of(body)->sent = *run;
	return PASSED;
}

void vb_xrc_receive(struct vb_qp *body, const struct vb_run *run, const void *payload)
{
	enum passed how = PASS_LATER;

	if (!vb_xrc_shared_of(body)->away && !vb_xrc_shared_of(body)->first) {
		vb_xrc_pull(body);
		how = pass(body, run, payload);
	}
	if (how == PASS_HERE) {
		execute(body, run, payload);
	} else if (how == PASS_LATER && !hold(body, run, payload)) {
		vb_responder_drop(&body->t, VB_REASON_DROP_INBOX, run);
	}
}

/*
 * A process that executes a request is not waited for here: its report will come. True: something
 * else is missing.
 */
static bool held_serve(struct vb_qp *body)
{
	struct vb_xrc_shared *xb = vb_xrc_shared_of(body);

	while (xb->first && !xb->away) {
		vb_xrc_pull(body);
		switch (pass(body, &xb->first->run, xb->first->payload)) {
		case PASS_LATER:
			/*
			 * An answer that is owed is sent when the link has room, and news of
			 * contact come by themselves. Only a full ring must be asked again.
			 */
			return true;
		case PASS_HERE:
			execute_late(body, &xb->first->run, xb->first->payload);
			break;
		default:
			break;
		}
		held_pop(xb);
	}
	return false;
}

/* The request that this process has executed for the home is answered: reports to the home. */
static bool report(struct vb_qp *body)
{
	struct vb_xrc_domain *d = vb_xrc_body_of(body)->domain;
	uint32_t home = __atomic_load_n(&vb_xrc_place(d, vb_xrc_shared_of(body)->place)->home,
					__ATOMIC_ACQUIRE);
	bool absent = true;

	if (body->t.resp.owed)
		return false; /* the queue pair waits for the link itself */
	if (home < VB_COMMONS_SEATS && home != d->seat &&
	    !say(d, home, body->t.qpn, WORD_DONE, &absent) && !absent)
		return true;
	vb_xrc_shared_of(body)->serving = false;
	return false;
}

bool vb_xrc_pump(struct vb_qp *body)
{
	bool waits = false;

	if (vb_xrc_shared_of(body)->serving)
		waits |= report(body);
	if (vb_xrc_shared_of(body)->first)
		waits |= held_serve(body);
	if (!vb_seats_none(&vb_xrc_body_of(body)->domain->news))
		waits |= vb_xrc_tell_news(vb_xrc_body_of(body)->domain);
	return waits;
}

/*
 * The process that was executing the request has taken its payload along. The request is executed
 * here with as many zeros in place of the payload. Its queue is gone, so it is refused before a
 * byte of the payload is read; unless it had been executed already.
 */
static void execute_lost(struct vb_qp *body)
{
	const struct vb_run *run = &vb_xrc_shared_of(body)->sent;
	void *zeros = calloc(1, run->length ? run->length : 1);

	if (zeros)
		execute_late(body, run, zeros);
	else
		vb_responder_drop(&body->t, VB_REASON_DROP_INBOX, run);
	free(zeros);
}

bool vb_xrc_recall(struct vb_qp *body)
{
	struct vb_xrc_domain *d = vb_xrc_body_of(body)->domain;
	struct vb_xrc_shared *xb = vb_xrc_shared_of(body);
	enum vb_contact why;

	if (!xb->away)
		return false;
	if (member_of(d, xb->away - 1) == xb->away_member)
		return !member_channel(d, xb->away - 1, &why) && why != VB_CONTACT_PENDING;
	xb->away = 0;
	vb_xrc_pull(body);
	if (vb_xrc_srq_seat(d, xb->sent.srqn) != d->seat)
		execute_lost(body);
	else /* the number of the queue has been reused, and is one of this process now */
		vb_responder_drop(&body->t, VB_REASON_DROP_INBOX, &xb->sent);
	vb_engine_make_runnable(body->engine, body);
	return false;
}

bool vb_xrc_tell_news(struct vb_xrc_domain *d)
{
	VB_SEATS_EACH(seat, &d->news)
	{
		bool absent;

		if (seat == d->seat || say(d, seat, d->contact_qpn, WORD_NEWS, &absent) || absent)
			vb_seats_remove(&d->news, seat);
	}
	return !vb_seats_none(&d->news);
}

/*
 * Events of queue pairs that this process holds, and queue pairs that have lost their home or their
 * holders.
 */
static void news_receive(struct vb_xrc_domain *d)
{
	bool orphans = false;

	for (struct vb_qp *body = d->bodies; body; body = vb_xrc_body_of(body)->next) {
		struct vb_xrc_qp_place *p = vb_xrc_place(d, vb_xrc_shared_of(body)->place);
		uint32_t events = __atomic_exchange_n(&p->events[d->seat], 0, __ATOMIC_ACQ_REL);

		for (uint32_t type = 0; type < EVENT_BITS; type++) {
			if (events >> type & 1)
				vb_xrc_handles_event(body, (enum ibv_event_type)type);
		}
		orphans |= __atomic_load_n(&p->home, __ATOMIC_RELAXED) == VB_XRC_NOBODY;
		if (!vb_xrc_shared_of(body)->away)
			vb_xrc_pull(body);
	}
	vb_xrc_bodies_sweep(d, false);
	if (orphans && vb_xrc_table_survey(d))
		vb_xrc_look_again();
}

static void word_receive(struct vb_xrc_domain *d, const struct vb_run *run)
{
	struct vb_qp *body;

	if (run->imm == WORD_NEWS) {
		news_receive(d);
		return;
	}
	body = vb_xrc_body(d, run->dest_qpn);
	if (!body || !vb_xrc_shared_of(body)->away)
		return;
	vb_xrc_shared_of(body)->away = 0;
	vb_xrc_pull(body);
	vb_engine_make_runnable(d->engine, body);
}

/*
 * The queue pair was destroyed meanwhile, or there is no memory for it here. Its home must not wait
 * for an answer.
 */
static void cannot_serve(struct vb_xrc_domain *d, uint32_t qpn)
{
	const struct vb_xrc_qp_place *p = vb_xrc_place(d, qpn);
	uint32_t home = __atomic_load_n(&p->home, __ATOMIC_ACQUIRE);
	bool absent;

	vb_note(VB_REASON_DROP_QPN, "xrc: a request was handed over for qp 0x%x, unknown here",
		qpn);
	if (__atomic_load_n(&p->qpn, __ATOMIC_ACQUIRE) == qpn && home < VB_COMMONS_SEATS &&
	    home != d->seat)
		say(d, home, qpn, WORD_DONE, &absent);
}

void vb_xrc_handed(struct vb_engine_hook *hook, const struct vb_run *run, const void *payload)
{
	struct vb_xrc_domain *d =
		(struct vb_xrc_domain *)(void *)((char *)hook -
						 offsetof(struct vb_xrc_domain, hook));
	struct vb_qp *body;

	if (!d->table)
		return;
	if (run->op == VB_OP_DROP) {
		word_receive(d, run);
		return;
	}
	body = vb_xrc_body_mirror(d, run->dest_qpn);
	if (!body) {
		cannot_serve(d, run->dest_qpn);
		return;
	}
	vb_xrc_pull(body);
	vb_xrc_shared_of(body)->serving = true;
	execute_late(body, run, payload);
}
