/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Work queue entries: post_send and post_recv store them; the requester and the responder work on
 * them.
 *
 * Entries are in memory private to the process, in a ring of fixed stride that the device
 * allocates. Scatter/gather elements, or inline data in their place, follow the entry.
 */
#ifndef VB_TRANSPORT_WQE_H
#define VB_TRANSPORT_WQE_H

#include <assert.h>
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "transport/run.h"

/* What every operation has is in the first cache line, which vb_send_wqe_clear() clears. */
struct vb_send_wqe {
	uint64_t wr_id;
	uint64_t length;      /* sum of the elements, or inline bytes; up to 2^31 */
	uint64_t remote_addr; /* WRITE, READ, ATOMIC; BIND_MW: start of the window */
	uint32_t rkey;        /* BIND_MW: the window's new key */
	union {
		uint32_t imm;            /* immediate, big endian */
		uint32_t invalidate_key; /* SEND_WITH_INV, LOCAL_INV */
		uint32_t region_key;     /* BIND_MW */
	};
	uint32_t num_sge;    /* 0 for inline data */
	uint32_t srqn;       /* XRC: the peer's shared receive queue */
	uint32_t remote_qpn; /* UD */
	/* Members of the requester. */
	uint32_t first_psn;
	/* Packets of the request (READ: of the response); 0 before it is started. */
	uint32_t num_psn;
	uint16_t reason; /* enum vb_reason of `error` */
	/* Set by the device at post: complete with this enum ibv_wc_status, send nothing. */
	uint8_t error;
	uint8_t opcode; /* enum ibv_wr_opcode */
	uint8_t is_inline;
	uint8_t signaled; /* sq_sig_all or IBV_SEND_SIGNALED */
	uint8_t solicited;
	uint8_t fence;
	uint8_t ip_csum; /* IBV_SEND_IP_CSUM: checksums of frames are filled in on sending */
	/* By operation: ATOMIC, BIND_MW, FLUSH. */
	union {
		uint64_t compare_add;
		uint64_t window_length;
		uint64_t flush_length;
	};
	union {
		uint64_t swap;
		uint64_t window_rights; /* rights and the kind of bind (memory/mw.h) */
		uint64_t feth;
	};
	/* UD */
	uint32_t remote_qkey;
	uint32_t peer_hint; /* set by the device: which link reaches the destination */
	struct vb_path path;
	uint64_t done;  /* direct access: bytes copied so far */
	uint64_t owner; /* set by the device: 0 for a request of the program, else the owner's */

	/* Then struct ibv_sge sge[num_sge] or the inline bytes. */
};

#define VB_SEND_WQE_CLEARED 64u /* bytes */

static_assert(offsetof(struct vb_send_wqe, ip_csum) < VB_SEND_WQE_CLEARED &&
		      offsetof(struct vb_send_wqe, compare_add) == VB_SEND_WQE_CLEARED,
	      "what every operation has is one cache line");

/* The members up to ip_csum, and those of the device, become 0. */
static inline void vb_send_wqe_clear(struct vb_send_wqe *w)
{
	memset(w, 0, VB_SEND_WQE_CLEARED);
	w->done = w->owner = 0;
}

static inline struct ibv_sge *vb_send_wqe_sge(struct vb_send_wqe *w)
{
	return (struct ibv_sge *)(void *)(w + 1);
}

static inline void *vb_send_wqe_inline(struct vb_send_wqe *w)
{
	return w + 1;
}

struct vb_recv_wqe {
	uint64_t wr_id;
	uint64_t length; /* sum of the elements */
	uint32_t num_sge;
	uint32_t index; /* of a shared queue, while it is taken: where it lies there */
			/* then struct ibv_sge sge[num_sge] */
};

/* The elements that an entry has room for where `asked` are asked for: never none. */
static inline uint32_t vb_recv_wqe_room(uint32_t asked)
{
	return asked ? asked : 1;
}

static inline uint32_t vb_recv_wqe_stride(uint32_t max_sge)
{
	return (uint32_t)(sizeof(struct vb_recv_wqe) + max_sge * sizeof(struct ibv_sge));
}

static inline struct ibv_sge *vb_recv_wqe_sge(struct vb_recv_wqe *w)
{
	return (struct ibv_sge *)(void *)(w + 1);
}

/*
 * Copies the elements of a request, and returns the sum of their lengths. Each member is loaded by
 * itself, as a program stores it: a load of two members that were stored just now waits until both
 * stores have left the processor's buffer.
 */
static inline uint64_t vb_sge_copy(struct ibv_sge *to, const struct ibv_sge *from, uint32_t count)
{
	uint64_t length = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t part = __atomic_load_n(&from[i].length, __ATOMIC_RELAXED);

		to[i].addr = from[i].addr;
		to[i].length = part;
		to[i].lkey = from[i].lkey;
		length += part;
	}
	return length;
}

/* Stores a posted receive; the caller has checked num_sge against the queue's. */
static inline void vb_recv_wqe_fill(struct vb_recv_wqe *w, const struct ibv_recv_wr *wr)
{
	w->wr_id = wr->wr_id;
	w->num_sge = (uint32_t)wr->num_sge;
	w->length = vb_sge_copy(vb_recv_wqe_sge(w), wr->sg_list, w->num_sge);
}

#endif
