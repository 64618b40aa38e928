/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The responder: executes the peer's requests, and owes answers until the link takes them.
 *
 * READs and ATOMICs are kept in a ring of max_dest_rd_atomic resources, so that a repeated READ is
 * read again and a repeated ATOMIC is answered with its first result (IBA 9.4.5, 9.7.5.1.5).
 * Answers are sent in PSN order: first the resources, then the acknowledgement, which covers
 * everything before it.
 */
#ifndef VB_TRANSPORT_RESPONDER_H
#define VB_TRANSPORT_RESPONDER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/reason.h"
#include "transport/run.h"
#include "transport/wqe.h"

struct vb_tqp;

#define VB_RESOURCES \
	256 /* the most: a power of two, more than the 255 that max_dest_rd_atomic can say */

/* A READ or ATOMIC that was accepted. */
struct vb_resource {
	uint32_t psn;   /* of the request */
	uint32_t count; /* the PSNs that it takes */
	/* READ: the packets [begin, end) were asked for last; `next` is sent next. */
	uint32_t begin;
	uint32_t next;
	uint32_t end;
	uint32_t rkey;
	uint32_t srqn; /* XRC: the queue whose protection domain judges the key */
	uint64_t va;
	uint64_t length;
	uint64_t original; /* ATOMIC: the stored result */
	uint8_t op;        /* enum vb_op of the request */
	bool active;       /* an answer is owed */
	bool repeated;     /* that answer is not the first one */
};

#define VB_EXECUTED_MOST (1u << 23)

/* vb_responder.owed */
#define VB_OWED_RESOURCE 0x01 /* a resource may be active */
#define VB_OWED_ACK      0x02
#define VB_OWED_DROP     0x04

struct vb_responder {
	uint32_t epsn;      /* expected PSN */
	uint32_t first_psn; /* rq_psn */
	/*
	 * How many PSNs before epsn were executed; VB_EXECUTED_MOST means as many as can be
	 * compared. On a reliable link a PSN before those is no repeated request: its sender counts
	 * from another start.
	 */
	uint32_t executed;
	uint32_t ahead_psn; /* with `ahead`: PSN of the last run that came before its turn */
	bool ahead;
	uint32_t msn; /* messages completed, 24 bits */
	/*
	 * The PSN that an ACK names: the last packet of a SEND or WRITE that was executed. Never
	 * the PSN of a READ or ATOMIC, which only its response answers: rdma_rxe takes such an ACK
	 * for the answer when the response was lost.
	 */
	uint32_t ack_psn;
	uint32_t ack_msn;
	uint8_t owed;
	uint8_t syndrome; /* of the owed ACK or NAK */
	/* A sequence or RNR NAK was sent, and the packet that it names has not come since. */
	bool nak_sent;
	bool established; /* COMM_EST was raised, or is not needed */
	/* Enum vb_op of the message in progress: VB_OP_SEND, VB_OP_WRITE; VB_OP_COUNT = none. */
	uint8_t message;
	uint32_t nak_psn; /* of a fatal NAK */

	/* The message in progress. */
	struct vb_recv_wqe *recv; /* the receive that the message uses; the only pointer here */
	uint64_t done;            /* bytes so far */
	uint64_t length;          /* WRITE: length by the RETH */
	uint64_t va;
	uint32_t rkey;
	uint32_t srqn; /* XRC: all packets of a message name the same queue */

	/* The request that was dropped last, when its sender was not told yet. */
	uint32_t drop_qpn;
	uint32_t drop_psn;
	uint32_t drop_reason;

	/*
	 * Counters of the ring of resources. The last max_dest_rd_atomic resources are remembered.
	 * The ring has more places than that, because the program may change the number while
	 * requests are under way; then the ring may grow (vb_responder_grow).
	 */
	uint32_t res_head;  /* the next new resource */
	uint32_t res_serve; /* no resource before this one is active */
	uint32_t res_known; /* how many before res_head are in use */
	/*
	 * The owner of the queue pair provides the ring; none while max_dest_rd_atomic is 0. The
	 * pointer is valid in this process only, unlike the members above.
	 */
	struct vb_resource *res;
	uint32_t res_slots; /* a power of two, or 0 */
};

/*
 * The smallest ring for this max_dest_rd_atomic; also of requests in flight for this max_rd_atomic.
 */
static inline uint32_t vb_resource_slots(uint32_t most)
{
	uint32_t slots = 1;

	while (slots <= most)
		slots *= 2;
	return most ? slots : 0;
}

/* The resource with this number by the counters above. */
static inline struct vb_resource *vb_resource_at(const struct vb_responder *p, uint32_t number)
{
	return &p->res[number & (p->res_slots - 1)];
}

/* responder.c */
/* Sets a larger ring and copies the content of the former one, which is returned. */
struct vb_resource *vb_responder_grow(struct vb_responder *p, struct vb_resource *res,
				      uint32_t slots);
void vb_responder_reset(struct vb_tqp *qp, uint32_t psn);
void vb_responder_drop(struct vb_tqp *qp, enum vb_reason reason, const struct vb_run *run);
/* On a reliable link: the sender `qpn` will be told that its request `psn` is not answered. */
void vb_responder_owe_drop(struct vb_tqp *qp, uint32_t qpn, uint32_t psn, enum vb_reason reason);
/* The request with the expected PSN was executed: `psns` PSNs are expected no more. */
static inline void vb_responder_executed(struct vb_responder *p, uint32_t psns)
{
	p->epsn = (p->epsn + psns) & 0xffffff;
	p->executed += psns;
	if (p->executed > VB_EXECUTED_MOST)
		p->executed = VB_EXECUTED_MOST;
	p->nak_sent = p->ahead = false;
}
/* Whether the lengths of a SEND or WRITE run fit its flags and the path MTU (IBA 9.7.4.1.6). */
bool vb_responder_lengths_fit(const struct vb_tqp *qp, const struct vb_run *run);
/* Answers with a fatal NAK and goes to ERR. */
void vb_responder_nak(struct vb_tqp *qp, const struct vb_run *run, uint32_t psn,
		      enum vb_reason reason);

/* receive.c */
/* The receive in use, or the next one posted; NULL if there is none. */
struct vb_recv_wqe *vb_responder_recv(struct vb_tqp *qp);
/* Gives the receive in use back. */
void vb_responder_recv_return(struct vb_tqp *qp);
/* Completes the receive in use. */
void vb_responder_recv_done(struct vb_tqp *qp, const struct vb_run *run, enum ibv_wc_opcode opcode,
			    uint32_t byte_len);
void vb_responder_recv_fail(struct vb_tqp *qp, enum ibv_wc_status status, enum vb_reason reason);

/* fault.c */
/* The queue pair goes to ERR for a fault of the responder half; send requests are flushed. */
void vb_responder_error(struct vb_tqp *qp);

/* respond.c: sends owed answers. True if the link has no room for one. */
bool vb_respond(struct vb_tqp *qp);
/*
 * Repeats the last acknowledgement on a link that may lose it: the queue pair will not be there to
 * do so later.
 */
void vb_respond_last_acks(struct vb_tqp *qp);

/* responder_rc.c, responder_uc.c, responder_ud.c: a request that the queue pair can take. */
void vb_responder_rc(struct vb_tqp *qp, const struct vb_run *run, const void *payload);
void vb_responder_uc(struct vb_tqp *qp, const struct vb_run *run, const void *payload);
void vb_responder_ud(struct vb_tqp *qp, const struct vb_run *run, const void *payload);

/* responder_read.c: READ and ATOMIC, new and repeated. */
void vb_responder_rd_atomic(struct vb_tqp *qp, const struct vb_run *run, const void *payload);
void vb_responder_rd_atomic_again(struct vb_tqp *qp, const struct vb_run *run);

#endif
