/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A node: the environment of its core, and its lives. */
#include <string.h>

#include "world.h"

/* Ids of a life. Few, so that they are used again soon. */
#define ID_BITS    9u
/* All packets of a node have arrived by then. */
#define DRAINED_NS (2 * SIM_SECOND)

static void env_send(struct vb_cm *cm, const struct vb_cm_path *path,
		     const uint8_t mad[VB_MAD_BYTES])
{
	network_send(cm->owner, path, mad);
}

static bool env_event(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_event *event)
{
	return program_event(cm->owner, conn, event);
}

static struct vb_cm_conn *env_alloc(struct vb_cm *cm)
{
	struct sim_node *n = cm->owner;

	for (unsigned int i = 0; i < SIM_CONNS; i++) {
		if (n->used[i])
			continue;
		n->used[i] = true;
		n->live++;
		memset(&n->conns[i], 0xa5, sizeof(n->conns[i]));
		return &n->conns[i];
	}
	world_fault(n->world, "node %u has no room for a connection", n->number);
	return NULL;
}

static void env_free(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	struct sim_node *n = cm->owner;
	unsigned int i = (unsigned int)(conn - n->conns);

	if (i >= SIM_CONNS || !n->used[i]) {
		world_fault(n->world, "node %u frees what is free", n->number);
		return;
	}
	n->used[i] = false;
	n->live--;
	memset(conn, 0x5a, sizeof(*conn));
}

static uint32_t env_random(struct vb_cm *cm)
{
	struct sim_node *n = cm->owner;

	return (uint32_t)sim_random(n->world);
}

static void env_drop(struct vb_cm *cm, enum vb_reason reason, const struct vb_cm_path *path,
		     const uint8_t *mad)
{
	struct sim_node *n = cm->owner;

	(void)path;
	(void)mad;
	world_trace(n->world, "%c  drops: %s", 'A' + (int)n->number, vb_reason_name(reason));
}

static const struct vb_cm_env env = {
	.send = env_send,
	.event = env_event,
	.conn_alloc = env_alloc,
	.conn_free = env_free,
	.random = env_random,
	.drop = env_drop,
};

void node_start(struct sim_node *n)
{
	unsigned int block = n->world->config.same_block ? 0 : n->life;
	const struct vb_cm_setup setup = {
		.id_base = n->id_base = (n->number + 1) << 24 | block << ID_BITS,
		.id_bits = ID_BITS,
		.owner = n,
	};

	memset(n->used, 0, sizeof(n->used));
	n->live = 0;
	n->up = true;
	n->listening = false;
	oracle_absent(&n->world->oracle, n->number);
	n->next_qpn = n->world->config.same_block ? 0x100 : 0x100 + 0x1000 * n->life;
	vb_cm_init(&n->cm, &env, &setup);
}

void node_listen(struct sim_node *n)
{
	struct vb_cm_listener *l = &n->listener;

	if (!n->up || n->listening)
		return;
	n->listening = true;
	memset(l, 0, sizeof(*l));
	l->service_id = SIM_SERVICE;
	l->backlog = n->world->config.backlog;
	n->datagrams = *l;
	n->datagrams.service_id = SIM_DATAGRAM;
	n->datagrams.service = VB_CM_UD;
	if (vb_cm_listen(&n->cm, &n->listener) || vb_cm_listen(&n->cm, &n->datagrams))
		world_fault(n->world, "node %u cannot listen", n->number);
}

void node_unlisten(struct sim_node *n)
{
	if (!n->up || !n->listening)
		return;
	n->listening = false;
	oracle_absent(&n->world->oracle, n->number);
	vb_cm_unlisten(&n->cm, &n->listener);
	vb_cm_unlisten(&n->cm, &n->datagrams);
	memset(&n->listener, 0xee, sizeof(n->listener));
	memset(&n->datagrams, 0xee, sizeof(n->datagrams));
	world_schedule(n->world, SIM_LISTEN, sim_time(n->world, 500 * SIM_MS), n->number, 0);
}

/* Half of the lives end in order: each connection has a last word. */
static void leave(struct sim_node *n)
{
	world_trace(n->world, "%c  leaves", 'A' + (int)n->number);
	for (unsigned int i = 0; i < n->world->oracle.ends; i++) {
		if (n->world->oracle.end[i].node == n->number && n->world->conn[i])
			oracle_release(&n->world->oracle, i);
	}
	vb_cm_end(&n->cm, n->world->now);
	if (n->live || n->cm.conns || n->cm.unreads || n->cm.remembered || vb_cm_deadline(&n->cm))
		world_fault(n->world, "node %u keeps connections after its end", n->number);
}

void node_crash(struct sim_node *n)
{
	struct world *w = n->world;

	if (!n->up)
		return;
	if (sim_chance(w, 500))
		leave(n);
	else
		world_trace(w, "%c  crashes", 'A' + (int)n->number);
	n->up = false;
	n->life++;
	for (unsigned int i = 0; i < w->oracle.ends; i++) {
		if (w->oracle.end[i].node == n->number)
			w->conn[i] = NULL;
	}
	oracle_crash(&w->oracle, n->number);
	n->ended_base = n->id_base;
	if (w->config.neighbours)
		world_schedule(w, SIM_ENDED, DRAINED_NS, n->number, 0);
	/* A block of ids and its queue pairs rest before they are used again. */
	world_schedule(w, SIM_RESTART,
		       (w->config.same_block ? 110 * SIM_SECOND : 0) + sim_time(w, 5 * SIM_SECOND),
		       n->number, 0);
}

static bool is_near(const uint8_t gid[16])
{
	(void)gid;
	return true;
}

void node_ended(struct sim_node *n)
{
	struct world *w = n->world;

	world_trace(w, "%c  is known to have ended", 'A' + (int)n->number);
	w->oracle.ended = true;
	for (unsigned int i = 0; i < w->config.nodes; i++) {
		if (i != n->number && w->node[i].up)
			vb_cm_peer_ended(&w->node[i].cm, n->ended_base, ID_BITS, is_near, w->now);
	}
	oracle_ended(&w->oracle, n->number);
}
