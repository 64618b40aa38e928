/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One simulated run of connection managers: two or three nodes, a network that loses, repeats and
 * overtakes, programs that connect and end at random moments, nodes that crash and start again, and
 * the oracle.
 *
 * Everything follows from the seed. Time is virtual. Running out of a fixed place is a fault.
 */
#ifndef TESTS_SIM_CM_WORLD_H
#define TESTS_SIM_CM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/seeds.h"
#include "cm/cm.h"
#include "oracle.h"

#define SIM_NODES    3u
#define SIM_CONNS    600u
#define SIM_EVENTS   8192u
#define SIM_PACKETS  4096u
#define SIM_SERVICE  0x01061c06u
#define SIM_DATAGRAM 0x01111c06u
#define SIM_MS       1000000ull
#define SIM_SECOND   1000000000ull
#define SIM_END_NS   (1500 * SIM_SECOND) /* every program releases what it has */
#define SIM_LAST_NS  (2200 * SIM_SECOND) /* and nothing is left */

struct sim_config {
	uint64_t seed;
	unsigned int nodes;
	unsigned int attempts;
	unsigned int loss, twice, late, strange; /* of 1000 packets */
	bool heavy;                              /* so much loss that tries may run out */
	uint64_t delay_ns, jitter_ns;
	uint64_t lateness_ns; /* of timers */
	int backlog;
	unsigned int crashes;
	unsigned int pauses; /* in which a node does not listen */
	bool neighbours; /* the nodes are processes of one host, and are told of each other's ends */
	bool same_block; /* a node that starts again has the ids and queue pairs of its life before */
	unsigned int releases, silences, rejects; /* of 1000 decisions of programs */
};

enum sim_event_kind {
	SIM_PACKET,
	SIM_CONNECT,
	SIM_ACT,
	SIM_CRASH,
	SIM_RESTART,
	SIM_LISTEN,
	SIM_UNLISTEN,
	SIM_ENDED, /* the others hear that a node's life has ended */
};

/* What a program does with an end. */
enum sim_act {
	ACT_TAKE,
	ACT_DECIDE,
	ACT_ESTABLISH,
	ACT_DISCONNECT,
	ACT_NOTIFY,
	ACT_RELEASE,
};

struct sim_event {
	uint64_t at;
	uint64_t order;
	uint32_t index; /* of the packet, attempt, end, or node */
	uint8_t kind;
	uint8_t act;
};

struct sim_packet {
	uint8_t mad[VB_MAD_BYTES];
	unsigned int to;
	bool used;
	uint8_t from; /* of the GID that it comes from: a node's, or a stranger's */
};

struct world;

struct sim_node {
	struct vb_cm cm;
	struct world *world;
	unsigned int number;
	unsigned int life;
	uint32_t id_base, ended_base; /* of this life's ids, and of those of the last that ended */
	bool up, listening;
	uint32_t next_qpn;
	struct vb_cm_listener listener, datagrams;
	struct vb_cm_conn conns[SIM_CONNS];
	bool used[SIM_CONNS];
	unsigned int live;
};

struct world {
	struct sim_config config;
	uint64_t now;
	uint64_t random;
	uint64_t order;
	bool trace;
	struct sim_node node[SIM_NODES];
	struct sim_event event[SIM_EVENTS];
	unsigned int events;
	struct sim_packet packet[SIM_PACKETS];
	unsigned int packet_hint;
	struct oracle oracle;
	struct vb_cm_conn *conn[ORACLE_ENDS]; /* of each end, until it is released */
	char fault[400];
	unsigned long delivered, lost, established;
};

/* world.c, besides what seeds.h has */
void world_fault(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void world_trace(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void world_schedule(struct world *w, enum sim_event_kind kind, uint64_t delay_ns, uint32_t index,
		    unsigned int act);
void world_gid(uint8_t gid[16], unsigned int number);

/* random.c: seeded; not for secrets */
uint64_t sim_random(struct world *w);
unsigned int sim_below(struct world *w, unsigned int n);
bool sim_chance(struct world *w, unsigned int per_mille);
/* Up to `most`, small values as often as large ones. */
uint64_t sim_time(struct world *w, uint64_t most);

/* network.c */
void network_send(struct sim_node *from, const struct vb_cm_path *path,
		  const uint8_t mad[VB_MAD_BYTES]);
void network_deliver(struct world *w, uint32_t index);

/* node.c: the environment of a core, and the lives of a node */
void node_start(struct sim_node *n);
void node_listen(struct sim_node *n);
void node_unlisten(struct sim_node *n);
void node_crash(struct sim_node *n);
/* All nodes but this one are told that it has ended. */
void node_ended(struct sim_node *n);

/* program.c: what programs do */
void program_connect(struct world *w, unsigned int attempt);
void program_act(struct world *w, uint32_t end, enum sim_act act);
bool program_event(struct sim_node *n, struct vb_cm_conn *conn, const struct vb_cm_event *event);

/* plan.c, besides */
void plan_schedule(struct world *w);

#endif
