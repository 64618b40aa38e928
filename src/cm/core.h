/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the parts of the connection manager's core know of each other. */
#ifndef VB_CM_CORE_H
#define VB_CM_CORE_H

#include "cm/cm.h"

/* A message that has arrived. */
struct vb_cm_arrival {
	const struct vb_cm_message *message;
	const struct vb_cm_path *path;
	const uint8_t *mad;
	uint64_t now;
};

/* index.c: connections by the numbers that messages name. */
struct vb_cm_conn *vb_cm_by_local(struct vb_cm *cm, uint32_t local_id);
/* `sidr`: among exchanges of SIDR, whose guid is 0. */
struct vb_cm_conn *vb_cm_by_remote(struct vb_cm *cm, bool sidr, uint32_t remote_id, uint64_t guid,
				   const uint8_t gid[16]);
struct vb_cm_conn *vb_cm_by_qpn(struct vb_cm *cm, uint32_t qpn, uint64_t guid,
				const uint8_t gid[16]);
/* From what the connection knows of its peer; it is in none of the two before. */
void vb_cm_index_remote(struct vb_cm *cm, struct vb_cm_conn *conn);
void vb_cm_index_qpn(struct vb_cm *cm, struct vb_cm_conn *conn);
uint64_t vb_cm_hash(const struct vb_cm *cm, const void *data, size_t length);

/* life.c: the life of a connection. */
/*
 * A new one, IDLE and by_local, with its path and an id of its own. 0, -ENOMEM, -EADDRNOTAVAIL (the
 * reason is noted).
 */
int vb_cm_conn_new(struct vb_cm *cm, const struct vb_cm_path *path, struct vb_cm_conn **conn);
/* Frees it if nobody has to do with it any more: it is released, and IDLE. */
void vb_cm_conn_put(struct vb_cm *cm, struct vb_cm_conn *conn);
/* Takes it out of all lists but by_local, and the timer with it. */
void vb_cm_conn_idle(struct vb_cm *cm, struct vb_cm_conn *conn);
/* The peer may have it as established. What takes it out of that state withdraws it. */
void vb_cm_publish(struct vb_cm *cm, struct vb_cm_conn *conn);
void vb_cm_conn_timewait(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now);
/* conn->mad has been sent as the last word, and is repeated on demand: REJ_SENT, SIDR_REP_SENT. */
void vb_cm_conn_remember(struct vb_cm *cm, struct vb_cm_conn *conn, enum vb_cm_state state,
			 uint64_t now);
bool vb_cm_report(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_event *event);
void vb_cm_report_plain(struct vb_cm *cm, struct vb_cm_conn *conn, enum vb_cm_event_type type,
			int status);
/* The RTU, or what stands for it, has come. */
void vb_cm_established(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now);
/* TIMEWAIT, and DISCONNECTED if it was not reported before. */
void vb_cm_disconnected(struct vb_cm *cm, struct vb_cm_conn *conn, int status, uint64_t now);

/*
 * retry.c: tries of the message in conn->mad. The time that an MRA asks for is 4.096 us * 2^code.
 */
#define VB_CM_MRA_TIMEOUT \
	24u /* what this implementation asks for, as Linux does; the most it grants */
uint64_t vb_cm_mra_ns(uint8_t code);
void vb_cm_retry_start(struct vb_cm *cm, struct vb_cm_conn *conn, enum vb_cm_state state,
		       uint64_t now);
void vb_cm_retry_stop(struct vb_cm *cm, struct vb_cm_conn *conn);
/* The peer asks for time, once for each try. False: it did so too often. */
bool vb_cm_retry_stretch(struct vb_cm *cm, struct vb_cm_conn *conn, uint8_t service_timeout,
			 uint64_t now);
/* In REJ_SENT: some tries at the distance of the first ones. */
void vb_cm_retry_unasked(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now);
void vb_cm_retry_expired(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now);

/* send.c: messages of a connection. */
void vb_cm_send_again(struct vb_cm *cm, struct vb_cm_conn *conn);
void vb_cm_send_rtu(struct vb_cm *cm, struct vb_cm_conn *conn);
void vb_cm_send_mra(struct vb_cm *cm, struct vb_cm_conn *conn, uint8_t answered);
void vb_cm_send_drep(struct vb_cm *cm, struct vb_cm_conn *conn);
/* Writes the message to conn->mad and begins its tries. */
void vb_cm_send_dreq(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now);
/* Writes REJ to conn->mad and sends it. REJ of reason 4 has the own GUID as information. */
void vb_cm_send_rej(struct vb_cm *cm, struct vb_cm_conn *conn, uint16_t reason, const void *data,
		    unsigned int length);
void vb_cm_send_sidr_rep(struct vb_cm *cm, struct vb_cm_conn *conn,
			 const struct vb_cm_sidr_reply *how);
/* What vb_cm_release() would send first. The connection stays as it is. */
void vb_cm_send_last_word(struct vb_cm *cm, const struct vb_cm_conn *conn);
/* Answers without a connection. */
void vb_cm_answer_rej(struct vb_cm *cm, const struct vb_cm_arrival *a, uint16_t reason,
		      const void *info, unsigned int info_length);
void vb_cm_answer_drep(struct vb_cm *cm, const struct vb_cm_arrival *a);
/*
 * Asks the sender of the request whether it is where its address says: a DREQ for no connection, to
 * which every connection manager answers with a DREP of the same transaction (IBA 12.6.10).
 */
void vb_cm_send_question(struct vb_cm *cm, const struct vb_cm_arrival *a, uint64_t tid);
void vb_cm_answer_sidr(struct vb_cm *cm, const struct vb_cm_arrival *a, uint8_t status);

/* listen.c */
/* Some listener of the service id; NULL: none. */
struct vb_cm_listener *vb_cm_listener_any(struct vb_cm *cm, uint64_t service_id, bool sidr);
/* The one that takes the request; NULL: none. */
struct vb_cm_listener *vb_cm_listener_find(struct vb_cm *cm, uint64_t service_id, uint8_t service,
					   const uint8_t destination[16], uint32_t scope);
/* Whether one more request may wait for the program; `spare` as vb_cm_with_spare() has it. */
bool vb_cm_listener_room(const struct vb_cm *cm, const struct vb_cm_listener *listener,
			 unsigned int spare);
void vb_cm_unread_add(struct vb_cm *cm, struct vb_cm_listener *listener, struct vb_cm_conn *conn);
void vb_cm_unread_remove(struct vb_cm *cm, struct vb_cm_conn *conn);

/*
 * waiting.c. Whether one more request of the sender has room. If not, it is dropped and noted, and a
 * sender that is not known is asked a question (vb_cm_send_question()).
 */
enum vb_cm_room {
	VB_CM_ROOM_NONE,
	VB_CM_ROOM_LATER, /* in the backlog: vb_cm_later_add() */
	VB_CM_ROOM_NOW,   /* the program is told */
};
enum vb_cm_room vb_cm_request_room(struct vb_cm *cm, const struct vb_cm_listener *listener,
				   const struct vb_cm_arrival *a);
/* The program is told of the request when others have gone on: it belongs to the core until then. */
void vb_cm_later_add(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a);
/* Tells of as many as there is room for. */
void vb_cm_later_tell(struct vb_cm *cm, uint64_t now);
/* request.c: tells the program of the request; without memory it is forgotten. */
void vb_cm_request_tell(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a,
			const struct vb_cm_address *address);
/* The request waits for the program, or the response that was sent for the peer; no longer. */
void vb_cm_wait_begin(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now);
void vb_cm_wait_end(struct vb_cm *cm, struct vb_cm_conn *conn);
/* The sender has repeated what was sent to its address: it is known from now on. */
void vb_cm_sender_known(struct vb_cm *cm, const struct vb_cm_path *path, uint64_t now);
/* The number in place of a connection's in questions; no connection has it. */
uint32_t vb_cm_question_id(const struct vb_cm *cm);
/* A DREP: whether it answers a question to its sender, which is known then. */
bool vb_cm_question_answered(struct vb_cm *cm, const struct vb_cm_arrival *a);
/* Whether requests have found no room lately. */
static inline bool vb_cm_is_pressed(const struct vb_cm *cm, uint64_t now)
{
	return now < cm->senders.pressed_until;
}
/* A bound, and `spare` times a quarter more. */
static inline unsigned int vb_cm_with_spare(unsigned int most, unsigned int spare)
{
	return most + spare * (most / 4 + 1);
}

/* What arrives: request.c, response.c, sidr.c. */
void vb_cm_request_arrived(struct vb_cm *cm, const struct vb_cm_arrival *a);
void vb_cm_sidr_arrived(struct vb_cm *cm, const struct vb_cm_arrival *a);
/* The connection has found out that its queue pair's peer is another connection's now. */
void vb_cm_stale(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now);

/*
 * Whether the request says of itself that it comes from where its packet comes from. Programs let
 * peers in by that address.
 */
static inline bool vb_cm_address_is_senders(const struct vb_cm_arrival *a,
					    const struct vb_cm_address *address)
{
	return !__builtin_memcmp(address->source, a->path->dgid, sizeof(address->source));
}

static inline void vb_cm_drop(struct vb_cm *cm, enum vb_reason reason,
			      const struct vb_cm_arrival *a)
{
	cm->env->drop(cm, reason, a->path, a->mad);
}

#endif
