/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One simulated run: two queue pairs (or one, connected to itself), a link between them, virtual
 * time, and the oracle.
 *
 * Everything follows from the seed. Nothing is allocated after world_create(): packets, events and
 * queues have fixed places, and running out of one of them is a fault of the run.
 */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/seeds.h"
#include "oracle.h"
#include "support/protocol_memory.h"
#include "transport/access.h"
#include "transport/tqp.h"

#define SIM_SQ            16
#define SIM_SGE           ORACLE_PIECES
#define SIM_WQE_BYTES     320
#define SIM_EVENTS        16384
#define SIM_PACKETS       4096
#define SIM_PACKET_BYTES  65536
#define SIM_POOL_BYTES    (16u << 20)

/* The layout of a side's memory. */
#define SIM_SOURCE_AT     0u
#define SIM_SOURCE_BYTES  65536u
#define SIM_TARGET_AT     65536u
#define SIM_TARGET_BYTES  65536u
#define SIM_ATOMIC_AT     131072u
#define SIM_ATOMIC_BYTES  256u
#define SIM_LANDING_AT    135168u
#define SIM_LANDING_BYTES 393216u
#define SIM_RECV_AT       (SIM_LANDING_AT + SIM_LANDING_BYTES)
#define SIM_RECV_BYTES    786432u
#define SIM_MEMORY        (SIM_RECV_AT + SIM_RECV_BYTES)

/* Keys of each side. */
#define SIM_KEY_ALL       0x1100u
#define SIM_KEY_NO_RIGHTS 0x2200u
#define SIM_KEY_WRONG     0x1101u
#define SIM_KEY_WINDOW    0x3300u
/* As ALL, of the protection domain of XRC queues with an odd number. */
#define SIM_KEY_SECOND    0x4400u

/* Where the target's region begins for peers: an iova of its own. */
#define SIM_IOVA          0x7000000000ull

enum sim_fault {
	SIM_FAULT_NONE,
	SIM_FAULT_RKEY,
	SIM_FAULT_RANGE,
	SIM_FAULT_RIGHTS,
	SIM_FAULT_QP_ACCESS,
	SIM_FAULT_ALIGN,
	SIM_FAULT_RECV_SMALL,
	SIM_FAULT_RECV_LKEY,
	SIM_FAULT_LKEY,
	SIM_FAULT_PRESET,
	SIM_FAULT_NO_RECV,
	SIM_FAULT_APP_ERROR,
	SIM_FAULT_PEER_DEAD,
	SIM_FAULT_INVALIDATE,
	SIM_FAULT_GONE,
	SIM_FAULT_DEREG,
	SIM_FAULT_RD_EXCEED,
	SIM_FAULT_PSN,
	SIM_FAULT_COUNT,
};

const char *sim_fault_name(enum sim_fault fault);

struct sim_config {
	uint64_t seed;
	uint8_t service; /* RC, UC, UD */
	bool xrc;        /* RC with queues that requests name */
	bool self;
	bool reliable;
	bool acks_ride;
	bool heavy; /* so much loss that retries may run out */
	bool direct;
	bool late_recv; /* receives are posted while messages arrive */
	bool sqd;       /* send queues are drained and resumed in between */
	unsigned int loss, corrupt, twice, late; /* packets of 1000 */
	uint64_t delay_ns, jitter_ns;
	unsigned int room; /* runs that the link holds */
	uint32_t mtu;
	unsigned int run_packets;
	unsigned int window;
	unsigned int read_packets;
	unsigned int read_window;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint32_t psn[2];
	uint64_t ready_ns[2]; /* when a side's queue pair becomes ready */
	enum sim_fault fault;
	unsigned int fault_side;
	unsigned int fault_op;
	uint64_t fault_ns;
	/* The other side expects a PSN that is larger by this than what this side sends. */
	uint32_t psn_off;
};

enum sim_event_kind {
	SIM_EVENT_RUN,
	SIM_EVENT_TIMER,
	SIM_EVENT_PACKET,
	SIM_EVENT_POST,
	SIM_EVENT_POST_RECV,
	SIM_EVENT_READY,
	SIM_EVENT_FAULT,
	SIM_EVENT_SQD,
};

struct sim_event {
	uint64_t at;
	uint64_t order;
	uint32_t number; /* timer: its generation; packet: its index */
	uint8_t kind;
	uint8_t side;
};

struct sim_packet {
	struct vb_run run;
	uint32_t data; /* offset in the pool */
	bool used;
};

struct sim_recv {
	struct vb_recv_wqe wqe;
	struct ibv_sge sge[SIM_SGE];
	uint32_t id;
};

struct world;

struct sim_side {
	struct vb_tqp qp; /* first: the environment finds the side by it */
	struct vb_resource res[VB_RESOURCES];
	uint32_t rd_end[VB_RESOURCES];
	struct world *world;
	unsigned int number;
	uint8_t *memory;
	struct vb_key keys[4];
	_Alignas(16) char sq[SIM_SQ * SIM_WQE_BYTES];
	struct vb_send_wqe plan[ORACLE_OPS]; /* the requests that will be posted */
	struct ibv_sge plan_sge[ORACLE_OPS][SIM_SGE];
	unsigned int plans;
	unsigned int completed;
	struct sim_recv recv[ORACLE_RECVS];
	unsigned int recvs_posted;
	unsigned int recvs_taken;
	unsigned int recvs_wanted; /* receives that the other side's messages need */
	uint32_t recv_length[ORACLE_RECVS];
	uint32_t landing_used, recv_used;
	uint32_t timer_generation;
	bool run_scheduled;
	bool gone;
	bool memory_gone;
	bool drained; /* SQD and nothing under way: no request may be sent */
	bool window_dead;
	uint32_t pd;           /* XRC: of the queue that the latest request named */
	unsigned int in_link;  /* runs sent by this side that the link holds */
	uint64_t link_free_ns; /* reliable: no run arrives before the ones that were sent earlier */
	uint8_t reserved[SIM_PACKET_BYTES];
	struct vb_run reserved_for;
};

struct world {
	struct sim_config config;
	uint64_t now;
	uint64_t random;
	uint64_t order;
	bool trace;
	unsigned int sides;
	struct sim_side side[2];
	struct sim_event event[SIM_EVENTS];
	unsigned int events;
	struct sim_packet packet[SIM_PACKETS];
	unsigned int packets;
	unsigned int packet_hint;
	uint8_t pool[SIM_POOL_BYTES]; /* payloads in flight, a ring that must not lap itself */
	uint32_t pool_at;
	uint64_t pool_bytes;
	struct oracle oracle;
	char fault[400];
	unsigned long delivered, lost;
	uint64_t last_done_ns; /* when the last request completed */
};

/* world.c, besides what seeds.h has */
void world_fault(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void world_schedule(struct world *w, enum sim_event_kind kind, unsigned int side, uint64_t delay_ns,
		    uint32_t number);
void world_run_soon(struct sim_side *s, uint64_t delay_ns);
static inline struct sim_side *sim_peer(struct sim_side *s)
{
	return &s->world->side[s->world->sides - 1 - s->number];
}

/* random.c: seeded; not for secrets */
uint64_t sim_random(struct world *w);
unsigned int sim_below(struct world *w, unsigned int n);
bool sim_chance(struct world *w, unsigned int per_mille);

/* link.c */
void *link_reserve(struct vb_tqp *qp, const struct vb_send_wqe *wqe, const struct vb_run *run);
void link_commit(struct vb_tqp *qp, const struct vb_send_wqe *wqe, const struct vb_run *run);
void link_deliver(struct world *w, unsigned int side, uint32_t index);

/* endpoint.c */
extern const struct vb_env sim_env, sim_env_direct;
void endpoint_start(struct world *w, unsigned int number);
void endpoint_ready(struct sim_side *s);
void endpoint_post(struct sim_side *s);
void endpoint_post_recv(struct sim_side *s, unsigned int count);

/* memory.c */
enum vb_reason memory_srq_enter(struct vb_tqp *qp, uint32_t srqn);
enum vb_reason memory_bind(struct vb_tqp *qp, const struct vb_send_wqe *wqe);
enum vb_direct memory_direct(struct vb_tqp *qp, struct vb_send_wqe *wqe);
uint32_t memory_direct_list(struct vb_tqp *qp, struct vb_send_wqe *wqe);
bool memory_direct_waits(struct vb_tqp *qp, const struct vb_send_wqe *wqe, bool two_sided);

/* workload.c, besides */
void workload_plan(struct world *w);

/* trace.c: nothing unless the world is traced */
void trace_packet(struct sim_side *from, const struct vb_run *run, const char *fate);
void trace_line(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
