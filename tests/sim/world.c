/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Virtual time: the heap of events, and what each event does. */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE_NS 60000000000ull
#define MOST_EVENTS 400000ul

void world_fault(struct world *w, const char *format, ...)
{
	va_list ap;

	if (w->fault[0])
		return;
	va_start(ap, format);
	vsnprintf(w->fault, sizeof(w->fault), format, ap);
	va_end(ap);
}

static bool earlier(const struct sim_event *a, const struct sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void world_schedule(struct world *w, enum sim_event_kind kind, unsigned int side, uint64_t delay_ns,
		    uint32_t number)
{
	struct sim_event e = {
		.at = w->now + delay_ns,
		.order = w->order++,
		.number = number,
		.kind = (uint8_t)kind,
		.side = (uint8_t)side,
	};
	unsigned int i = w->events;

	if (i == SIM_EVENTS) {
		world_fault(w, "more events than the simulator holds");
		return;
	}
	w->events++;
	while (i && earlier(&e, &w->event[(i - 1) / 2])) {
		w->event[i] = w->event[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	w->event[i] = e;
}

static struct sim_event next_event(struct world *w)
{
	struct sim_event first = w->event[0];
	struct sim_event last = w->event[--w->events];
	unsigned int i = 0;

	for (;;) {
		unsigned int child = 2 * i + 1;

		if (child >= w->events)
			break;
		if (child + 1 < w->events && earlier(&w->event[child + 1], &w->event[child]))
			child++;
		if (!earlier(&w->event[child], &last))
			break;
		w->event[i] = w->event[child];
		i = child;
	}
	w->event[i] = last;
	return first;
}

void world_run_soon(struct sim_side *s, uint64_t delay_ns)
{
	if (s->run_scheduled)
		return;
	s->run_scheduled = true;
	world_schedule(s->world, SIM_EVENT_RUN, s->number, delay_ns, 0);
}

static void run_side(struct sim_side *s)
{
	s->run_scheduled = false;
	/* True: the link was full, or direct access wants another turn. */
	if (vb_tqp_run(&s->qp))
		world_run_soon(s, 300);
}

static void post_some(struct sim_side *s)
{
	struct world *w = s->world;

	for (unsigned int n = 1 + sim_below(w, 5); n; n--)
		endpoint_post(s);
	if (s->qp.sq_posted < s->plans)
		world_schedule(w, SIM_EVENT_POST, s->number, sim_below(w, 20000), 0);
	world_run_soon(s, sim_below(w, 500));
}

static void post_recv_some(struct sim_side *s)
{
	struct world *w = s->world;
	const struct sim_config *c = &w->config;
	/*
	 * Where tries are counted, one receive is posted within each of them, so that they suffice.
	 */
	bool counted = c->rnr_retry != 7;
	unsigned int count = counted ? 1 : sim_below(w, 5);

	endpoint_post_recv(s, c->late_recv ? count : ORACLE_RECVS);
	if (s->recvs_posted < s->recvs_wanted)
		world_schedule(w, SIM_EVENT_POST_RECV, s->number,
			       sim_below(w, counted ? 900000 : 60000), 0);
}

/* Drains the send queue, and resumes it later. */
static void toggle_sqd(struct sim_side *s)
{
	struct world *w = s->world;

	if (s->qp.state == IBV_QPS_RTS) {
		s->qp.state = IBV_QPS_SQD;
		trace_line(w, "%c: SQD", 'A' + (int)s->number);
	} else if (s->qp.state == IBV_QPS_SQD && s->drained) {
		s->qp.state = IBV_QPS_RTS;
		s->drained = false;
		trace_line(w, "%c: RTS again", 'A' + (int)s->number);
		world_run_soon(s, 0);
	}
	if (s->completed < s->plans && s->qp.state != IBV_QPS_ERR)
		world_schedule(w, SIM_EVENT_SQD, s->number, 5000 + sim_below(w, 200000), 0);
}

static void happen(struct world *w)
{
	struct sim_side *s = &w->side[w->config.fault_side];

	switch (w->config.fault) {
	case SIM_FAULT_APP_ERROR:
		if (s->qp.state == IBV_QPS_ERR)
			return;
		trace_line(w, "%c: the program moves it to ERR", 'A' + (int)s->number);
		oracle_stopped(&w->oracle, s->number, true);
		vb_tqp_to_error(&s->qp);
		sim_env.queue.state_changed(&s->qp); /* the device's part: flushes the receives */
		break;
	case SIM_FAULT_PEER_DEAD:
		trace_line(w, "%c: dies", 'A' + (int)s->number);
		s->gone = true;
		oracle_gone(&w->oracle, s->number);
		vb_tqp_peer_dead(&sim_peer(s)->qp);
		world_run_soon(sim_peer(s), 0);
		break;
	case SIM_FAULT_GONE:
		sim_peer(s)->memory_gone = true;
		break;
	case SIM_FAULT_DEREG:
		sim_peer(s)->keys[0].key = 0;
		sim_peer(s)->keys[3].key = 0;
		break;
	default:
		break;
	}
}

static void dispatch(struct world *w, const struct sim_event *e)
{
	struct sim_side *s = &w->side[e->side];

	if (e->kind == SIM_EVENT_PACKET) {
		link_deliver(w, e->side, e->number);
		return;
	}
	if (e->kind == SIM_EVENT_FAULT) {
		happen(w);
		return;
	}
	if (s->gone)
		return;
	switch (e->kind) {
	case SIM_EVENT_RUN:
		run_side(s);
		break;
	case SIM_EVENT_TIMER:
		if (e->number == s->timer_generation) {
			vb_tqp_timer(&s->qp);
			world_run_soon(s, 0);
		}
		break;
	case SIM_EVENT_POST:
		post_some(s);
		break;
	case SIM_EVENT_POST_RECV:
		post_recv_some(s);
		break;
	case SIM_EVENT_READY:
		if (s->qp.state == IBV_QPS_INIT)
			endpoint_ready(s);
		break;
	case SIM_EVENT_SQD:
		toggle_sqd(s);
		break;
	default:
		break;
	}
	if (s->qp.state == IBV_QPS_SQD && !vb_tqp_busy(&s->qp))
		s->drained = true;
}

static void set_the_stage(struct world *w)
{
	const struct sim_config *c = &w->config;
	struct oracle *o = &w->oracle;

	for (unsigned int s = 0; s < w->sides; s++) {
		for (uint32_t i = 0; i + 8 <= SIM_LANDING_AT; i += 8) {
			uint64_t value = sim_random(w);

			memcpy(w->side[s].memory + i, &value, 8);
		}
		/* Small numbers, so that comparisons succeed now and then. */
		for (uint32_t i = 0; i < SIM_ATOMIC_BYTES; i += 8)
			memset(w->side[s].memory + SIM_ATOMIC_AT + i, 0, 8);
		memset(w->side[s].memory + SIM_LANDING_AT, 0x55, SIM_MEMORY - SIM_LANDING_AT);
		o->side[s].real = w->side[s].memory;
		endpoint_start(w, s);
	}
	oracle_start(o, w->sides, SIM_MEMORY);
	o->reliable_service = c->service == VB_SERVICE_RC;
	o->lossy = !c->reliable;
	o->header = c->service == VB_SERVICE_UD ? 40 : 0;
	o->may_drop = !o->reliable_service &&
		      (!c->reliable || c->late_recv || c->ready_ns[0] > 1000 ||
		       c->ready_ns[1] > 1000 || c->fault || c->ready_ns[0] != c->ready_ns[1]);
	o->may_repeat = c->service == VB_SERVICE_UD && !c->reliable;
	workload_plan(w);
	for (unsigned int s = 0; s < w->sides; s++) {
		if (c->heavy && o->reliable_service)
			o->side[s].may |= 1u << IBV_WC_RETRY_EXC_ERR;
		world_schedule(w, SIM_EVENT_READY, s, c->ready_ns[s], 0);
		world_schedule(w, SIM_EVENT_POST_RECV, s, 0, 0);
		world_schedule(w, SIM_EVENT_POST, s, c->ready_ns[s] + 1, 0);
		if (c->sqd)
			world_schedule(w, SIM_EVENT_SQD, s, 5000 + sim_below(w, 100000), 0);
	}
	if (c->fault)
		world_schedule(w, SIM_EVENT_FAULT, 0, c->fault_ns, 0);
}

bool world_run(struct world *w, uint64_t seed, bool trace)
{
	const struct sim_config *c = &w->config;
	unsigned long count = 0;
	bool gone[2];

	w->now = w->order = w->last_done_ns = 0;
	w->events = w->packets = 0;
	w->pool_at = 0;
	w->pool_bytes = 0;
	w->fault[0] = 0;
	w->trace = trace;
	memset(w->packet, 0, sizeof(w->packet));
	plan_choose(w, seed);
	set_the_stage(w);
	while (w->events && !w->fault[0] && !w->oracle.fault[0]) {
		struct sim_event e = next_event(w);

		w->now = e.at;
		if (w->now > DEADLINE_NS || ++count > MOST_EVENTS) {
			trace_line(w, "the deadline is over");
			break;
		}
		dispatch(w, &e);
	}
	for (int s = 0; s < 2; s++)
		gone[s] = w->side[s].gone;
	/*
	 * All times chosen are shorter than the repair timer of reliable links, which is for
	 * answers that are lost.
	 */
	if (c->reliable && w->last_done_ns > VB_REPAIR_NS * 9 / 10)
		world_fault(w, "on a reliable link an answer got lost");
	if (!w->fault[0] && !w->oracle.fault[0])
		oracle_finish(&w->oracle, gone);
	if (!w->fault[0])
		memcpy(w->fault, w->oracle.fault, sizeof(w->fault));
	return !w->fault[0];
}

struct world *world_create(void)
{
	struct world *w = aligned_alloc(_Alignof(struct world), sizeof(*w));

	if (!w)
		return NULL;
	memset(w, 0, sizeof(*w));
	for (int s = 0; s < 2; s++) {
		w->side[s].memory = malloc(SIM_MEMORY);
		w->oracle.side[s].model = malloc(SIM_MEMORY);
		w->oracle.side[s].unknown = malloc(SIM_MEMORY);
		if (!w->side[s].memory || !w->oracle.side[s].model || !w->oracle.side[s].unknown) {
			world_destroy(w);
			return NULL;
		}
	}
	return w;
}

void world_destroy(struct world *w)
{
	for (int s = 0; s < 2; s++) {
		free(w->side[s].memory);
		free(w->oracle.side[s].model);
		free(w->oracle.side[s].unknown);
	}
	free(w);
}
