/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What programs do: they connect, decide, hold, and end, at moments of their choice. */
#include <string.h>

#include "wire/bytes.h"
#include "world.h"

static uint32_t end_of(const struct vb_cm_conn *conn)
{
	return (uint32_t)(uintptr_t)conn->user - 1;
}

static void set_end(struct world *w, struct vb_cm_conn *conn, uint32_t end)
{
	conn->user = (void *)(uintptr_t)(end + 1);
	w->conn[end] = conn;
}

static void act_later(struct world *w, uint32_t end, enum sim_act act, uint64_t most)
{
	world_schedule(w, SIM_ACT, sim_time(w, most), end, act);
}

/* As rdma_connect() and rdma_accept() would have them from a program. */
static struct oracle_terms choose_terms(struct world *w, struct sim_node *n, uint32_t data)
{
	return (struct oracle_terms){
		.qpn = n->next_qpn++,
		.psn = (uint32_t)sim_random(w) & 0xffffff,
		.responder_resources = (uint8_t)sim_below(w, 256),
		.initiator_depth = (uint8_t)sim_below(w, 256),
		.rnr_retry_count = (uint8_t)sim_below(w, 8),
		.data = data,
	};
}

static int connect_rc(struct sim_node *n, const struct vb_cm_path *path,
		      const struct vb_cm_address *address, const struct oracle_terms *t,
		      struct vb_cm_conn **conn)
{
	uint8_t data[4];
	const struct vb_cm_connect how = {
		.path = *path,
		.service_id = SIM_SERVICE,
		.address = *address,
		.qp_num = t->qpn,
		.psn = t->psn,
		.responder_resources = t->responder_resources,
		.initiator_depth = t->initiator_depth,
		.retry_count = 7,
		.rnr_retry_count = t->rnr_retry_count,
		.private_data = data,
		.private_length = sizeof(data),
	};

	vb_put32(data, t->data);
	return vb_cm_connect(&n->cm, &how, n->world->now, conn);
}

static int ask_ud(struct sim_node *n, const struct vb_cm_path *path,
		  const struct vb_cm_address *address, const struct oracle_terms *t,
		  struct vb_cm_conn **conn)
{
	uint8_t data[4];
	const struct vb_cm_sidr_request how = {
		.path = *path,
		.service_id = SIM_DATAGRAM,
		.address = *address,
		.private_data = data,
		.private_length = sizeof(data),
	};

	vb_put32(data, t->data);
	return vb_cm_sidr_request(&n->cm, &how, n->world->now, conn);
}

void program_connect(struct world *w, unsigned int attempt)
{
	const struct oracle_attempt *a = &w->oracle.attempt[attempt];
	struct sim_node *n = &w->node[a->from];
	struct vb_cm_path path = {.ifindex = 1, .guid = 0x100 + a->from, .mtu = 3, .pkey = 0xffff};
	struct vb_cm_address address = {.version = 6, .port = (uint16_t)(1000 + attempt)};
	struct oracle_terms terms;
	struct vb_cm_conn *conn;
	uint32_t end;

	if (!n->up)
		return;
	world_gid(path.sgid, a->from);
	world_gid(path.dgid, a->to);
	world_gid(address.source, a->from);
	world_gid(address.destination, a->to);
	terms = choose_terms(w, n, attempt + 1);
	if (a->sidr ? ask_ud(n, &path, &address, &terms, &conn)
		    : connect_rc(n, &path, &address, &terms, &conn)) {
		world_fault(w, "node %u cannot connect", a->from);
		return;
	}
	end = oracle_connect(&w->oracle, attempt, n->life, &terms);
	set_end(w, conn, end);
	if (sim_chance(w, w->config.releases))
		act_later(w, end, ACT_RELEASE, 60 * SIM_SECOND);
}

static void accept(struct world *w, uint32_t end)
{
	struct oracle_end *e = &w->oracle.end[end];
	struct sim_node *n = &w->node[e->node];
	const struct oracle_terms t = choose_terms(w, n, end + 1);
	uint8_t data[4];
	const struct vb_cm_accept how = {
		.qp_num = t.qpn,
		.psn = t.psn,
		.responder_resources = t.responder_resources,
		.initiator_depth = t.initiator_depth,
		.rnr_retry_count = t.rnr_retry_count,
		.private_data = data,
		.private_length = sizeof(data),
	};
	const struct vb_cm_sidr_reply reply = {
		.qp_num = t.qpn,
		.qkey = t.psn,
		.private_data = data,
		.private_length = sizeof(data),
	};

	vb_put32(data, t.data);
	if (w->oracle.attempt[e->attempt].sidr
		    ? vb_cm_sidr_reply(&n->cm, w->conn[end], &reply, w->now)
		    : vb_cm_accept(&n->cm, w->conn[end], &how, w->now)) {
		oracle_failed(&w->oracle, end, ORACLE_ASKED); /* unless the peer has given up */
		act_later(w, end, ACT_RELEASE, SIM_SECOND);
	} else {
		oracle_accept(&w->oracle, end, &t);
		if (sim_chance(w, 100)) /* at once, perhaps before the response arrives */
			act_later(w, end, ACT_DISCONNECT, 5 * SIM_SECOND);
	}
}

static void reject(struct world *w, uint32_t end)
{
	struct sim_node *n = &w->node[w->oracle.end[end].node];
	const struct vb_cm_sidr_reply reply = {.status = VB_CM_SIDR_REJECTED};
	int rc;

	if (w->oracle.attempt[w->oracle.end[end].attempt].sidr)
		rc = vb_cm_sidr_reply(&n->cm, w->conn[end], &reply, w->now);
	else
		rc = vb_cm_reject(&n->cm, w->conn[end], VB_CM_REJ_CONSUMER, "no", 3, w->now);
	if (rc) {
		oracle_failed(&w->oracle, end, ORACLE_ASKED);
		oracle_failed(&w->oracle, end, ORACLE_ANSWERED);
	} else {
		oracle_reject(&w->oracle, end);
	}
	act_later(w, end, ACT_RELEASE, 20 * SIM_SECOND);
}

static void decide(struct world *w, uint32_t end)
{
	if (sim_chance(w, w->config.silences))
		return; /* never */
	if (sim_chance(w, w->config.rejects))
		reject(w, end);
	else
		accept(w, end);
}

static void establish(struct world *w, uint32_t end)
{
	struct sim_node *n = &w->node[w->oracle.end[end].node];
	uint32_t peer = w->oracle.end[end].peer;

	if (sim_chance(w, w->config.rejects / 4)) {
		reject(w, end);
		return;
	}
	if (vb_cm_establish(&n->cm, w->conn[end], w->now)) {
		oracle_failed(&w->oracle, end, ORACLE_ANSWERED);
		act_later(w, end, ACT_RELEASE, SIM_SECOND);
		return;
	}
	w->established++;
	oracle_establish(&w->oracle, end);
	/* Data may overtake the RTU. */
	if (peer != ORACLE_NONE && sim_chance(w, 200))
		act_later(w, peer, ACT_NOTIFY, 100 * SIM_MS);
	if (sim_chance(w, 500))
		act_later(w, end, sim_chance(w, 700) ? ACT_DISCONNECT : ACT_RELEASE,
			  100 * SIM_SECOND);
}

static void disconnect(struct world *w, uint32_t end)
{
	struct sim_node *n = &w->node[w->oracle.end[end].node];

	if (vb_cm_disconnect(&n->cm, w->conn[end], w->now))
		oracle_failed(&w->oracle, end, ORACLE_UP);
	else
		oracle_disconnect(&w->oracle, end);
	if (sim_chance(w, w->config.releases))
		act_later(w, end, ACT_RELEASE, 10 * SIM_SECOND);
}

static void notify(struct world *w, uint32_t end)
{
	struct sim_node *n = &w->node[w->oracle.end[end].node];

	/* The event comes during the call. */
	oracle_notify(&w->oracle, end);
	vb_cm_notify(&n->cm, w->conn[end], w->now);
}

void program_act(struct world *w, uint32_t end, enum sim_act act)
{
	static const char *const names[] = {"takes",       "decides",  "establishes",
					    "disconnects", "notifies", "releases"};
	struct sim_node *n = &w->node[w->oracle.end[end].node];

	if (!w->conn[end])
		return; /* released, or its node crashed */
	world_trace(w, "%c  end %u %s", 'A' + (int)n->number, end, names[act]);
	switch (act) {
	case ACT_TAKE:
		vb_cm_taken(&n->cm, w->conn[end]);
		break;
	case ACT_DECIDE:
		decide(w, end);
		break;
	case ACT_ESTABLISH:
		establish(w, end);
		break;
	case ACT_DISCONNECT:
		disconnect(w, end);
		break;
	case ACT_NOTIFY:
		notify(w, end);
		break;
	case ACT_RELEASE:
		oracle_release(&w->oracle, end);
		vb_cm_release(&n->cm, w->conn[end], w->now);
		w->conn[end] = NULL;
		break;
	}
}

static bool padded(const struct vb_cm_event *event, unsigned int length, unsigned int used)
{
	if (event->private_length != length)
		return false;
	for (unsigned int i = used; i < length; i++) {
		if (event->private_data[i])
			return false;
	}
	return true;
}

static struct oracle_terms terms_of(const struct vb_cm_event *event)
{
	return (struct oracle_terms){
		.qpn = event->qp_num,
		.psn = event->type == VB_CM_EVENT_SIDR_RESPONSE ? event->qkey : event->psn,
		/* As the sender said them. */
		.responder_resources = event->initiator_depth,
		.initiator_depth = event->responder_resources,
		.rnr_retry_count = event->rnr_retry_count,
		.data = vb_get32(event->private_data),
	};
}

static bool requested(struct sim_node *n, struct vb_cm_conn *conn, const struct vb_cm_event *event)
{
	const struct oracle_terms terms = terms_of(event);
	struct world *w = n->world;
	uint64_t think = sim_time(w, 3 * SIM_SECOND);
	uint64_t reading;
	uint32_t end;

	if (!padded(event, event->type == VB_CM_EVENT_REQUEST ? 56 : 180, 4))
		world_fault(w, "a request's private data is not padded");
	if (sim_chance(w, 30))
		return false; /* no memory: a later try is a new request */
	end = oracle_request(&w->oracle, terms.data - 1, n->number, n->life, &terms);
	if (end == ORACLE_NONE)
		return false;
	set_end(w, conn, end);
	if (sim_chance(w, 50)) /* long enough for MRAs */
		think = sim_random(w) % (150 * SIM_SECOND);
	reading = sim_time(w, SIM_SECOND);
	world_schedule(w, SIM_ACT, reading, end, ACT_TAKE);
	world_schedule(w, SIM_ACT, reading + think, end, ACT_DECIDE);
	if (sim_chance(w, w->config.releases))
		act_later(w, end, ACT_RELEASE, 60 * SIM_SECOND);
	return true;
}

static void responded(struct world *w, uint32_t end, const struct vb_cm_event *event)
{
	const struct oracle_terms terms = terms_of(event);
	bool sidr = event->type == VB_CM_EVENT_SIDR_RESPONSE;

	if (!padded(event, sidr ? 136 : 196, 4))
		world_fault(w, "a response's private data is not padded");
	oracle_event(&w->oracle, end, ORACLE_RESPONSE, event->status, &terms);
	if (sidr)
		act_later(w, end, ACT_RELEASE, 10 * SIM_SECOND);
	else if (!sim_chance(w, w->config.silences))
		act_later(w, end, ACT_ESTABLISH, sim_chance(w, 50) ? 100 * SIM_SECOND : SIM_SECOND);
}

static void ended(struct world *w, uint32_t end, const struct vb_cm_event *event)
{
	static const enum oracle_event events[VB_CM_EVENT_COUNT] = {
		[VB_CM_EVENT_ESTABLISHED] = ORACLE_ESTABLISHED,
		[VB_CM_EVENT_REJECTED] = ORACLE_REJECTED,
		[VB_CM_EVENT_UNREACHABLE] = ORACLE_UNREACHABLE,
		[VB_CM_EVENT_DISCONNECTED] = ORACLE_DISCONNECTED,
		[VB_CM_EVENT_TIMEWAIT_EXIT] = ORACLE_TIMEWAIT_EXIT,
	};

	oracle_event(&w->oracle, end, events[event->type], event->status, NULL);
	switch (event->type) {
	case VB_CM_EVENT_ESTABLISHED:
		if (sim_chance(w, 400))
			act_later(w, end, sim_chance(w, 700) ? ACT_DISCONNECT : ACT_RELEASE,
				  100 * SIM_SECOND);
		break;
	case VB_CM_EVENT_DISCONNECTED:
		if (!sim_chance(w, w->config.silences))
			act_later(w, end, sim_chance(w, 800) ? ACT_DISCONNECT : ACT_RELEASE,
				  5 * SIM_SECOND);
		break;
	default:
		act_later(w, end, ACT_RELEASE, 20 * SIM_SECOND);
		break;
	}
}

bool program_event(struct sim_node *n, struct vb_cm_conn *conn, const struct vb_cm_event *event)
{
	static const char *const names[VB_CM_EVENT_COUNT] = {
		"REQUEST",      "RESPONSE",      "ESTABLISHED",  "REJECTED",     "UNREACHABLE",
		"DISCONNECTED", "TIMEWAIT_EXIT", "SIDR_REQUEST", "SIDR_RESPONSE"};
	struct world *w = n->world;

	world_trace(w, "%c  event %s status %d of %08x, end %d", 'A' + (int)n->number,
		    names[event->type], event->status, conn->local_id, (int)end_of(conn));
	switch (event->type) {
	case VB_CM_EVENT_REQUEST:
	case VB_CM_EVENT_SIDR_REQUEST:
		return requested(n, conn, event);
	case VB_CM_EVENT_RESPONSE:
	case VB_CM_EVENT_SIDR_RESPONSE:
		responded(w, end_of(conn), event);
		return true;
	default:
		ended(w, end_of(conn), event);
		return true;
	}
}
