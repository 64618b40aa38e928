/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The target of a one-sided request: the peer's queue pair and key, as the peer publishes them, judged by the
 * initiator. Under the engine's lock.
 */
#ifndef VB_LOCAL_TARGET_H
#define VB_LOCAL_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "host/guard.h"
#include "host/page.h"
#include "transport/access.h"
#include "transport/wqe.h"

struct vb_peer;
struct vb_qp;

struct vb_target {
	struct vb_peer *peer;
	const struct vb_page_qp *qp;
	struct vb_key key; /* a copy of the peer's entry */
	uint64_t addr;     /* in the peer's address space */
	struct vb_guard guard;
};

/* The right that the operation needs of a key; and what it needs of the peer's queue pair. */
uint32_t vb_target_access(uint8_t opcode);
uint32_t vb_target_queue(uint8_t opcode);

/* Finds the peer and its entry of the queue pair. False: the request takes the ring. */
bool vb_target_contact(struct vb_qp *qp, struct vb_target *target);
/* Whether the peer's queue pair may be bypassed for a request that needs `need`. */
bool vb_target_qp_allows(const struct vb_qp *qp, const struct vb_page_qp *entry, uint32_t need);
/* Whether it may be once it has seen its first packet. */
bool vb_target_qp_opens(const struct vb_qp *qp, const struct vb_page_qp *entry);
/*
 * An engine has one mark. A request that would need two, for its target and for an imported region of this side, is
 * declined.
 */
bool vb_target_one_mark(const struct vb_qp *qp, const struct vb_send_wqe *wqe);

/*
 * Sets the mark, and judges the queue pair under it. From here on the guard holds what was judged. To be followed by
 * vb_target_leave(), whatever the answer.
 */
bool vb_target_enter(struct vb_qp *qp, struct vb_target *target, uint32_t rkey, uint32_t queue);
void vb_target_leave(struct vb_qp *qp);
/* Copies the key's entry, under the mark. False: the peer has no such key. */
bool vb_target_key(struct vb_target *target, uint32_t rkey);
/* Whether the copied key allows the range; target->addr gets its address. */
bool vb_target_range(struct vb_target *target, uint64_t va, uint64_t length, uint32_t need);

#endif
