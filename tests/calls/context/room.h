/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The objects among which a call is made that asks the system for something. */
#ifndef TESTS_CALLS_CONTEXT_ROOM_H
#define TESTS_CALLS_CONTEXT_ROOM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <infiniband/verbs.h>

#define ROOM_BYTES 8192
#define ROOM_ALL_ACCESS                                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* What there is when a call is made. Whatever is NULL was not needed. */
struct room {
	struct ibv_device **list;
	struct ibv_context *ctx, *view; /* view: an import of ctx */
	struct ibv_pd *pd, *view_pd;
	struct ibv_td *td;
	struct ibv_pd *parent; /* of td */
	struct ibv_cq *cq;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	struct ibv_wq *wq[2];
	struct ibv_rwq_ind_table *table;
	struct ibv_qp *qp, *far; /* far: connected with qp, on far_cq */
	struct ibv_cq *far_cq;
	struct ibv_dm *dm;
	struct ibv_buf *buf;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	void *memory;
	int fd;     /* a file, or 0 */
	pid_t peer; /* a process that holds objects of its own, or 0 */
	int peer_socket;
	uint32_t peer_number; /* the handle or the number of its object */
	void *made;
	int made_fd;
};

extern uint8_t room_memory[ROOM_BYTES];

/* Each makes what its name says. False: not to be had here. */
bool room_nothing(struct room *room);
bool room_with_list(struct room *room);
bool room_with_context(struct room *room);
bool room_with_td(struct room *room);
bool room_with_parent(struct room *room);
bool room_with_cq(struct room *room);
bool room_with_xrcd(struct room *room);
bool room_with_file(struct room *room);
bool room_with_shared_xrcd(struct room *room);
bool room_with_cq_of_loopback(struct room *room);
bool room_with_receiver(struct room *room);
bool room_with_shared_receiver(struct room *room);
bool room_with_rc_init(struct room *room);
bool room_with_ud(struct room *room);
bool room_with_raw(struct room *room);
bool room_with_wqs(struct room *room);
bool room_with_table(struct room *room);
bool room_with_tag_srq(struct room *room);
bool room_with_dm(struct room *room);
bool room_with_buf(struct room *room);
bool room_with_two_rc(struct room *room);
bool room_with_view_of_peer(struct room *room);
bool room_with_memory_of_peer(struct room *room);
bool room_with_receiver_of_peer(struct room *room);
bool room_with_raw_of_ethernet(struct room *room);
bool room_with_view(struct room *room);
bool room_with_spare_descriptor(struct room *room);
bool room_with_srq(struct room *room);

struct ibv_qp *room_qp_make(struct room *room, enum ibv_qp_type type);
struct ibv_qp *room_qp_make_ex(struct room *room);
int room_to_init(struct room *room);
int room_to_reset(struct room *room);
struct ibv_wq *room_wq_make(struct room *room);
struct ibv_rwq_ind_table *room_table_make(struct room *room);

/* Connects qp and far anew. False with errno. */
bool room_connect(struct room *room);
struct ibv_xrcd *room_xrcd_open(struct room *room, int fd);
void room_peer_end(struct room *room);

/* Notes what a verb gave: 0, or its errno. */
int room_made(struct room *room, void *object);
/* Gives everything back that the above got; a refusal is a failed check. */
void room_leave(struct room *room);

#endif
