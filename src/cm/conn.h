/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A connection (or an exchange of SIDR) as the core sees it. The caller reads the upper part; only
 * `user` is the caller's to write.
 */
#ifndef VB_CM_CONN_H
#define VB_CM_CONN_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "cm/chain.h"
#include "cm/heap.h"
#include "cm/path.h"
#include "wire/mad.h"

/* IBA 12.9.5 and 12.9.7. The states in which an MRA waits are flags of these. */
enum vb_cm_state {
	VB_CM_IDLE, /* over, or never begun; the peer knows nothing of it, or no longer */
	VB_CM_REQ_SENT,
	VB_CM_REP_RCVD,
	VB_CM_REQ_RCVD,
	VB_CM_REP_SENT,
	VB_CM_ESTABLISHED,
	VB_CM_DREQ_SENT,
	VB_CM_DREQ_RCVD,
	VB_CM_TIMEWAIT,
	VB_CM_REJ_SENT, /* REQ was rejected; the answer is repeated for duplicates for a while */
	VB_CM_SIDR_REQ_SENT,
	VB_CM_SIDR_REQ_RCVD,
	VB_CM_SIDR_REP_SENT, /* as REJ_SENT */
	VB_CM_STATE_COUNT,
};

struct vb_cm_listener;

struct vb_cm_conn {
	void *user;
	uint32_t local_id, remote_id;
	uint32_t local_qpn, remote_qpn;
	struct vb_cm_path path;
	uint8_t state;   /* enum vb_cm_state */
	uint8_t service; /* enum vb_cm_service */
	bool active;     /* this side sent REQ or SIDR_REQ */

	/* Of the core. */
	bool released;
	bool disconnected; /* DISCONNECTED was reported */
	bool closing;      /* in REP_SENT: DREQ leaves as soon as there is an RTU */
	bool established;  /* it was, so that no REQ of it is on its way any more */
	bool mra;          /* an MRA was sent (passive), or received for the try under way */
	uint8_t tries;
	uint8_t mras;        /* received */
	uint32_t asker;      /* the id of who sent the last MRA */
	uint32_t place;      /* env->publish() */
	uint32_t remote_psn; /* of REQ: tells a duplicate from a new life of the peer */
	uint64_t remote_guid;
	uint64_t service_id;
	uint64_t tid;     /* of the exchange under way */
	uint64_t give_up; /* ns; the message is not repeated after this */
	struct vb_cm_node timer;
	struct vb_cm_link by_local, by_remote, by_qpn;
	struct vb_cm_link unread;        /* requests of the listener that were not taken */
	struct vb_cm_link remembered;    /* in REJ_SENT and SIDR_REP_SENT */
	struct vb_cm_link later;         /* the program has not been told of it (waiting.c) */
	struct vb_cm_listener *listener; /* while unread */
	uint8_t waits;                   /* 1 + enum vb_cm_sender while it counts as waiting */
	/* The message that is repeated; while the program has not been told, the request. */
	uint8_t mad[VB_MAD_BYTES];
};

static_assert(sizeof(struct vb_cm_conn) <= 640, "a connection costs little beside its queue pair");

const char *vb_cm_state_name(enum vb_cm_state state);

#endif
