/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Strays: finding the process, passing them on, waiting for contact. */
#include "remote/stray.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "base/lock.h"
#include "engine/engine_channel.h"
#include "engine/engine_life.h"
#include "engine/engines.h"
#include "engine/engine.h"
#include "process/process.h"
#include "remote/drop.h"
#include "remote/part.h"
#include "remote/steer.h"
#include "host/slot.h"

#define PLACES        16u /* queue pairs of other processes whose channels are remembered */

/*
 * A number that no process of the host has costs a look-up of a name. A flood of packets with
 * random numbers must not become a flood of look-ups.
 */
#define ASK_PERIOD_NS 1000000ull
#define ASK_MOST      16u

/*
 * Contact is made once, and takes as long as the other process's thread takes to be scheduled. A
 * stopped process never answers.
 */
#define PATIENCE_NS   2000000000ull
#define WAITING_BYTES (1u << 20)

struct packet {
	struct packet *next;
	uint64_t since;
	struct vb_run run;
	uint8_t payload[];
};

struct vb_strays {
	struct vb_channel *channel[PLACES];
	uint32_t qpn[PLACES];
	uint32_t waits[PLACES]; /* packets that wait, by place of their queue pair */
	struct packet *first, **last;
	uint32_t bytes;
	uint64_t epoch; /* epoch of contact at the last question */
	uint32_t asked; /* look-ups in vain since asked_since */
	uint64_t asked_since;
};

/*
 * Keeps what engines held that have ended. Made with the first such packet, driven by the progress
 * thread.
 */
static _Atomic(struct vb_engine *) keeper; /* written under the lock */
static pthread_mutex_t keeper_lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t place_of(uint32_t qpn)
{
	return (qpn ^ qpn >> 10) % PLACES;
}

static struct vb_strays *strays_of(struct vb_engine *e)
{
	struct vb_remote_engine *r = vb_remote_engine(e);

	if (r && !r->strays) {
		r->strays = calloc(1, sizeof(*r->strays));
		if (r->strays)
			r->strays->last = &r->strays->first;
	}
	return r ? r->strays : NULL;
}

static bool may_ask(struct vb_strays *s)
{
	uint64_t now = vb_clock_ns();

	if (now - s->asked_since > ASK_PERIOD_NS) {
		s->asked_since = now;
		s->asked = 0;
	}
	return s->asked < ASK_MOST;
}

static struct vb_channel *channel_to(struct vb_engine *e, uint32_t qpn, enum vb_contact *why)
{
	struct vb_strays *s = e->remote->strays;
	uint32_t place = place_of(qpn);
	struct vb_channel *c = s->channel[place];

	if (c && s->qpn[place] == qpn && !atomic_load_explicit(&c->dead, memory_order_relaxed))
		return c;
	*why = VB_CONTACT_PENDING; /* ask later */
	if (!may_ask(s))
		return NULL;
	c = vb_channel_find(e->node, e->index, qpn, why);
	if (!c) {
		s->asked++;
		return NULL;
	}
	s->channel[place] = c;
	s->qpn[place] = qpn;
	return c;
}

static void pass_on(struct vb_engine *e, struct vb_channel *c, const struct vb_run *run,
		    const uint8_t *payload)
{
	void *bulk = NULL;
	struct vb_slot *slot = vb_ring_reserve(&c->tx, vb_slot_bulk_bytes(run, true), &bulk);

	if (!slot || !bulk) {
		vb_udp_drop(VB_REASON_DROP_INBOX, run);
		return;
	}
	vb_slot_encode_from_wire(slot, run);
	memcpy(bulk, &run->path, sizeof(run->path));
	memcpy((uint8_t *)bulk + VB_SLOT_PATH_BYTES, payload, run->length);
	vb_ring_push(&c->tx);
	vb_engine_pushed(e, c);
	e->paths.udp_strays++;
	vb_udp_steer_lost();
}

static uint32_t packet_bytes(const struct vb_run *run)
{
	return (uint32_t)sizeof(struct packet) + run->length;
}

/*
 * Appends behind the packets that wait. The second step of contact (a channel, after the process)
 * must be asked for, also if no thread polls.
 */
static void append(struct vb_engine *e, struct packet *p)
{
	struct vb_strays *s = e->remote->strays;

	p->next = NULL;
	*s->last = p;
	s->last = &p->next;
	s->bytes += packet_bytes(&p->run);
	s->waits[place_of(p->run.dest_qpn)]++;
	atomic_store_explicit(&e->keeps, true, memory_order_relaxed);
	vb_engines_watch(e);
	if (__atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED))
		vb_progress_expect(1);
}

static void keep(struct vb_engine *e, const struct vb_run *run, const uint8_t *payload)
{
	struct vb_strays *s = e->remote->strays;
	struct packet *p = s->bytes < WAITING_BYTES ? malloc(sizeof(*p) + run->length) : NULL;

	if (!p) {
		vb_udp_drop(VB_REASON_DROP_INBOX, run);
		return;
	}
	p->since = vb_clock_ns();
	p->run = *run;
	memcpy(p->payload, payload, run->length);
	append(e, p);
}

void vb_udp_stray(struct vb_engine *e, const struct vb_run *run, const uint8_t *payload)
{
	enum vb_contact why = VB_CONTACT_PENDING;
	struct vb_strays *s = strays_of(e);
	struct vb_channel *c = NULL;

	if (!s) {
		vb_udp_drop(VB_REASON_DROP_INBOX, run);
		return;
	}
	if (!s->waits[place_of(run->dest_qpn)])
		c = channel_to(e, run->dest_qpn, &why);
	if (c)
		pass_on(e, c, run, payload);
	else if (why == VB_CONTACT_PENDING)
		keep(e, run, payload);
	else
		vb_udp_drop(VB_REASON_DROP_STRAY, run);
}

/*
 * True if the packet need not be kept. `blocked`: places for which an earlier packet still waits.
 */
static bool packet_goes(struct vb_engine *e, struct packet *p, uint32_t *blocked)
{
	uint32_t place = place_of(p->run.dest_qpn);
	enum vb_contact why = VB_CONTACT_PENDING;
	struct vb_channel *c = *blocked >> place & 1 ? NULL : channel_to(e, p->run.dest_qpn, &why);

	if (c) {
		pass_on(e, c, &p->run, p->payload);
		return true;
	}
	if (why == VB_CONTACT_PENDING && vb_clock_ns() - p->since < PATIENCE_NS) {
		*blocked |= 1u << place;
		return false;
	}
	vb_udp_drop(VB_REASON_DROP_STRAY, &p->run);
	return true;
}

bool vb_udp_stray_late(struct vb_engine *e)
{
	struct vb_strays *s = e->remote->strays;
	struct packet **link = &s->first;
	uint64_t epoch = vb_process_contact_epoch();
	uint32_t blocked = 0;
	bool any = false;

	/*
	 * A poller comes by all the time. Without news only the time limit is checked, and not each
	 * time.
	 */
	if (!s->first || (epoch == s->epoch && vb_clock_ns() - s->asked_since < ASK_PERIOD_NS))
		return false;
	s->epoch = epoch;
	while (*link) {
		struct packet *p = *link;

		if (!packet_goes(e, p, &blocked)) {
			link = &p->next;
			continue;
		}
		*link = p->next;
		s->bytes -= packet_bytes(&p->run);
		s->waits[place_of(p->run.dest_qpn)]--;
		free(p);
		any = true;
	}
	s->last = link;
	atomic_store_explicit(&e->keeps, s->first != NULL, memory_order_relaxed);
	return any;
}

bool vb_udp_stray_waits(const struct vb_engine *e)
{
	return e->remote->strays && e->remote->strays->first;
}

void vb_udp_stray_forget(struct vb_engine *e, const struct vb_channel *channel)
{
	for (uint32_t i = 0; e->remote->strays && i < PLACES; i++) {
		if (e->remote->strays->channel[i] == channel)
			e->remote->strays->channel[i] = NULL;
	}
}

struct vb_engine *vb_udp_stray_keeper(void)
{
	vb_mutex_take(&keeper_lock, VB_ORDER_KEEPER);
	struct vb_engine *e = atomic_load(&keeper);

	if (!e && !vb_engine_create(&e, NULL, false))
		atomic_store(&keeper, e);
	e = atomic_load(&keeper);
	vb_mutex_release(&keeper_lock);
	return e;
}

bool vb_udp_stray_kept(void)
{
	struct vb_engine *e = atomic_load(&keeper);

	return e && atomic_load_explicit(&e->keeps, memory_order_relaxed);
}

/* Both engines' locks are held one after the other: another engine may be ending as well. */
void vb_udp_stray_finish(struct vb_engine *e)
{
	struct packet *list = NULL;
	struct vb_engine *successor;

	vb_engine_take(e);
	if (e->remote->strays) {
		vb_udp_stray_late(e);
		vb_engine_flush(e);
		list = e->remote->strays->first;
		e->remote->strays->first = NULL;
		e->remote->strays->last = &e->remote->strays->first;
		e->remote->strays->bytes = 0;
		atomic_store_explicit(&e->keeps, false, memory_order_relaxed);
		memset(e->remote->strays->waits, 0, sizeof(e->remote->strays->waits));
	}
	vb_lock_release(&e->lock);
	successor = list ? vb_udp_stray_keeper() : NULL;
	if (successor)
		vb_lock_take(&successor->lock);
	while (list) {
		struct packet *p = list;

		list = p->next;
		if (successor && strays_of(successor) &&
		    successor->remote->strays->bytes < WAITING_BYTES) {
			append(successor, p);
		} else {
			vb_udp_drop(VB_REASON_DROP_STRAY, &p->run);
			free(p);
		}
	}
	if (successor)
		vb_lock_release(&successor->lock);
}

void vb_udp_stray_fini(struct vb_engine *e)
{
	while (vb_udp_stray_waits(e)) {
		struct packet *p = e->remote->strays->first;

		e->remote->strays->first = p->next;
		vb_udp_drop(VB_REASON_DROP_STRAY, &p->run);
		free(p);
	}
	free(e->remote->strays);
	e->remote->strays = NULL;
}

static void forked(void)
{
	pthread_mutex_init(&keeper_lock, NULL);
	atomic_store(&keeper, NULL);
}

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);
