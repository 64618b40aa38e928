/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The oracle: which events each side of a connection may see, computed from what the programs did.
 *
 * It knows no message and no state of src/cm. The simulator tells it each call and each event. An
 * attempt is one rdma_connect(), or one address of a datagram service that is asked for; its ends
 * are the id that asks, and the ids that requests made at the other side. The first contradiction is
 * kept as a sentence.
 */
#ifndef TESTS_SIM_CM_ORACLE_H
#define TESTS_SIM_CM_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

#define ORACLE_ATTEMPTS 24u
#define ORACLE_ENDS     512u
#define ORACLE_NONE     0xffffffffu

/* How far an end has come, by its own events and calls. */
enum oracle_phase {
	ORACLE_ASKED,    /* active: connect was called; passive: the request was reported */
	ORACLE_ANSWERED, /* active: the response was reported; passive: accepted */
	ORACLE_UP,       /* active: established was called; passive: was reported */
	ORACLE_DOWN,     /* DISCONNECTED was reported */
	ORACLE_OVER,     /* nothing may be reported any more */
};

/* What a program gave, and what the other one must see. */
struct oracle_terms {
	uint32_t qpn, psn;
	uint8_t responder_resources, initiator_depth;
	uint8_t rnr_retry_count;
	uint32_t data; /* begins the private data */
};

struct oracle_end {
	uint32_t attempt;
	bool active;
	unsigned int node, life;
	enum oracle_phase phase;
	struct oracle_terms terms; /* as this side gave them */
	bool decided;              /* passive: accepted or rejected */
	bool rejected;             /* by a call */
	bool disconnected;         /* by a call */
	bool notified;
	bool released;
	bool died; /* its node crashed */
	bool gave_up;
	bool stale;    /* rejected because the peer knew its queue pair from another life */
	bool exited;   /* TIMEWAIT_EXIT */
	bool must_end; /* its peer has begun anew, and was refused because of it */
	enum oracle_phase released_in;
	uint64_t begun, accepted_at, disconnected_at, down_at, over_at;
	uint32_t peer; /* the end whose terms this one has seen */
};

struct oracle_attempt {
	bool sidr;
	unsigned int from, to; /* nodes */
	bool begun;
	uint64_t begun_at;
	uint32_t client; /* end */
};

/* An event as the simulator saw it. */
enum oracle_event {
	ORACLE_RESPONSE,
	ORACLE_ESTABLISHED,
	ORACLE_REJECTED,
	ORACLE_UNREACHABLE,
	ORACLE_DISCONNECTED,
	ORACLE_TIMEWAIT_EXIT,
};

struct oracle {
	uint64_t now;
	bool heavy;            /* so much is lost that tries may run out */
	bool lossless;         /* nothing is lost */
	bool ended;            /* a node was said to have ended */
	unsigned int lives[3]; /* of the nodes */
	uint64_t absent[3];    /* when the node did not listen for some seconds, lately */
	struct oracle_attempt attempt[ORACLE_ATTEMPTS];
	struct oracle_end end[ORACLE_ENDS];
	unsigned int attempts, ends;
	char fault[400];
};

void oracle_start(struct oracle *o, unsigned int attempts, bool heavy, bool lossless);

/* Calls of programs that succeeded. */
uint32_t oracle_connect(struct oracle *o, uint32_t attempt, unsigned int life,
			const struct oracle_terms *terms);
void oracle_accept(struct oracle *o, uint32_t end, const struct oracle_terms *terms);
void oracle_establish(struct oracle *o, uint32_t end);
void oracle_reject(struct oracle *o, uint32_t end);
void oracle_disconnect(struct oracle *o, uint32_t end);
void oracle_notify(struct oracle *o, uint32_t end);
void oracle_release(struct oracle *o, uint32_t end);
void oracle_crash(struct oracle *o, unsigned int node);
/* The other nodes know that the node has crashed: nobody is connected with its old life any more. */
void oracle_ended(struct oracle *o, unsigned int node);
/* The node does not listen for a few seconds. */
void oracle_absent(struct oracle *o, unsigned int node);

/* A call failed that is possible in this phase. */
void oracle_failed(struct oracle *o, uint32_t end, enum oracle_phase phase);

/* A request was reported; returns the new end. */
uint32_t oracle_request(struct oracle *o, uint32_t attempt, unsigned int node, unsigned int life,
			const struct oracle_terms *terms);
/* `terms` of RESPONSE; else NULL. */
void oracle_event(struct oracle *o, uint32_t end, enum oracle_event event, int status,
		  const struct oracle_terms *terms);

/* Before the programs release what is left: what must have happened by now has. */
void oracle_finish(struct oracle *o);

#endif
