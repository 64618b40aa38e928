/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A stream of bytes over one RC queue pair: the buffers of both directions, the credits, the end of
 * each direction. Who connects the queue pair is somebody else's business: the connection manager's
 * for sockets, the test kit's for tests.
 *
 *	vb_stream_open(&s, context, pd, &sizes);
 *	vb_stream_qp_attr(&s, &attr);            ... create the queue pair, bring it to INIT ...
 *	vb_stream_attach(&s, qp);
 *	vb_stream_hello(&s, &mine);              ... exchange, connect ...
 *	vb_stream_begin(&s, &theirs);
 *
 * Then vb_stream_send() and vb_stream_receive() move what can be moved at once, and
 * vb_stream_progress() takes what has arrived. None of them waits.
 *
 * Three locks, each short: one for each direction, one for the completion queue and the control
 * messages ("poll"). A direction's lock is taken before the other one, and both directions never at
 * once. Between them numbers only grow: what a direction has used is counted by that direction, what
 * came back is counted by who polls, and the difference is what may be used.
 */
#ifndef VB_RSOCKET_STREAM_H
#define VB_RSOCKET_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <infiniband/verbs.h>

#include "base/lock.h"
#include "rsocket/message.h"

enum {
	VB_STREAM_QUEUE_MIN = 16,
	VB_STREAM_QUEUE_MAX = 0xfffe,
	VB_STREAM_BUFFER_MIN = 8192,
	VB_STREAM_CONTROLS = 4, /* requests of the send queue that are kept for control messages */
	VB_STREAM_LEAST = 2048, /* free bytes of the send buffer below which nothing is sent */
	VB_STREAM_MOST = 65536, /* bytes of one message */
	VB_STREAM_BATCH = 16,   /* completions that are taken at once */
	VB_STREAM_INLINE_MAX = 512,
};

struct vb_stream_sizes {
	uint16_t send_queue;
	uint16_t receive_queue;
	uint32_t inline_bytes;
	uint32_t send_buffer;
	uint32_t receive_buffer;
	uint32_t iomaps; /* that the peer may announce */
};

/* How a direction stands, and the whole. Only ever set, by any thread. */
enum vb_stream_end {
	VB_STREAM_NO_READ = 1 << 0,    /* shutdown(2) for reading, here */
	VB_STREAM_NO_WRITE = 1 << 1,   /* shutdown(2) for writing, here */
	VB_STREAM_PEER_WROTE = 1 << 2, /* the peer writes no more */
	VB_STREAM_PEER_LEFT = 1 << 3,  /* the peer is gone */
	VB_STREAM_BROKEN = 1 << 4,     /* a request failed; `error` says why */
};

/* What the sending direction has, under its lock. */
struct vb_stream_out {
	struct vb_lock lock;
	struct ibv_mr *mr;
	uint8_t *buffer;
	uint32_t size;
	uint32_t at;             /* where the next byte goes */
	uint32_t requests;       /* posted, without control messages */
	uint32_t signaled;       /* the number of the last one that completes in any case */
	uint64_t bytes;          /* of the buffer, taken by posted requests */
	uint16_t messages;       /* sent that need a credit */
	uint32_t entries;        /* of the target area, used or in use; the peer has two */
	uint32_t chunk;          /* length of the last message, for one call */
	struct vb_rs_sge target; /* what is left of the entry in use; length 0: none */
};

/* What came back for the sending direction: written under the poll lock, read with the other. */
struct vb_stream_returned {
	uint32_t requests; /* done: up to the latest that is known to be */
	uint64_t bytes;
	uint16_t limit;   /* of messages */
	uint32_t entries; /* announced by the peer */
	struct vb_rs_sge sge[VB_RS_SGES];
};

/* What the receiving direction has, under its lock. */
struct vb_stream_in {
	struct vb_lock lock;
	struct ibv_mr *mr;
	uint8_t *buffer; /* the target area follows it */
	uint32_t size;
	uint32_t head;     /* in `lengths`: the oldest message */
	uint32_t taken;    /* bytes of the oldest message that were read */
	uint64_t bytes;    /* read */
	uint16_t messages; /* read to their end: their credits may be given back; read by others */
};

/* What arrived for it: written under the poll lock. */
struct vb_stream_arrived {
	uint32_t *lengths; /* of messages, a circle of receive_queue + 1 */
	uint32_t tail;
	uint64_t bytes;
	uint16_t messages; /* without data, whose credits may be given back, too */
	uint16_t given;    /* of both, when credits were given last */
	uint64_t halves;   /* of the buffer, announced to the peer */
};

struct vb_stream_iomaps; /* iomap.c */

struct vb_stream {
	struct vb_stream_sizes sizes;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_pd *pd;
	bool begun;
	bool peer_swapped; /* the peer has the other byte order */
	struct vb_rs_hello peer;
	uint32_t ends; /* enum vb_stream_end, atomic */
	int error;     /* a negative errno, atomic; the first one */

	struct vb_stream_out out __attribute__((aligned(64)));
	struct vb_stream_in in __attribute__((aligned(64)));

	struct vb_lock poll __attribute__((aligned(64)));
	struct vb_stream_returned returned;
	struct vb_stream_arrived arrived;
	uint32_t controls;      /* control messages posted; read by others */
	uint32_t controls_done; /* and completed; read by others */
	uint32_t wanted;   /* and waiting for a place, bits of enum vb_rs_ctrl; read by others */
	bool armed;        /* the completion queue */
	uint32_t unacked;  /* events of the completion queue */
	uint32_t receives; /* to be posted again */
	struct ibv_recv_wr chain[VB_STREAM_BATCH];
	struct vb_stream_iomaps *iomaps;
};

/* Sizes within the limits of the protocol. */
void vb_stream_sizes_fit(struct vb_stream_sizes *sizes);

/* Makes queue, buffers and regions. On failure nothing is left. */
int vb_stream_open(struct vb_stream *s, struct ibv_context *context, struct ibv_pd *pd,
		   const struct vb_stream_sizes *sizes);
/* The queue pair must be gone. */
void vb_stream_close(struct vb_stream *s);

/* What the queue pair must be created with. */
void vb_stream_qp_attr(struct vb_stream *s, struct ibv_qp_init_attr *attr);
/* Takes the queue pair into use, and posts its receives. */
int vb_stream_attach(struct vb_stream *s, struct ibv_qp *qp);
/* What the peer must know. */
void vb_stream_hello(const struct vb_stream *s, struct vb_rs_hello *hello);
/* The connection is there: announces the second half of the buffer. */
int vb_stream_begin(struct vb_stream *s, const struct vb_rs_hello *peer);

/*
 * Sends what fits now of what follows the first `skip` bytes. Bytes taken; 0 for none asked; -EAGAIN;
 * -ECONNRESET after the end, the own or the peer's; the error that broke the stream.
 */
ssize_t vb_stream_send(struct vb_stream *s, const struct iovec *iov, int count, size_t skip);
/*
 * What has come, without waiting, behind the first `skip` bytes of the buffers. 0: the end. -EAGAIN;
 * the error that broke the stream.
 */
ssize_t vb_stream_receive(struct vb_stream *s, const struct iovec *iov, int count, size_t skip,
			  bool peek);

/* Takes completions, unless another thread is at it. Whether anything came. */
bool vb_stream_progress(struct vb_stream *s);

/* Whether a call would not have to wait: also at an end or an error. */
bool vb_stream_can_send(struct vb_stream *s);
bool vb_stream_can_receive(const struct vb_stream *s);
/*
 * Everything sent has been acknowledged, or never will be. To be asked after writing was shut down:
 * that the last few messages are done is known by the one that ends them.
 */
bool vb_stream_is_sent(const struct vb_stream *s);
/* Bytes that can be read now. */
size_t vb_stream_readable(const struct vb_stream *s);

/*
 * Before a thread sleeps until the channel's descriptor is readable: arms the completion queue and
 * looks once more. Whether something came.
 */
bool vb_stream_arm(struct vb_stream *s);
/* After it has slept: takes the event, if there is one, and completions. */
bool vb_stream_woken(struct vb_stream *s);

/* Ends directions, and tells the peer. `how` is one of shutdown(2). */
int vb_stream_shutdown(struct vb_stream *s, int how);
/* Notes that the connection is gone. */
void vb_stream_lost(struct vb_stream *s, int error);
/* One message that the peer does not see. */
void vb_stream_keepalive(struct vb_stream *s);

static inline uint32_t vb_stream_ends(const struct vb_stream *s)
{
	return __atomic_load_n(&s->ends, __ATOMIC_ACQUIRE);
}

#endif
