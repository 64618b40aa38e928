/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What each side of a connection may see, and what it must have seen in the end. */
#include "oracle.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SECOND         1000000000ull
/* The whole time of tries of Linux: REQ and the active side's DREQ; the others. */
#define REQUEST_NS     98304000000ull
#define REPLY_NS       65536000000ull
/* How long an answer is remembered at least; a copy of a message lives shorter than the other. */
#define REMEMBER_NS    (14 * SECOND)

/* A program that decided this long before the end has led to what it leads to. */
#define SETTLED_NS     (300 * SECOND)

#define REJ_TIMEOUT    4
#define REJ_NO_ID      6
#define REJ_NO_SERVICE 8
#define REJ_STALE      10
#define REJ_CONSUMER   28

void oracle_start(struct oracle *o, unsigned int attempts, bool heavy, bool lossless)
{
	memset(o, 0, sizeof(*o));
	o->attempts = attempts;
	o->heavy = heavy;
	o->lossless = lossless;
}

static void __attribute__((format(printf, 3, 4)))
fault(struct oracle *o, uint32_t end, const char *format, ...)
{
	va_list ap;
	int n;

	if (o->fault[0])
		return;
	n = snprintf(o->fault, sizeof(o->fault), "end %u (%s of attempt %u): ", end,
		     o->end[end].active ? "active" : "passive", o->end[end].attempt);
	va_start(ap, format);
	vsnprintf(o->fault + n, sizeof(o->fault) - (size_t)n, format, ap);
	va_end(ap);
}

static uint32_t new_end(struct oracle *o, uint32_t attempt, bool active, unsigned int node,
			unsigned int life, const struct oracle_terms *terms)
{
	uint32_t number = o->ends;

	if (o->ends == ORACLE_ENDS) {
		snprintf(o->fault, sizeof(o->fault), "too many ends");
		return ORACLE_NONE;
	}
	o->ends++;
	o->end[number] = (struct oracle_end){
		.attempt = attempt,
		.active = active,
		.node = node,
		.life = life,
		.terms = *terms,
		.begun = o->now,
		.peer = ORACLE_NONE,
	};
	return number;
}

uint32_t oracle_connect(struct oracle *o, uint32_t attempt, unsigned int life,
			const struct oracle_terms *terms)
{
	struct oracle_attempt *a = &o->attempt[attempt];

	a->begun = true;
	a->begun_at = o->now;
	a->client = new_end(o, attempt, true, a->from, life, terms);
	return a->client;
}

void oracle_accept(struct oracle *o, uint32_t end, const struct oracle_terms *terms)
{
	struct oracle_end *e = &o->end[end];

	if (e->phase != ORACLE_ASKED)
		fault(o, end, "could accept in phase %d", e->phase);
	e->phase = o->attempt[e->attempt].sidr ? ORACLE_OVER : ORACLE_ANSWERED;
	e->over_at = o->now;
	e->decided = true;
	e->accepted_at = o->now;
	e->terms = *terms;
}

void oracle_establish(struct oracle *o, uint32_t end)
{
	if (o->end[end].phase != ORACLE_ANSWERED)
		fault(o, end, "could establish in phase %d", o->end[end].phase);
	o->end[end].phase = ORACLE_UP;
}

void oracle_failed(struct oracle *o, uint32_t end, enum oracle_phase phase)
{
	if (o->end[end].phase == phase)
		fault(o, end, "could not go on in phase %d", phase);
}

void oracle_reject(struct oracle *o, uint32_t end)
{
	o->end[end].phase = ORACLE_OVER;
	o->end[end].decided = true;
	o->end[end].rejected = true;
	o->end[end].over_at = o->now;
}

void oracle_disconnect(struct oracle *o, uint32_t end)
{
	struct oracle_end *e = &o->end[end];

	if (!e->disconnected)
		e->disconnected_at = o->now;
	e->disconnected = true;
}

void oracle_notify(struct oracle *o, uint32_t end)
{
	o->end[end].notified = true;
}

void oracle_release(struct oracle *o, uint32_t end)
{
	struct oracle_end *e = &o->end[end];

	e->released = true;
	e->released_in = e->phase;
	if (e->phase != ORACLE_OVER)
		e->over_at = o->now;
	e->phase = ORACLE_OVER;
}

void oracle_crash(struct oracle *o, unsigned int node)
{
	o->lives[node]++;
	for (uint32_t i = 0; i < o->ends; i++) {
		if (o->end[i].node == node && !o->end[i].died) {
			o->end[i].died = true;
			o->end[i].over_at = o->now;
		}
	}
}

void oracle_ended(struct oracle *o, unsigned int node)
{
	for (uint32_t i = 0; i < o->ends; i++) {
		const struct oracle_end *e = &o->end[i];
		const struct oracle_end *peer = e->peer == ORACLE_NONE ? NULL : &o->end[e->peer];

		if (e->died || e->released || e->phase != ORACLE_UP || !peer)
			continue;
		if (peer->node == node && peer->died && e->node != node)
			fault(o, i,
			      "established, although its peer's process is known to have ended");
	}
}

void oracle_absent(struct oracle *o, unsigned int node)
{
	o->absent[node] = o->now;
}

static bool same_terms(const struct oracle_terms *a, const struct oracle_terms *b, bool sidr)
{
	if (sidr)
		return a->qpn == b->qpn && a->psn == b->psn && a->data == b->data;
	return a->qpn == b->qpn && a->psn == b->psn && a->data == b->data &&
	       a->responder_resources == b->responder_resources &&
	       a->initiator_depth == b->initiator_depth && a->rnr_retry_count == b->rnr_retry_count;
}

/* Whether a second request of the attempt may be reported although there was this one. */
static bool may_repeat(const struct oracle *o, const struct oracle_end *earlier)
{
	uint64_t since = earlier->down_at ? earlier->down_at : earlier->over_at;

	/* The active side went on when it had refused the response of a queue pair from before. */
	return earlier->stale || (earlier->phase == ORACLE_OVER && o->now >= since + REMEMBER_NS);
}

/*
 * Whether the end has a connection with the queue pair that the request is for: the peer has begun
 * anew then, and must have been told so.
 */
static bool has_queue_pair(const struct oracle *o, const struct oracle_end *e, uint32_t attempt,
			   uint32_t qpn)
{
	const struct oracle_attempt *mine = &o->attempt[e->attempt];
	bool open = e->phase == ORACLE_ASKED || e->phase == ORACLE_ANSWERED ||
		    (e->phase == ORACLE_UP && !e->disconnected);

	return e->attempt != attempt && open && !e->released && !mine->sidr &&
	       mine->from == o->attempt[attempt].from && o->end[mine->client].terms.qpn == qpn;
}

uint32_t oracle_request(struct oracle *o, uint32_t attempt, unsigned int node, unsigned int life,
			const struct oracle_terms *terms)
{
	const struct oracle_attempt *a = &o->attempt[attempt];
	bool wrong;
	uint32_t number;

	if (attempt >= o->attempts || !a->begun || a->to != node) {
		snprintf(o->fault, sizeof(o->fault), "a request at node %u that nobody made", node);
		return ORACLE_NONE;
	}
	for (uint32_t i = 0; i < o->ends; i++) {
		const struct oracle_end *e = &o->end[i];

		if (e->active || e->node != node || e->life != life)
			continue;
		if (e->attempt == attempt && !may_repeat(o, e))
			fault(o, i, "the request was reported again");
		if (!a->sidr && has_queue_pair(o, e, attempt, terms->qpn))
			fault(o, i, "another connection was begun for its peer's queue pair");
	}
	wrong = a->sidr ? terms->data != o->end[a->client].terms.data
			: !same_terms(terms, &o->end[a->client].terms, false);
	number = new_end(o, attempt, false, node, life, terms);
	if (number != ORACLE_NONE && wrong)
		fault(o, number, "the request is not what was asked for");
	if (number != ORACLE_NONE)
		o->end[number].peer = a->client;
	return number;
}

/* Whether one of the passive ends of the attempt, or the active one, has done something. */
typedef bool did(const struct oracle_end *e);

static bool did_refuse(const struct oracle_end *e)
{
	return e->rejected || e->released || (!e->active && e->disconnected);
}

static bool did_give_up(const struct oracle_end *e)
{
	return e->gave_up || (e->active && e->released);
}

static bool did_end(const struct oracle_end *e)
{
	return e->disconnected || e->released || e->gave_up || e->rejected;
}

static bool did_disconnect(const struct oracle_end *e)
{
	return e->disconnected;
}

static bool other_did(const struct oracle *o, const struct oracle_end *of, did *what)
{
	for (uint32_t i = 0; i < o->ends; i++) {
		const struct oracle_end *e = &o->end[i];

		if (e->attempt == of->attempt && e->active != of->active && what(e))
			return true;
	}
	return false;
}

/* A node that began anew explains what only ends of two lives can do to each other. */
static bool crashed(const struct oracle *o, const struct oracle_end *e)
{
	const struct oracle_attempt *a = &o->attempt[e->attempt];

	return o->lives[a->from] || o->lives[a->to];
}

static void saw_response(struct oracle *o, uint32_t end, const struct oracle_terms *terms)
{
	struct oracle_end *e = &o->end[end];
	bool sidr = o->attempt[e->attempt].sidr;

	if (!e->active || e->phase != ORACLE_ASKED)
		fault(o, end, "RESPONSE in phase %d", e->phase);
	for (uint32_t i = 0; i < o->ends; i++) {
		const struct oracle_end *other = &o->end[i];

		if (other->attempt == e->attempt && !other->active && other->decided &&
		    !other->rejected && same_terms(terms, &other->terms, sidr))
			e->peer = i;
	}
	if (e->peer == ORACLE_NONE)
		fault(o, end, "RESPONSE that nobody gave");
	e->phase = sidr ? ORACLE_OVER : ORACLE_ANSWERED;
	e->over_at = o->now;
}

static void saw_established(struct oracle *o, uint32_t end)
{
	struct oracle_end *e = &o->end[end];
	const struct oracle_end *client = &o->end[o->attempt[e->attempt].client];
	bool up = client->phase == ORACLE_UP || client->phase == ORACLE_DOWN ||
		  (client->released && client->released_in >= ORACLE_UP);

	if (e->active || e->phase != ORACLE_ANSWERED)
		fault(o, end, "ESTABLISHED in phase %d", e->phase);
	if (!e->notified && !(up && client->peer == end) && !client->died)
		fault(o, end, "ESTABLISHED although nobody established");
	e->phase = ORACLE_UP;
}

/* Whether the other node may have said so, some seconds ago, to this attempt. */
static bool nobody_listened(const struct oracle *o, const struct oracle_end *e)
{
	uint64_t absent = o->absent[o->attempt[e->attempt].to];

	return absent + 10 * SECOND > e->begun;
}

static bool rejection_explained(const struct oracle *o, const struct oracle_end *e, int status)
{
	switch (status) {
	case REJ_CONSUMER: /* who has ended has refused what it had not established */
		return other_did(o, e, did_refuse) || (o->ended && crashed(o, e));
	case REJ_TIMEOUT: /* a new life may have the same id */
		return other_did(o, e, did_give_up) || crashed(o, e);
	case REJ_NO_ID: /* REP has come to nobody */
		return !e->active && (crashed(o, e) || other_did(o, e, did_end));
	case REJ_NO_SERVICE:
		return e->active && nobody_listened(o, e);
	case REJ_STALE:
		return crashed(o, e) || (e->active && other_did(o, e, did_disconnect));
	default:
		return false;
	}
}

/* The ends that a refusal as stale speaks of: they have the queue pair of the refused request. */
static void mark_stale(struct oracle *o, const struct oracle_end *refused)
{
	const struct oracle_attempt *a = &o->attempt[refused->attempt];

	for (uint32_t i = 0; i < o->ends; i++) {
		struct oracle_end *e = &o->end[i];
		const struct oracle_attempt *its = &o->attempt[e->attempt];
		uint32_t peer = e->active ? e->peer : its->client;

		if (e->node == a->to && !e->died && peer != ORACLE_NONE &&
		    o->end[peer].node == a->from && o->end[peer].died &&
		    o->end[peer].terms.qpn == refused->terms.qpn)
			e->must_end = true;
	}
}

static void saw_rejected(struct oracle *o, uint32_t end, int status)
{
	struct oracle_end *e = &o->end[end];

	if (e->phase != ORACLE_ASKED && e->phase != ORACLE_ANSWERED)
		fault(o, end, "REJECTED in phase %d", e->phase);
	if (!rejection_explained(o, e, status))
		fault(o, end, "REJECTED with status %d without a cause", status);
	e->stale = status == REJ_STALE;
	if (e->active && e->stale)
		mark_stale(o, e);
	e->phase = ORACLE_OVER;
	e->over_at = o->now;
}

/* Whether the peer's program ended its connect so late that the response still met a refusal. */
static bool told_in_time(const struct oracle *o, const struct oracle_end *e)
{
	const struct oracle_end *client = &o->end[o->attempt[e->attempt].client];

	return client->released && client->released_in < ORACLE_OVER &&
	       e->accepted_at + SECOND < client->over_at + REMEMBER_NS;
}

/* Whether a program has the request and has not decided, which 16 MRAs allow for 18 minutes. */
static bool asked_for_time(const struct oracle *o, const struct oracle_end *client)
{
	for (uint32_t i = 0; i < o->ends; i++) {
		const struct oracle_end *e = &o->end[i];

		if (e->attempt == client->attempt && !e->active && e->phase == ORACLE_ASKED &&
		    e->begun + 10 * SECOND < o->now)
			return o->now < client->begun + 1000 * SECOND;
	}
	return false;
}

static void saw_unreachable(struct oracle *o, uint32_t end, int status)
{
	struct oracle_end *e = &o->end[end];
	bool sidr = o->attempt[e->attempt].sidr;
	enum oracle_phase phase = e->active ? ORACLE_ASKED : ORACLE_ANSWERED;
	uint64_t least = e->active && !sidr ? REQUEST_NS : REPLY_NS;
	uint64_t since = e->active ? e->begun : e->accepted_at;

	if (e->phase != phase)
		fault(o, end, "UNREACHABLE in phase %d", e->phase);
	else if (status == -ETIMEDOUT && o->now < since + least)
		fault(o, end, "UNREACHABLE too early");
	else if (status != -ETIMEDOUT && !(sidr && status == 2 && other_did(o, e, did_refuse)) &&
		 !(sidr && status == 1 && nobody_listened(o, e)))
		fault(o, end, "UNREACHABLE with status %d", status);
	if (e->active && !sidr && !o->heavy && !crashed(o, e) && asked_for_time(o, e))
		fault(o, end, "UNREACHABLE although its peer was about to decide");
	if (!e->active && o->lossless && !crashed(o, e) && told_in_time(o, e))
		fault(o, end, "UNREACHABLE although its peer was there to reject");
	e->gave_up = true;
	e->phase = ORACLE_OVER;
	e->over_at = o->now;
}

static bool peer_ended_before(const struct oracle *o, const struct oracle_end *of, uint64_t ns)
{
	for (uint32_t i = 0; i < o->ends; i++) {
		const struct oracle_end *e = &o->end[i];

		if (e->attempt != of->attempt || e->active == of->active)
			continue;
		/* Before the response an end knows no peer to tell. */
		if (e->active && e->peer == ORACLE_NONE)
			continue;
		if ((e->disconnected && e->disconnected_at + ns < o->now) ||
		    (e->released && e->over_at + ns < o->now))
			return true;
	}
	return false;
}

static void saw_disconnected(struct oracle *o, uint32_t end, int status)
{
	struct oracle_end *e = &o->end[end];
	bool early = !e->active && e->phase == ORACLE_ANSWERED;
	bool may = e->phase == ORACLE_UP || early;
	/* Before RTU it is the REP whose tries end. */
	uint64_t tried = early ? e->accepted_at : e->disconnected_at;
	/* The core itself disconnects what is stale. */
	bool stale = !e->disconnected && crashed(o, e);

	if (!may)
		fault(o, end, "DISCONNECTED in phase %d", e->phase);
	if (status &&
	    (status != -ETIMEDOUT || (!e->disconnected && !stale) || o->now < tried + REPLY_NS))
		fault(o, end, "DISCONNECTED with status %d", status);
	if (status && !o->heavy && !crashed(o, e) && peer_ended_before(o, e, 60 * SECOND))
		fault(o, end, "DISCONNECTED by time although its peer disconnected");
	if (!e->disconnected && !crashed(o, e) && !other_did(o, e, did_end))
		fault(o, end, "DISCONNECTED although nobody ended it");
	e->gave_up = status != 0;
	e->phase = ORACLE_DOWN;
	e->down_at = o->now;
	e->over_at = o->now;
}

static void saw_exit(struct oracle *o, uint32_t end)
{
	struct oracle_end *e = &o->end[end];

	if (e->phase != ORACLE_DOWN)
		fault(o, end, "TIMEWAIT_EXIT in phase %d", e->phase);
	e->exited = true;
	e->phase = ORACLE_OVER;
	e->over_at = o->now;
}

void oracle_event(struct oracle *o, uint32_t end, enum oracle_event event, int status,
		  const struct oracle_terms *terms)
{
	if (end >= o->ends) {
		snprintf(o->fault, sizeof(o->fault), "an event of no end");
		return;
	}
	if (o->end[end].released || o->end[end].died)
		fault(o, end, "event %d after its release", event);
	switch (event) {
	case ORACLE_RESPONSE:
		saw_response(o, end, terms);
		break;
	case ORACLE_ESTABLISHED:
		saw_established(o, end);
		break;
	case ORACLE_REJECTED:
		saw_rejected(o, end, status);
		break;
	case ORACLE_UNREACHABLE:
		saw_unreachable(o, end, status);
		break;
	case ORACLE_DISCONNECTED:
		saw_disconnected(o, end, status);
		break;
	case ORACLE_TIMEWAIT_EXIT:
		saw_exit(o, end);
		break;
	}
}

/* The passive end that an active one must have heard of; ORACLE_NONE: there is none. */
static uint32_t decided_end(const struct oracle *o, const struct oracle_end *client)
{
	for (uint32_t i = 0; i < o->ends; i++) {
		const struct oracle_end *e = &o->end[i];

		uint64_t when = e->accepted_at ? e->accepted_at : e->over_at;

		if (e->attempt == client->attempt && !e->active && (e->decided || e->released) &&
		    (!client->gave_up || when + 10 * SECOND < client->over_at))
			return i;
	}
	return ORACLE_NONE;
}

static bool undecided(const struct oracle *o, const struct oracle_end *client)
{
	for (uint32_t i = 0; i < o->ends; i++) {
		const struct oracle_end *e = &o->end[i];

		if (e->attempt == client->attempt && !e->active && !e->decided && !e->released)
			return true;
	}
	return false;
}

static bool ended_long_ago(const struct oracle *o, const struct oracle_end *e)
{
	enum oracle_phase least = e->active ? ORACLE_UP : ORACLE_ANSWERED;

	if (e->phase < least || (e->released && e->released_in < least))
		return false;
	return (e->disconnected && o->now > e->disconnected_at + SETTLED_NS) ||
	       (e->released && o->now > e->over_at + SETTLED_NS);
}

static void finish_client(struct oracle *o, uint32_t end)
{
	const struct oracle_end *e = &o->end[end];

	if (o->now < e->begun + SETTLED_NS)
		return;
	if (e->phase == ORACLE_ASKED && !undecided(o, e))
		fault(o, end, "neither a response nor a refusal");
	if (e->gave_up && decided_end(o, e) != ORACLE_NONE)
		fault(o, end, "UNREACHABLE although end %u answered", decided_end(o, e));
	if (e->gave_up && e->over_at < e->begun + 200 * SECOND && !undecided(o, e))
		fault(o, end, "UNREACHABLE although its node was there");
}

static void finish_pair(struct oracle *o, uint32_t end)
{
	const struct oracle_end *client = &o->end[end];
	const struct oracle_end *server;

	if (client->peer == ORACLE_NONE)
		return;
	server = &o->end[client->peer];
	if (client->phase == ORACLE_UP && !server->released && server->phase != ORACLE_UP)
		fault(o, client->peer, "phase %d although its peer is established", server->phase);
	if (ended_long_ago(o, client) && server->phase == ORACLE_UP && !server->released)
		fault(o, client->peer, "no DISCONNECTED although its peer ended");
	if (ended_long_ago(o, server) && client->phase == ORACLE_UP && !client->released)
		fault(o, end, "no DISCONNECTED although its peer ended");
}

/* Who disconnected has heard so, and that the time of waiting is over. */
static void finish_disconnect(struct oracle *o, uint32_t end)
{
	const struct oracle_end *e = &o->end[end];

	if (!e->disconnected || e->released || o->now < e->disconnected_at + SETTLED_NS)
		return;
	if (e->phase == ORACLE_UP || e->phase == ORACLE_ANSWERED)
		fault(o, end, "no DISCONNECTED after its own disconnect");
	if (e->phase == ORACLE_DOWN)
		fault(o, end, "no TIMEWAIT_EXIT after DISCONNECTED");
}

void oracle_finish(struct oracle *o)
{
	for (uint32_t i = 0; i < o->ends; i++) {
		const struct oracle_end *e = &o->end[i];

		if (e->died)
			continue;
		finish_disconnect(o, i);
		if (e->must_end && e->phase == ORACLE_UP && !e->released)
			fault(o, i, "no DISCONNECTED although its peer began anew");
		if (!e->active || o->heavy || crashed(o, e))
			continue;
		if (!e->released)
			finish_client(o, i);
		if (!o->attempt[e->attempt].sidr)
			finish_pair(o, i);
	}
}
