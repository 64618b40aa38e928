/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Virtual time: a heap of events beside the deadlines of the cores. */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world *world_create(void)
{
	return calloc(1, sizeof(struct world));
}

void world_destroy(struct world *w)
{
	free(w);
}

void world_fault(struct world *w, const char *format, ...)
{
	va_list ap;

	if (w->fault[0])
		return;
	va_start(ap, format);
	vsnprintf(w->fault, sizeof(w->fault), format, ap);
	va_end(ap);
}

void world_trace(struct world *w, const char *format, ...)
{
	va_list ap;

	if (!w->trace)
		return;
	printf("%11.6f ", (double)w->now / SIM_SECOND);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	putchar('\n');
}

void world_gid(uint8_t gid[16], unsigned int number)
{
	const uint8_t value[16] = {[0] = 0xfd, [15] = (uint8_t)(number + 1)};

	memcpy(gid, value, 16);
}

static bool before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

void world_schedule(struct world *w, enum sim_event_kind kind, uint64_t delay_ns, uint32_t index,
		    unsigned int act)
{
	const struct sim_event event = {.at = w->now + delay_ns,
					.order = w->order++,
					.index = index,
					.kind = (uint8_t)kind,
					.act = (uint8_t)act};
	unsigned int i = w->events;

	if (w->events == SIM_EVENTS) {
		world_fault(w, "too many events");
		return;
	}
	w->events++;
	for (; i && before(&event, &w->event[(i - 1) / 2]); i = (i - 1) / 2)
		w->event[i] = w->event[(i - 1) / 2];
	w->event[i] = event;
}

static struct sim_event take_event(struct world *w)
{
	struct sim_event first = w->event[0];
	struct sim_event last = w->event[--w->events];
	unsigned int i = 0;

	for (;;) {
		unsigned int child = 2 * i + 1;

		if (child >= w->events)
			break;
		if (child + 1 < w->events && before(&w->event[child + 1], &w->event[child]))
			child++;
		if (!before(&w->event[child], &last))
			break;
		w->event[i] = w->event[child];
		i = child;
	}
	w->event[i] = last;
	return first;
}

static void happen(struct world *w, const struct sim_event *event)
{
	switch (event->kind) {
	case SIM_PACKET:
		network_deliver(w, event->index);
		break;
	case SIM_CONNECT:
		program_connect(w, event->index);
		break;
	case SIM_ACT:
		program_act(w, event->index, event->act);
		break;
	case SIM_CRASH:
		node_crash(&w->node[event->index]);
		break;
	case SIM_RESTART:
		node_start(&w->node[event->index]);
		world_schedule(w, SIM_LISTEN, sim_time(w, SIM_SECOND), event->index, 0);
		break;
	case SIM_LISTEN:
		node_listen(&w->node[event->index]);
		break;
	case SIM_UNLISTEN:
		node_unlisten(&w->node[event->index]);
		break;
	case SIM_ENDED:
		node_ended(&w->node[event->index]);
		break;
	}
}

/* The node whose timer is due first; its time, with the lateness of threads, is in *at. */
static struct sim_node *first_timer(struct world *w, uint64_t *at)
{
	struct sim_node *first = NULL;

	*at = UINT64_MAX;
	for (unsigned int i = 0; i < w->config.nodes; i++) {
		struct sim_node *n = &w->node[i];
		uint64_t due = n->up ? vb_cm_deadline(&n->cm) : 0;

		if (due && due + w->config.lateness_ns < *at) {
			*at = due + w->config.lateness_ns;
			first = n;
		}
	}
	return first;
}

static bool good(struct world *w)
{
	if (!w->fault[0] && w->oracle.fault[0])
		world_fault(w, "%s", w->oracle.fault);
	return !w->fault[0];
}

/* Runs until the moment, or until there is nothing to do any more. */
static void run_until(struct world *w, uint64_t end)
{
	while (good(w)) {
		uint64_t timer;
		struct sim_node *n = first_timer(w, &timer);
		bool event = w->events && w->event[0].at <= timer;
		uint64_t next = event ? w->event[0].at : timer;

		if ((!event && !n) || next > end)
			break;
		if (next > w->now)
			w->now = next;
		w->oracle.now = w->now;
		if (event) {
			struct sim_event e = take_event(w);

			happen(w, &e);
		} else {
			vb_cm_expire(&n->cm, w->now);
		}
	}
	w->now = end;
	w->oracle.now = end;
}

static void release_all(struct world *w)
{
	for (uint32_t i = 0; i < w->oracle.ends; i++)
		program_act(w, i, ACT_RELEASE);
}

static void check_empty(struct world *w)
{
	for (unsigned int i = 0; i < w->config.nodes; i++) {
		const struct sim_node *n = &w->node[i];

		if (n->up && (n->live || n->cm.conns || n->cm.unreads || n->cm.remembered ||
			      vb_cm_deadline(&n->cm)))
			world_fault(w, "node %u keeps %u connections at the end", i, n->live);
	}
}

bool world_run(struct world *w, uint64_t seed, bool trace)
{
	unsigned long delivered = w->delivered;
	unsigned long lost = w->lost;
	unsigned long established = w->established;

	memset(w, 0, sizeof(*w));
	w->delivered = delivered;
	w->lost = lost;
	w->established = established;
	w->now = SIM_SECOND;
	w->trace = trace;
	plan_choose(w, seed);
	oracle_start(&w->oracle, w->config.attempts, w->config.heavy, !w->config.loss);
	for (unsigned int i = 0; i < w->config.nodes; i++) {
		w->node[i].world = w;
		w->node[i].number = i;
		node_start(&w->node[i]);
	}
	plan_schedule(w);
	run_until(w, SIM_END_NS);
	if (good(w))
		oracle_finish(&w->oracle);
	if (good(w)) {
		w->config.loss = 0;
		release_all(w);
		run_until(w, SIM_LAST_NS);
	}
	if (good(w))
		check_empty(w);
	return good(w);
}
