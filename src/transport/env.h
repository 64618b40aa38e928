/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the protocol needs from outside: tables of functions. The device implements them for
 * programs, the simulator for tests. The protocol itself knows no descriptor, clock, thread or
 * allocator. All calls for one queue pair are made by one thread at a time (under the engine's
 * lock).
 */
#ifndef VB_TRANSPORT_ENV_H
#define VB_TRANSPORT_ENV_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/reason.h"
#include "transport/run.h"
#include "transport/wqe.h"

struct vb_tqp;

/* A receive completion, success or error. */
struct vb_recv_done {
	const struct vb_recv_wqe *wqe;
	enum ibv_wc_status status;
	enum vb_reason reason;
	enum ibv_wc_opcode opcode; /* IBV_WC_RECV or IBV_WC_RECV_RDMA_WITH_IMM */
	uint32_t byte_len;
	uint32_t wc_flags;   /* IBV_WC_WITH_IMM, WITH_INV, GRH */
	uint32_t imm;        /* immediate or invalidated key */
	uint32_t src_qp;     /* UD */
	uint8_t header_kind; /* UD: vb_grh_kind() */
	bool solicited;
};

enum vb_direct {
	VB_DIRECT_DECLINED, /* no byte was touched: send the request */
	VB_DIRECT_DONE,     /* the whole request is done */
	VB_DIRECT_MORE,     /* a part of the request is done (wqe->done); call again later */
};

enum vb_fetch {
	VB_FETCH_DONE,
	VB_FETCH_LATER,    /* not all of it yet: the same run comes again */
	VB_FETCH_DECLINED, /* it cannot be fetched: the sender is to send the payload */
	VB_FETCH_FAILED,   /* the receive cannot take it */
};

/* What the protocol alone sees of retries. */
enum vb_count {
	VB_COUNT_OUT_OF_SEQUENCE, /* responder: a packet before this one is missing */
	VB_COUNT_DUPLICATE,       /* responder: a request has come again */
	VB_COUNT_TIMEOUT,         /* requester: the acknowledgement timer has expired */
	VB_COUNT_IMPLIED_NAK,     /* requester: acknowledged beyond a response that is missing */
};

/* The link to the peer. */
struct vb_env_link {
	/*
	 * reserve() gives room for the payload of one run (contiguous, to be filled by the caller;
	 * the link sends it from there). NULL: the link is full or not up yet; run the queue pair
	 * again when the link has room. The run's service, operation, flags and length are set and
	 * do not change until commit(), except for VB_RUN_ACK_REQ and VB_RUN_SOLICITED; a READ
	 * response is reserved with VB_RUN_FIRST and VB_RUN_LAST, and may be committed without. For
	 * UD requests `wqe` names the destination; else it is NULL. commit() sends what was
	 * reserved; reserve() without commit() has no effect. For a run without payload a non-NULL
	 * answer means "room".
	 */
	void *(*reserve)(struct vb_tqp *qp, const struct vb_send_wqe *wqe,
			 const struct vb_run *run);
	void (*commit)(struct vb_tqp *qp, const struct vb_send_wqe *wqe, const struct vb_run *run);

	/* Executes a one-sided request without the link, where that is possible. NULL: never. */
	enum vb_direct (*direct)(struct vb_tqp *qp, struct vb_send_wqe *wqe);
	/*
	 * Executes several such requests at once, in order: `wqe`, the oldest, and those behind it
	 * that are like it (vb_requester_alike()). Returns how many of them are done; the others
	 * are left for direct(). NULL: never.
	 */
	uint32_t (*direct_list)(struct vb_tqp *qp, struct vb_send_wqe *wqe);
	/*
	 * Called when such a request is next and others are in flight before it (`two_sided`:
	 * messages among them that the peer must receive). True: wait for their answers and then
	 * execute it directly, rather than send it behind them. NULL: never.
	 */
	bool (*direct_waits)(struct vb_tqp *qp, const struct vb_send_wqe *wqe, bool two_sided);

	/*
	 * lend: whether the receiver is to fetch `length` bytes of a SEND from `offset` on, rather
	 * than that they are copied into the link; then *lent says where they lie. They stay there
	 * until the request is complete. fetch: copies `length` bytes of the run's payload, which
	 * begin at `from` in the sender's memory, to `offset` of the receive; with VB_FETCH_FAILED
	 * *reason is set. NULL: never.
	 */
	bool (*lend)(struct vb_tqp *qp, struct vb_send_wqe *wqe, uint64_t offset, uint32_t length,
		     struct vb_lent *lent);
	enum vb_fetch (*fetch)(struct vb_tqp *qp, struct vb_recv_wqe *recv, uint64_t offset,
			       const struct vb_run *run, uint64_t from, enum vb_reason *reason);
};

/* The program's memory. */
struct vb_env_memory {
	/*
	 * Local memory of a send request: check the whole list; copy out of it; copy a response
	 * into it (needs LOCAL_WRITE).
	 */
	enum vb_reason (*gather_check)(struct vb_tqp *qp, struct vb_send_wqe *wqe);
	enum vb_reason (*gather)(struct vb_tqp *qp, struct vb_send_wqe *wqe, uint64_t offset,
				 void *dst, uint32_t length);
	enum vb_reason (*scatter_response)(struct vb_tqp *qp, struct vb_send_wqe *wqe,
					   uint64_t offset, const void *src, uint32_t length);

	/*
	 * The responder's memory: check without touching, then copy. Each copy checks again,
	 * because a region may be deregistered between packets.
	 */
	enum vb_reason (*remote_check)(struct vb_tqp *qp, uint32_t rkey, uint64_t va,
				       uint64_t length, uint32_t need);
	enum vb_reason (*remote_write)(struct vb_tqp *qp, uint32_t rkey, uint64_t va,
				       const void *src, uint32_t length);
	enum vb_reason (*remote_read)(struct vb_tqp *qp, uint32_t rkey, uint64_t va, void *dst,
				      uint32_t length);
	/*
	 * Executes once, atomically against every other remote atomic on that memory. *original
	 * gets the old value.
	 */
	enum vb_reason (*remote_atomic)(struct vb_tqp *qp, uint32_t rkey, uint64_t va,
					bool compare_swap, uint64_t swap_add, uint64_t compare,
					uint64_t *original);
	/*
	 * Stores 8 bytes at an aligned address in one step, and atomically against other remote
	 * atomics.
	 */
	enum vb_reason (*remote_atomic_write)(struct vb_tqp *qp, uint32_t rkey, uint64_t va,
					      const void *value);
	/*
	 * Brings bytes that were written through the key (`whole`), or into the range, to the place
	 * that the FETH's type names. length 0: none.
	 */
	enum vb_reason (*remote_flush)(struct vb_tqp *qp, uint32_t rkey, uint64_t va,
				       uint64_t length, uint32_t type, bool whole);
	/*
	 * SEND_WITH_INV and LOCAL_INV: invalidates the key of a type 2 window. When it returns, no
	 * access by the key is under way.
	 */
	enum vb_reason (*invalidate)(struct vb_tqp *qp, uint32_t key);
	/* BIND_MW: makes the window's key valid for every later request. */
	enum vb_reason (*bind)(struct vb_tqp *qp, const struct vb_send_wqe *wqe);
};

/* Time, the queues, and reports about them. */
struct vb_env_queue {
	/*
	 * Arms the queue pair's one timer, or arms it again: call vb_tqp_timer() after `delay_ns`.
	 * 0 cancels.
	 */
	void (*timer)(struct vb_tqp *qp, uint64_t delay_ns);
	/*
	 * The time in ns since any fixed moment. Called only when the peer has dropped a request.
	 */
	uint64_t (*now)(struct vb_tqp *qp);

	/*
	 * The request is finished. Called in posting order, for unsignalled requests as well (the
	 * device decides about a CQE). The protocol does not read the entry after this call.
	 */
	void (*send_done)(struct vb_tqp *qp, struct vb_send_wqe *wqe, enum ibv_wc_status status,
			  enum vb_reason reason);

	/*
	 * XRC: the calls that follow (receives, remote memory) concern this shared receive queue of
	 * the domain. Returns the reason if the domain has no queue of that number. Called before
	 * every request is executed, and before a READ is answered.
	 */
	enum vb_reason (*srq_enter)(struct vb_tqp *qp, uint32_t srqn);

	/*
	 * Receives. recv_take() moves the next posted receive (own queue or SRQ) to the queue pair.
	 * NULL: there is none. The receive stays valid until recv_done().
	 */
	struct vb_recv_wqe *(*recv_take)(struct vb_tqp *qp);
	/*
	 * Replaces recv_take() for the first run of a message where the payload decides about the
	 * receive (tag matching); NULL: never. May be called again for the same message when it
	 * returned no receive.
	 */
	struct vb_recv_wqe *(*recv_match)(struct vb_tqp *qp, const struct vb_run *run,
					  const void *payload);
	/*
	 * Gives a taken receive back untouched: the next recv_take() returns it again (own queue).
	 */
	void (*recv_untake)(struct vb_tqp *qp, struct vb_recv_wqe *wqe);
	enum vb_reason (*recv_scatter)(struct vb_tqp *qp, struct vb_recv_wqe *wqe, uint64_t offset,
				       const void *src, uint32_t length);
	void (*recv_done)(struct vb_tqp *qp, const struct vb_recv_done *done);

	/*
	 * Called where tqp->tells is set: a WRITE or READ of the peer (run->op) of `bytes` bytes
	 * was executed, or refused.
	 */
	void (*remote_done)(struct vb_tqp *qp, uint8_t op, uint64_t bytes, bool ok);

	/* An affiliated asynchronous event of this queue pair. */
	void (*event)(struct vb_tqp *qp, enum ibv_event_type type);
	/*
	 * The protocol has moved the queue pair to IBV_QPS_ERR or IBV_QPS_SQE. tqp->state is
	 * already set, and the protocol flushes send requests right after. The device flushes
	 * receives, publishes the state, and raises LAST_WQE_REACHED.
	 */
	void (*state_changed)(struct vb_tqp *qp);
	/* Something that port counters show has happened. NULL: nobody counts. */
	void (*count)(struct vb_tqp *qp, enum vb_count what);
	/* A packet was dropped. */
	void (*drop)(struct vb_tqp *qp, enum vb_reason reason, const struct vb_run *run);
	/*
	 * Logs a sentence about a refusal whose code travels elsewhere: what the target knows of
	 * rkey, range, flag.
	 */
	void (*explain)(struct vb_tqp *qp, enum vb_reason reason, const struct vb_run *run);
};

/*
 * A constant table. Kinds of queue pairs differ in single members; therefore the parts are members
 * here, not pointers.
 */
struct vb_env {
	struct vb_env_link link;
	struct vb_env_memory memory;
	struct vb_env_queue queue;
};

#endif
