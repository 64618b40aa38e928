/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The network: MADs are lost, come twice, and overtake each other. */
#include <string.h>

#include "world.h"

static void put(struct world *w, unsigned int to, unsigned int from, const uint8_t *mad)
{
	const struct sim_config *c = &w->config;
	uint64_t delay = c->delay_ns + sim_random(w) % (c->jitter_ns + 1);

	if (sim_chance(w, c->late))
		delay += sim_random(w) % (400 * SIM_MS);
	for (unsigned int i = 0; i < SIM_PACKETS; i++) {
		struct sim_packet *p = &w->packet[(w->packet_hint + i) % SIM_PACKETS];

		if (p->used)
			continue;
		w->packet_hint += i + 1;
		p->used = true;
		p->to = to;
		p->from = (uint8_t)from;
		memcpy(p->mad, mad, VB_MAD_BYTES);
		world_schedule(w, SIM_PACKET, delay, (uint32_t)(p - w->packet), 0);
		return;
	}
	world_fault(w, "too many packets in flight");
}

static unsigned int node_of(const struct world *w, const uint8_t gid[16])
{
	for (unsigned int i = 0; i < w->config.nodes; i++) {
		uint8_t own[16];

		world_gid(own, i);
		if (!memcmp(own, gid, 16))
			return i;
	}
	return w->config.nodes;
}

void network_send(struct sim_node *from, const struct vb_cm_path *path,
		  const uint8_t mad[VB_MAD_BYTES])
{
	struct world *w = from->world;
	unsigned int to = node_of(w, path->dgid);
	struct vb_cm_message m;

	if (vb_cm_message_decode(mad, VB_MAD_BYTES, &m)) {
		world_fault(w, "node %u sent a malformed message", from->number);
		return;
	}
	if (w->trace)
		world_trace(w, "%c> %c attribute %02x local %08x remote %08x reason %u",
			    'A' + (int)from->number, 'A' + (int)to, m.attribute, m.local_id,
			    m.remote_id, m.attribute == VB_CM_REJ ? m.rej.reason : 0);
	if (to == w->config.nodes)
		return; /* a stranger */
	/*
	 * Someone repeats what it has seen, from an address of its own. With SIDR_REQ that would be
	 * a request like others.
	 */
	if (m.attribute != VB_CM_SIDR_REQ && sim_chance(w, w->config.strange))
		put(w, to, SIM_NODES, mad);
	if (sim_chance(w, w->config.loss)) {
		w->lost++;
		return;
	}
	put(w, to, from->number, mad);
	if (sim_chance(w, w->config.twice))
		put(w, to, from->number, mad);
}

void network_deliver(struct world *w, uint32_t index)
{
	struct sim_packet *p = &w->packet[index];
	struct sim_node *n = &w->node[p->to];
	struct vb_cm_path path = {.ifindex = 1, .guid = 0x100 + p->to};

	p->used = false;
	if (!n->up)
		return;
	world_gid(path.sgid, p->to);
	world_gid(path.dgid, p->from);
	w->delivered++;
	vb_cm_receive(&n->cm, &path, p->mad, VB_MAD_BYTES, w->now);
}
