/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the processes share that have one XRC domain open: the members, which process has the queue
 * of a number, and for each receive queue pair its holders, its attributes, and the state of its
 * responder.
 *
 * One process is a queue pair's home: its number lies in a block of the home, and all requests come
 * there. The home executes those that name a queue of its own. It hands the others to the queue's
 * process, one at a time. That process executes them with the responder's state from the table,
 * answers the sender itself, and reports back (xrc/hand.c). So one process executes at a time, and
 * needs no lock for it. When the home dies or leaves, another member takes its block over and
 * continues from the table.
 *
 * Every member may write here: what is read is copied and made plausible before it is used.
 */
#ifndef VB_XRC_TABLE_H
#define VB_XRC_TABLE_H

#include <infiniband/verbs.h>

#include "qp/qp.h"
#include "xrc/xrc.h"
#include "xrc/seats.h"
#include "host/commons.h"
#include "host/page.h"
#include "transport/responder.h"

#define VB_XRC_QPS    VB_QPN_BLOCK_SIZE /* a queue pair's place is its number within its block */
#define VB_XRC_NOBODY UINT32_MAX
#define VB_XRC_MAGIC  0x7662787263303033ull

struct vb_xrc_seat {
	/* Number of the member that uses it: each member has another number; 0: none. */
	uint32_t used;
	uint32_t contact_qpn; /* a number of the member by which its engine is found */
};

struct vb_xrc_srq_place {
	uint32_t number; /* 0: none */
	uint32_t seat;
};

struct vb_xrc_qp_place {
	uint32_t qpn;     /* 0: none */
	uint32_t home;    /* a seat, or NOBODY */
	uint32_t version; /* grows when attr or state change */
	uint32_t state;
	struct vb_xrc_seats holders;
	uint32_t events[VB_COMMONS_SEATS]; /* to be raised by that member: one bit for each type */
	struct ibv_qp_attr attr;
	uint32_t saves;           /* grows with every change of resp */
	struct vb_responder resp; /* without the ring, which follows */
	struct vb_resource res[VB_RESOURCES];
};

struct vb_xrc_table {
	uint64_t magic;
	uint32_t next_srq;
	uint32_t next_qp;
	uint32_t next_member;
	/* Places of queue pairs. Places that are not used are not touched and cost nothing. */
	uint64_t used[VB_XRC_QPS / 64];
	struct vb_xrc_seat seat[VB_COMMONS_SEATS];
	struct vb_xrc_srq_place srq[VB_XRC_SRQS];
	struct vb_xrc_qp_place qp[VB_XRC_QPS];
};

struct vb_xrc_held;

/* What of a body several processes see. */
struct vb_xrc_shared {
	uint32_t place;
	uint32_t version, saves; /* as last seen */
	uint32_t res_saved;      /* resources below this number are in the table */
	bool home;
	/* No handle is left; the place is given back when the table's lock can be had. */
	bool dropping;
	bool serving;  /* executes a request for the home, which waits for the report */
	uint32_t away; /* 1 + seat of the process that executes a request for this one */
	/* Number of that member: another one may have the seat before its end is known here. */
	uint32_t away_member;
	struct vb_run sent; /* that request */
	/* Members that were handed requests: they have bodies, too. */
	struct vb_xrc_seats handed;
	struct vb_xrc_held *first, **last; /* requests that wait for the report */
	uint32_t num_held;
	uint64_t held_bytes;
	/* A body that is not at home publishes here: to no process. */
	struct vb_page_qp unpublished;
};

/* What bodies and handles have besides the parts of other queue pairs (vb_qp.own). */
struct vb_xrc_body {
	struct vb_xrc_domain *domain;
	struct vb_srq *srq;           /* the queue that the latest request named */
	struct vb_qp *handles;        /* of this process */
	struct vb_qp *next;           /* the domain's bodies */
	struct vb_xrc_shared *shared; /* NULL: the queue pair belongs to this process alone */
};

struct vb_xrc_handle {
	struct vb_xrcd *xrcd;
	struct vb_qp *body; /* NULL once it is retired */
	struct vb_qp *next; /* the body's handles */
};

static inline struct vb_xrc_body *vb_xrc_body_of(const struct vb_qp *body)
{
	return body->own;
}

static inline struct vb_xrc_shared *vb_xrc_shared_of(const struct vb_qp *body)
{
	return vb_xrc_body_of(body)->shared;
}

static inline struct vb_xrc_handle *vb_xrc_handle_of(const struct vb_qp *handle)
{
	return handle->own;
}

static inline struct vb_xrc_qp_place *vb_xrc_place(const struct vb_xrc_domain *d, uint32_t place)
{
	return &d->table->qp[place % VB_XRC_QPS];
}

/* xrc/table.c. All under the engine's lock, which is taken before the table's. */
int vb_xrc_table_join(struct vb_xrc_domain *d, bool create, bool *fresh);
void vb_xrc_table_leave(struct vb_xrc_domain *d);
/* For calls: releases the engine's lock while it waits. -EBUSY with the reason recorded. */
int vb_xrc_table_lock(struct vb_xrc_domain *d);
/* Does not wait. */
bool vb_xrc_table_try(struct vb_xrc_domain *d);
void vb_xrc_table_unlock(struct vb_xrc_domain *d);
/* Takes a free place for this process. *qpn gets its number. -ENOMEM. */
int vb_xrc_place_take(struct vb_xrc_domain *d, uint32_t *qpn);
/* Marks this process as a holder of the queue pair. -EINVAL: the domain has none of that number. */
int vb_xrc_place_hold(struct vb_xrc_domain *d, uint32_t qpn);
/* This process is a holder no more. A queue pair without holders ends. */
void vb_xrc_place_drop(struct vb_xrc_domain *d, uint32_t qpn);
/* Removes everything of that member from the table. With the table's lock. */
void vb_xrc_seat_clear(struct vb_xrc_domain *d, uint32_t seat);
/*
 * Removes members that have died; their queue pairs continue here or elsewhere. True: to be called
 * again, because some queue pairs have no home yet.
 */
bool vb_xrc_table_survey(struct vb_xrc_domain *d);
/* The seat of the process that has the queue. NOBODY: there is no such queue. */
uint32_t vb_xrc_srq_seat(const struct vb_xrc_domain *d, uint32_t srqn);

/* xrc/share.c: a body and its place. */
void vb_xrc_pull(struct vb_qp *body);  /* attributes, state, responder: what others have changed */
void vb_xrc_leave(struct vb_qp *body); /* attributes and state that this process has changed */
void vb_xrc_save(struct vb_qp *body);  /* the responder, after a request */
/* True if the queue pair is no more. */
bool vb_xrc_is_gone(const struct vb_qp *body);

/* xrc/hand.c: requests that other members execute. */
/* At home: a request has come. Executes it, hands it over, or keeps it for later. */
void vb_xrc_receive(struct vb_qp *body, const struct vb_run *run, const void *payload);
/* A slot from another member has come. */
void vb_xrc_handed(struct vb_engine_hook *hook, const struct vb_run *run, const void *payload);
/* Tries waiting requests again. True if one waits for room. */
bool vb_xrc_pump(struct vb_qp *body);
bool vb_xrc_tell_news(struct vb_xrc_domain *d);
/*
 * If the member that was executing a request for this process has ended, the request is executed
 * here, where it fails. True: its end is known, but its seat is not cleared yet: to be called
 * again.
 */
bool vb_xrc_recall(struct vb_qp *body);
void vb_xrc_forget_held(struct vb_qp *body);
/*
 * Makes contact with members whose end this process must notice: homes of its queue pairs, and a
 * few neighbours, so that the end of every member is noticed.
 */
void vb_xrc_meet(struct vb_xrc_domain *d);
/* Whether contact with the member is known to have ended. */
bool vb_xrc_seat_lost(struct vb_xrc_domain *d, uint32_t seat);

/* xrc/srq.c */
enum vb_reason vb_xrc_srq_enter(struct vb_tqp *t, uint32_t srqn);

/* xrc/qp.c: with the engine's lock. */
struct vb_qp *vb_xrc_body(struct vb_xrc_domain *d, uint32_t qpn);
/* As vb_xrc_body(), or a new body for a queue pair of another home. NULL: no memory. */
struct vb_qp *vb_xrc_body_mirror(struct vb_xrc_domain *d, uint32_t qpn);
/* From now on the queue pair's requests come to this process. */
void vb_xrc_body_settle_home(struct vb_qp *body);
/* Frees bodies whose queue pair has ended, or all of them if `all`. None has a handle. */
void vb_xrc_bodies_sweep(struct vb_xrc_domain *d, bool all);
/* Raises the event on the handles of this process. */
void vb_xrc_handles_event(struct vb_qp *body, enum ibv_event_type type);

#endif
