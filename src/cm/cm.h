/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connection manager of one process: connections, listeners, their messages, and their timers
 * (IBA chapter 12), for reliable and unreliable connections, XRC, and for the service id resolution
 * of datagrams (SIDR).
 *
 * Pure: calls, messages and the time come in as arguments; messages, events and deadlines leave
 * through struct vb_cm_env. Nothing here opens a descriptor, reads a clock, starts a thread or
 * allocates. Not thread-safe: the caller's lock is held around every call, and env's functions run
 * inside these calls. They must not call back into the core.
 *
 * Times are ns since any fixed moment, never 0, and do not run backwards. Results are 0 or a
 * negative errno. No call waits.
 *
 * A connection belongs to the caller from vb_cm_connect(), vb_cm_sidr_request() or the event REQUEST
 * or SIDR_REQUEST on, until it calls vb_cm_release(), once, in any state. The core keeps it for as
 * long as the peer may still send something for it, and then calls env->conn_free().
 */
#ifndef VB_CM_CM_H
#define VB_CM_CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/reason.h"
#include "base/siphash.h"
#include "cm/conn.h"
#include "cm/event.h"
#include "cm/heap.h"
#include "cm/listener.h"
#include "cm/path.h"
#include "cm/senders.h"
#include "wire/cm_message.h"

#define VB_CM_BUCKETS          4096u
#define VB_CM_LISTENER_BUCKETS 256u

/* Bounds on what strangers can make this process keep. */
#define VB_CM_UNREAD_MOST      4096u /* requests that the program has not read, of all listeners */
#define VB_CM_REMEMBERED_MOST  4096u /* refused requests whose answer may have to be repeated */

struct vb_cm;

struct vb_cm_env {
	/* Sends the MAD to queue pair 1 of path->dgid. It may be lost; nobody is told. */
	void (*send)(struct vb_cm *cm, const struct vb_cm_path *path,
		     const uint8_t mad[VB_MAD_BYTES]);
	/*
	 * Reports an event of the connection. True: it is accepted, which all events but REQUEST
	 * and SIDR_REQUEST must be. For these two, false (no memory) makes the core forget the
	 * request, so that a later try of the peer is a new one; the connection is freed then.
	 * conn->user may be set.
	 */
	bool (*event)(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_event *event);
	/* Memory of sizeof(struct vb_cm_conn), whatever it contains; NULL: there is none. */
	struct vb_cm_conn *(*conn_alloc)(struct vb_cm *cm);
	void (*conn_free)(struct vb_cm *cm, struct vb_cm_conn *conn);
	/*
	 * From here to withdraw() the peer has to be told if this process ends without a word: the
	 * connection has both ids, and may be established at the peer. conn->place is for these two
	 * functions, and 0 before. They may be NULL.
	 */
	void (*publish)(struct vb_cm *cm, struct vb_cm_conn *conn);
	void (*withdraw)(struct vb_cm *cm, struct vb_cm_conn *conn);
	uint32_t (*random)(struct vb_cm *cm); /* unguessable */
	/*
	 * A message was dropped, or something refused. `mad` are the 256 bytes that arrived, or
	 * NULL if there were not as many; `path` says between which addresses. Both may be NULL.
	 */
	void (*drop)(struct vb_cm *cm, enum vb_reason reason, const struct vb_cm_path *path,
		     const uint8_t *mad);
};

struct vb_cm_setup {
	/*
	 * Communication ids are id_base + [0, 2^id_bits), without 0. No other process whose devices
	 * have the same GUID may have ids of this range. id_bits is at least 8.
	 */
	uint32_t id_base;
	unsigned int id_bits;
	/*
	 * All times of the core times this / 1000. 0 and 1000: those of stock; 1 to 999: shorter,
	 * for tests and for programs that cannot wait. Larger numbers mean 1000.
	 */
	unsigned int scale;
	void *owner; /* for env's functions: cm->owner */
};

/* Times in ns, scaled. */
struct vb_cm_times {
	uint64_t fast;    /* between the first tries of any message */
	uint64_t request; /* between later tries of REQ; and so on */
	uint64_t reply;
	uint64_t timewait;
	/*
	 * How long an answer that ended an exchange is repeated; and after a request found no room,
	 * how long requests that their senders do not go on with are given up early.
	 */
	uint64_t remember;
};

struct vb_cm {
	const struct vb_cm_env *env;
	void *owner;
	struct vb_cm_times times;
	uint32_t id_base, id_mask;
	uint32_t id_next, id_step;
	uint32_t agent;       /* upper half of own transaction ids */
	unsigned int conns;   /* all, those that are released included */
	unsigned int unreads; /* of all listeners */
	unsigned int remembered;
	struct vb_cm_link *oldest, **newest; /* remembered answers */
	uint8_t key[VB_SIPHASH_KEY_BYTES];   /* of the chains that peers choose */
	struct vb_cm_heap timers;
	struct vb_cm_link *by_local[VB_CM_BUCKETS];
	struct vb_cm_link *by_remote[VB_CM_BUCKETS]; /* remote id, GUID, GID */
	struct vb_cm_link *by_qpn[VB_CM_BUCKETS];    /* remote queue pair, GUID, GID */
	struct vb_cm_link *listeners[VB_CM_LISTENER_BUCKETS];
	struct vb_cm_senders senders;
};

/* Begins. *cm may hold anything before. */
void vb_cm_init(struct vb_cm *cm, const struct vb_cm_env *env, const struct vb_cm_setup *setup);

/*
 * The process ends, or nobody uses the core any more: every connection is released as by
 * vb_cm_release() (its last message is sent once) and freed, every listener is forgotten. The core
 * may be used again afterwards.
 */
void vb_cm_end(struct vb_cm *cm, uint64_t now);

/*
 * The process may end any moment: for every connection what vb_cm_release() would send is sent, once.
 * Nothing changes here, so that threads that still run may go on.
 */
void vb_cm_last_words(struct vb_cm *cm);

/*
 * When vb_cm_expire() is to be called at the latest; 0: never. Every other call may make it
 * earlier.
 */
static inline uint64_t vb_cm_deadline(const struct vb_cm *cm)
{
	return vb_cm_heap_due(&cm->timers);
}

/* Does what is due, and returns the next deadline (0: none). */
uint64_t vb_cm_expire(struct vb_cm *cm, uint64_t now);

/*
 * A MAD has come from queue pair 1 of path->dgid to path->sgid at path->ifindex, whose node GUID is
 * path->guid; the other members of *path do not matter. Nothing of its content was judged. Whoever
 * calls this has found out that the message is for this process, or that no process of the host
 * knows its id or listens for its service id: this function then answers as IBA 12 says (REJ with
 * reason 8, a SIDR_REP with status 1, a DREP), or drops it.
 */
void vb_cm_receive(struct vb_cm *cm, const struct vb_cm_path *path, const uint8_t *mad,
		   size_t length, uint64_t now);

/*
 * A process of this host has ended, and everything that it had sent has arrived. Its communication
 * ids were id_base + [0, 2^id_bits). Of its connections, those whose peer's GID `is_near` accepts,
 * the program is told what the last words of the process would have told it.
 */
void vb_cm_peer_ended(struct vb_cm *cm, uint32_t id_base, unsigned int id_bits,
		      bool (*is_near)(const uint8_t gid[16]), uint64_t now);

/* The device is gone: nothing is sent by it any more. Its connections become IDLE, without events. */
void vb_cm_device_lost(struct vb_cm *cm, uint32_t ifindex);

/* -EADDRINUSE: a listener of the same service id, type and address is there. */
int vb_cm_listen(struct vb_cm *cm, struct vb_cm_listener *listener);
/*
 * Requests of it that were reported stay, and are the caller's to release (which rejects them).
 */
void vb_cm_unlisten(struct vb_cm *cm, struct vb_cm_listener *listener);
/* The program has read the request: it does not count as backlog any more. */
void vb_cm_taken(struct vb_cm *cm, struct vb_cm_conn *conn);

/* What REQ says. Depths and counts are those of this side, as rdma_connect() has them. */
struct vb_cm_connect {
	void *user; /* conn->user */
	struct vb_cm_path path;
	uint64_t service_id;
	struct vb_cm_address address;
	uint8_t service; /* enum vb_cm_service, not VB_CM_UD */
	uint32_t qp_num;
	uint32_t psn; /* the first that this side expects, its rq_psn: any 24 bits */
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count; /* more than 7 is 7 */
	bool flow_control, srq;
	uint32_t ece_vendor, ece_options;
	const void *private_data; /* copied */
	uint8_t private_length;   /* at most VB_CM_USER_REQ */
};

/*
 * Sends REQ and repeats it until there is an answer or its time is over. -EINVAL: too much private
 * data; -ENOMEM; -EADDRNOTAVAIL: all communication ids are in use.
 */
int vb_cm_connect(struct vb_cm *cm, const struct vb_cm_connect *how, uint64_t now,
		  struct vb_cm_conn **conn);

/* What REP says, from this side, as rdma_accept() has it. */
struct vb_cm_accept {
	uint32_t qp_num;
	uint32_t psn;
	uint8_t responder_resources, initiator_depth;
	uint8_t rnr_retry_count;
	uint8_t ack_delay; /* target ACK delay; stock over rxe: 15 */
	bool flow_control, srq;
	uint32_t ece_vendor, ece_options;
	const void *private_data;
	uint8_t private_length; /* at most VB_CM_PRIVATE_REP */
};

/*
 * In REQ_RCVD: sends REP, and repeats it. The queue pair must be ready to receive before. -EINVAL:
 * too much private data, or another state (the peer has given up).
 */
int vb_cm_accept(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_accept *how,
		 uint64_t now);

/*
 * After RESPONSE, when the queue pair is ready to send: sends RTU. -EINVAL: another state (a REJ or
 * DREQ has come meanwhile).
 */
int vb_cm_establish(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now);

/*
 * Rejects a request that was not accepted, a response that was not established, or a connection of
 * which the RTU did not come: reason is VB_CM_REJ_CONSUMER or another. -EINVAL: another state, or
 * more than VB_CM_PRIVATE_REJ bytes. A SIDR request is refused by vb_cm_sidr_reply().
 */
int vb_cm_reject(struct vb_cm *cm, struct vb_cm_conn *conn, uint16_t reason,
		 const void *private_data, unsigned int private_length, uint64_t now);

/*
 * Sends DREQ and repeats it (in REP_SENT as soon as the RTU has come; ESTABLISHED is not reported
 * then), or answers the peer's DREQ, which brings no event any more. 0 also if that was done
 * before. -EINVAL: there is nothing to disconnect (stock's rdma_disconnect() is successful then,
 * too).
 */
int vb_cm_disconnect(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now);

/* Whether DISCONNECTED is still to come, now that the end was asked for. */
bool vb_cm_is_disconnecting(const struct vb_cm_conn *conn);

/*
 * rdma_notify(IBV_EVENT_COMM_EST): data came before RTU. In REP_SENT the connection is established,
 * with the event. -EISCONN: it is already; -EINVAL: another state.
 */
int vb_cm_notify(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now);

/*
 * The caller has no more to do with the connection: nothing is reported of it any more, and it may
 * be freed before this returns. What the peer must learn is sent: REJ with reason 4 (request sent)
 * or 28 (request received, response sent or received), DREQ (established; it is repeated), DREP
 * (DREQ received), SIDR_REP with status 2.
 */
void vb_cm_release(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now);

struct vb_cm_sidr_request {
	void *user;
	struct vb_cm_path path;
	uint64_t service_id;
	struct vb_cm_address address;
	const void *private_data;
	uint8_t private_length; /* at most VB_CM_USER_SIDR_REQ */
};

/* As vb_cm_connect(), for the address of a datagram service. */
int vb_cm_sidr_request(struct vb_cm *cm, const struct vb_cm_sidr_request *how, uint64_t now,
		       struct vb_cm_conn **conn);

struct vb_cm_sidr_reply {
	uint8_t status; /* VB_CM_SIDR_VALID, or VB_CM_SIDR_REJECTED for rdma_reject() */
	uint32_t qp_num;
	uint32_t qkey;
	uint32_t ece_vendor, ece_options;
	const void *private_data;
	uint8_t private_length; /* at most VB_CM_PRIVATE_SIDR_REP */
};

/* Answers SIDR_REQUEST. -EINVAL: it was answered before, or too much private data. */
int vb_cm_sidr_reply(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_sidr_reply *how,
		     uint64_t now);

#endif
