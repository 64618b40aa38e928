/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A connection manager on a test stand: its environment records what is sent, reported and dropped,
 * and the test plays the peer.
 */
#ifndef TESTS_UNIT_CM_STAND_H
#define TESTS_UNIT_CM_STAND_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "cm/cm.h"

#define STAND_CONNS   1500u
#define STAND_RECORDS 4096u
#define STAND_SERVICE 0x01061c06u /* port 7174 of RDMA_PS_TCP */
#define STAND_UD      0x01111c06u
#define STAND_BASE    0x00540000u /* of the own communication ids */
#define STAND_PEER_ID 0x77000001u /* of the peer's first */
#define STAND_GUID    0x0200000000000001u
#define STAND_PEER    0x0200000000000002u
#define STAND_QPN     0x000111u
#define STAND_PEERQPN 0x000222u
#define STAND_IFINDEX 7u
#define SECOND        1000000000ull
#define MSEC          1000000ull

struct stand_event {
	struct vb_cm_conn *conn;
	struct vb_cm_event event; /* its pointers are not valid any more */
	struct vb_cm_path path;
	uint8_t private_data[256];
	uint8_t state; /* of the connection, at that moment */
};

struct stand {
	struct vb_cm cm;
	uint64_t now;
	struct vb_cm_message sent[STAND_RECORDS];
	struct vb_cm_path sent_by[STAND_RECORDS];
	uint64_t sent_at[STAND_RECORDS];
	unsigned int sents;
	struct stand_event event[STAND_RECORDS];
	unsigned int events;
	enum vb_reason drop[STAND_RECORDS];
	unsigned int drops;
	struct vb_cm_conn conns[STAND_CONNS];
	bool used[STAND_CONNS];
	unsigned int live, most;
	unsigned int published;
	unsigned int allowed; /* connections that there is memory for */
	bool refuse;          /* answer of event() to requests */
	uint32_t random;
	struct vb_cm_listener listener, datagrams;
	struct vb_cm_path path; /* to the peer, from here */
	uint32_t next_peer_id;
	uint32_t next_peer_qpn;
};

/* With a listener for connections and one for datagrams, on the wildcard of IPv4. */
struct stand *stand_new(void);
struct stand *stand_scaled(unsigned int scale);
/* Ends everything; fails if a connection is not freed then. */
void stand_free(struct stand *s);
/* Forgets what was recorded. */
void stand_clear(struct stand *s);

void stand_v4(uint8_t gid[16], uint8_t last);
void stand_v6(uint8_t gid[16], uint8_t last);

/* The peer sends. */
struct vb_cm_message stand_req(struct stand *s);
struct vb_cm_message stand_sidr_req(struct stand *s);
/* The sender that the private data of the request name. */
void stand_source(struct vb_cm_message *request, const uint8_t gid[16]);
/* A message that answers, or follows, in the name of the connection's peer. */
struct vb_cm_message stand_message(const struct stand *s, const struct vb_cm_conn *conn,
				   uint16_t attribute);
void stand_arrive(struct stand *s, const struct vb_cm_message *message);
void stand_arrive_from(struct stand *s, const struct vb_cm_path *path,
		       const struct vb_cm_message *message);

/* Calls with ordinary arguments. */
struct vb_cm_conn *stand_connect(struct stand *s);
int stand_accept(struct stand *s, struct vb_cm_conn *conn);
struct vb_cm_conn *stand_resolve(struct stand *s);
int stand_reply(struct stand *s, struct vb_cm_conn *conn);
void stand_release(struct stand *s, struct vb_cm_conn *conn);

/*
 * A connection in the state, of the active or of the passive side; what led there is forgotten.
 * NULL: that side has no such state.
 */
struct vb_cm_conn *stand_in(struct stand *s, enum vb_cm_state state, bool active);

/* Lets time pass; timers run at the moments that they ask for. */
void stand_pass(struct stand *s, uint64_t ns);

/* The last ones recorded; NULL: none. */
const struct vb_cm_message *stand_last(const struct stand *s);
const struct stand_event *stand_event(const struct stand *s);
unsigned int stand_count(const struct stand *s, uint16_t attribute);
unsigned int stand_dropped(const struct stand *s, enum vb_reason reason);

#endif
