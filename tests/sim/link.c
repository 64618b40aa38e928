/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The simulated link. A lossy link cuts runs at random places, and loses, changes, repeats and
 * delays the pieces. A reliable link keeps runs and their order. Both hold a limited number of
 * runs.
 */
#include <string.h>

#include "world.h"

static struct sim_side *side_of(struct vb_tqp *qp)
{
	return (struct sim_side *)(void *)qp;
}

void *link_reserve(struct vb_tqp *qp, const struct vb_send_wqe *wqe, const struct vb_run *run)
{
	struct sim_side *s = side_of(qp);

	if (wqe && qp->service != VB_SERVICE_UD)
		world_fault(s->world, "side %u reserves for an entry of a connected queue pair",
			    s->number);
	if (run->length > qp->max_run_bytes || run->length > SIM_PACKET_BYTES)
		world_fault(s->world, "side %u reserves %u bytes for a run", s->number,
			    run->length);
	if (s->world->fault[0]) /* so that a queue pair that sends without end is stopped */
		return NULL;
	s->reserved_for = *run;
	return s->in_link < s->world->config.room ? s->reserved : NULL;
}

static uint32_t pool_put(struct world *w, const void *data, uint32_t length)
{
	uint32_t at;

	if (w->pool_at + length > SIM_POOL_BYTES)
		w->pool_at = 0;
	at = w->pool_at;
	w->pool_at += length;
	w->pool_bytes += length;
	if (w->pool_bytes > SIM_POOL_BYTES / 2)
		world_fault(w, "more payload in flight than the simulator holds");
	else
		memcpy(w->pool + at, data, length);
	return at;
}

static void put(struct sim_side *s, const struct vb_run *run, const uint8_t *payload,
		uint64_t delay_ns)
{
	struct world *w = s->world;
	struct sim_packet *p;

	if (w->packets == SIM_PACKETS) {
		world_fault(w, "more packets in flight than the simulator holds");
		return;
	}
	while (w->packet[w->packet_hint % SIM_PACKETS].used)
		w->packet_hint++;
	p = &w->packet[w->packet_hint % SIM_PACKETS];
	p->run = *run;
	p->data = pool_put(w, payload, run->length);
	p->used = true;
	w->packets++;
	s->in_link++;
	world_schedule(w, SIM_EVENT_PACKET, s->number, delay_ns, w->packet_hint % SIM_PACKETS);
}

/* Draws what happens to one piece on a lossy link. */
static void throw_piece(struct sim_side *s, const struct vb_run *run, const uint8_t *payload)
{
	struct world *w = s->world;
	const struct sim_config *c = &w->config;
	uint64_t delay =
		c->delay_ns + (c->jitter_ns ? sim_below(w, (unsigned int)c->jitter_ns) : 0);
	bool orderly = c->service == VB_SERVICE_UC;

	if (orderly) {
		/* UC cannot tell an old packet from a new one: its network keeps the order. */
		delay = c->delay_ns;
	} else if (sim_chance(w, c->late)) {
		delay += c->delay_ns * (1 + sim_below(w, 3));
	}
	if (sim_chance(w, c->loss)) {
		trace_packet(s, run, "LOST");
		w->lost++;
		return;
	}
	if (sim_chance(w, c->corrupt)) {
		trace_packet(s, run, "SPOILED (dropped by its checksum)");
		w->lost++;
		return;
	}
	trace_packet(s, run, "");
	put(s, run, payload, delay);
	if (!orderly && sim_chance(w, c->twice)) {
		trace_packet(s, run, "TWICE");
		put(s, run, payload, delay + sim_below(w, (unsigned int)c->delay_ns * 2));
	}
}

/* Cuts a run anywhere between two packets. */
static void cut(struct sim_side *s, const struct vb_run *run)
{
	const uint8_t ends = VB_RUN_LAST | VB_RUN_IMM | VB_RUN_INV | VB_RUN_SOLICITED |
			     VB_RUN_ACK_REQ;
	unsigned int left = run->segments;
	const uint8_t *payload = s->reserved;
	struct vb_run piece = *run;
	uint32_t bytes = run->length;

	while (left) {
		unsigned int n = 1 + sim_below(s->world, left);

		piece.segments = (uint16_t)n;
		piece.length = n == left ? bytes : n * s->qp.mtu;
		piece.flags = n == left ? run->flags : (uint8_t)(run->flags & ~ends);
		if (left != run->segments)
			piece.flags &= (uint8_t)~VB_RUN_FIRST;
		throw_piece(s, &piece, payload);
		piece.psn = (piece.psn + n) & VB_QPN_MASK;
		payload += piece.length;
		bytes -= piece.length;
		left -= n;
	}
}

static void check_run(struct sim_side *s, const struct vb_run *run)
{
	bool request = run->op <= VB_OP_READ_REQUEST || run->op == VB_OP_COMPARE_SWAP ||
		       run->op == VB_OP_FETCH_ADD;

	if (run->length != s->reserved_for.length)
		world_fault(s->world, "side %u sends %u bytes where %u were reserved", s->number,
			    run->length, s->reserved_for.length);
	/* Where the payload goes in a slot depends on these. */
	if (run->op != s->reserved_for.op || run->service != s->reserved_for.service ||
	    (run->flags ^ s->reserved_for.flags) & (VB_RUN_IMM | VB_RUN_INV | VB_RUN_ACKS) ||
	    (vb_op_is_request(run->op) && (run->flags ^ s->reserved_for.flags) & VB_RUN_FIRST))
		world_fault(s->world, "side %u sends another run than it has reserved for",
			    s->number);
	if (!run->segments || run->length > (uint32_t)run->segments * s->qp.mtu)
		world_fault(s->world, "side %u sends %u bytes in %u packets", s->number,
			    run->length, run->segments);
	if (s->in_link >= s->world->config.room)
		world_fault(s->world, "side %u sends without room", s->number);
	if (request && s->drained)
		world_fault(s->world, "side %u starts a request in SQD", s->number);
}

void link_commit(struct vb_tqp *qp, const struct vb_send_wqe *wqe, const struct vb_run *run)
{
	struct sim_side *s = side_of(qp);
	struct world *w = s->world;
	uint64_t arrival;

	(void)wqe;
	check_run(s, run);
	if (s->gone || sim_peer(s)->gone)
		return;
	if (!w->config.reliable) {
		cut(s, run);
		return;
	}
	trace_packet(s, run, "");
	arrival = w->now + w->config.delay_ns + sim_below(w, (unsigned int)w->config.jitter_ns + 1);
	if (arrival < s->link_free_ns)
		arrival = s->link_free_ns;
	s->link_free_ns = arrival;
	put(s, run, s->reserved, arrival - w->now);
}

void link_deliver(struct world *w, unsigned int side, uint32_t index)
{
	struct sim_packet *p = &w->packet[index];
	struct sim_side *from = &w->side[side];
	struct sim_side *to = sim_peer(from);
	uint8_t copy[SIM_PACKET_BYTES];

	memcpy(copy, w->pool + p->data, p->run.length);
	p->used = false;
	w->packets--;
	w->pool_bytes -= p->run.length;
	from->in_link--;
	if (to->gone)
		return;
	w->delivered++;
	vb_tqp_receive(&to->qp, &p->run, copy);
	world_run_soon(to, sim_chance(w, 500) ? 0 : sim_below(w, 5000));
	world_run_soon(from, 100);
}
