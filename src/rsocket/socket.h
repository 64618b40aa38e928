/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A socket: its number, options, connection and data. The number is the descriptor of its event
 * channel (a stream) or of its UDP socket (datagrams).
 *
 * `mutex` guards the connection: the id, the state and what leads from one state to the next. It is
 * not held while a thread waits for a peer, and no lock of the stream is held when it is taken.
 * `state`, `flags` and `error` are read without it.
 */
#ifndef VB_RSOCKET_SOCKET_H
#define VB_RSOCKET_SOCKET_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <rdma/rdma_cma.h>

#include "rsocket/stream.h"

/* The library hides every symbol without this attribute. */
#define VB_EXPORT __attribute__((visibility("default")))

enum vb_rs_state {
	VB_RS_IDLE,
	VB_RS_BOUND,
	VB_RS_LISTENING,
	/* Under way. */
	VB_RS_RESOLVING_ADDRESS,
	VB_RS_RESOLVING_ROUTE,
	VB_RS_CONNECTING,
	VB_RS_ACCEPTING,
	/* There is a stream, perhaps one that has ended. */
	VB_RS_CONNECTED,
	VB_RS_FAILED,
};

struct vb_rs_options {
	struct vb_stream_sizes sizes;
	struct linger linger;
	uint32_t on; /* bits of enum vb_rs_switch */
	uint32_t keepalive_idle;
	uint32_t keepalive_interval;
	uint32_t keepalive_count;
	uint8_t tos;
	struct ibv_path_data *route;
	size_t route_size;
};

enum vb_rs_switch {
	VB_RS_REUSEADDR = 1 << 0,
	VB_RS_KEEPALIVE_ON = 1 << 1,
	VB_RS_OOBINLINE = 1 << 2,
	VB_RS_NODELAY = 1 << 3,
	VB_RS_V6ONLY = 1 << 4,
	VB_RS_BROADCAST = 1 << 5,
	VB_RS_TOS_SET = 1 << 6,
};

struct vb_rs_backlog;
struct vb_datagram;

struct vb_rsocket {
	int fd;
	int family;
	int type;
	uint32_t generation; /* of forks */
	uint64_t serial;     /* no other socket of the process has it */
	uint32_t flags;      /* O_NONBLOCK */
	uint32_t fd_flags;   /* FD_CLOEXEC */
	uint32_t state;      /* enum vb_rs_state */
	int error;           /* a negative errno, until SO_ERROR reads it */
	bool closing;
	uint32_t sleepers;   /* threads that wait for this stream's completion queue */
	uint64_t probe_at;   /* ns; when a silent peer is asked for a sign of life; 0: not yet */
	uint64_t probe_seen; /* bytes that had come when that was set */
	uint32_t write_full; /* how often a write found no room: edges of repoll_wait() */

	struct vb_stream stream;

	pthread_mutex_t mutex;
	struct vb_rs_options options;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct sockaddr_storage peer; /* of rconnect() */
	int attempts;
	int timeout_ms;
	bool has_stream;
	bool serviced;                 /* the service thread takes its events */
	struct vb_rs_backlog *backlog; /* of a listener, and of a child that is not accepted yet */
	struct vb_rsocket *next;       /* in the backlog */
	bool orphan;                   /* a child whose listener was closed before */
	uint64_t keepalive_at;         /* ns; 0: none. Of the service thread */
	struct vb_datagram *datagram;
};

/* A negative errno becomes -1 with errno. */
ssize_t vb_rs_answer(ssize_t result);

/* Making and ending. */
struct vb_rsocket *vb_rs_alloc(int family, int type);
void vb_rs_free(struct vb_rsocket *rs);
/* An event channel for it, whose descriptor is its number. */
int vb_rs_open_channel(struct vb_rsocket *rs);
int vb_rs_open_stream(struct vb_rsocket *rs, uint8_t hello[VB_RS_HELLO_SIZE]);

static inline enum vb_rs_state vb_rs_state(const struct vb_rsocket *rs)
{
	return (enum vb_rs_state)__atomic_load_n(&rs->state, __ATOMIC_ACQUIRE);
}

static inline void vb_rs_set_state(struct vb_rsocket *rs, enum vb_rs_state state)
{
	__atomic_store_n(&rs->state, (uint32_t)state, __ATOMIC_RELEASE);
}

static inline bool vb_rs_is_opening(const struct vb_rsocket *rs)
{
	enum vb_rs_state state = vb_rs_state(rs);

	return state >= VB_RS_RESOLVING_ADDRESS && state <= VB_RS_ACCEPTING;
}

static inline bool vb_rs_is_closing(const struct vb_rsocket *rs)
{
	return __atomic_load_n(&rs->closing, __ATOMIC_ACQUIRE);
}

bool vb_rs_is_nonblocking(const struct vb_rsocket *rs, int flags);

/* The connection has failed. */
void vb_rs_fail(struct vb_rsocket *rs, int error);

#endif
