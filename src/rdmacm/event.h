/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Events. Each is an allocation of its own that the program holds from rdma_get_cm_event(3) to
 * rdma_ack_cm_event(3), and is listed by the id that it counts against: the listening id for
 * CONNECT_REQUEST, its own id else.
 *
 * Everything asynchronous ends in vb_cma_event_post(). It may be called from any thread, and calls
 * nothing of the program.
 */
#ifndef VB_RDMACM_EVENT_H
#define VB_RDMACM_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

#include "object/event_queue.h"

#define VB_CMA_PRIVATE_BYTES 256u

struct vb_cma_group;
struct vb_cma_id;

struct vb_cma_event {
	struct rdma_cm_event pub;
	struct vb_event_node node; /* in the queue of the channel */
	uint32_t taken;            /* 1: rdma_get_cm_event() has it; written by the queue */
	struct vb_cma_id *counted;
	struct vb_cma_event *next, **place; /* of counted's events, under its lock */
	uint8_t private_data[VB_CMA_PRIVATE_BYTES];
	/*
	 * Runs in rdma_get_cm_event() before the program has the event, in the program's thread and
	 * without a lock: what has to wait for the program to look. False: the event is for nobody,
	 * and is acknowledged at once. NULL: nothing to do.
	 */
	bool (*arrive)(struct vb_cma_event *event);
	struct vb_cma_group *group; /* MULTICAST_JOIN: multicast_join.c */
};

static inline struct vb_cma_event *vb_cma_event_of(struct rdma_cm_event *event)
{
	return (struct vb_cma_event *)(void *)event;
}

/* An event about `id`, all zero beside; NULL: no memory. */
struct vb_cma_event *vb_cma_event_alloc(struct vb_cma_id *id, enum rdma_cm_event_type type,
					int status);

/*
 * Events that must not be lost for want of memory, because a program waits for them, are reserved
 * before: DEVICE_REMOVAL with the id, and what can come of a connection with the call that begins
 * it. Sees to it that there are as many. -ENOMEM. No lock is held.
 */
#define VB_CMA_EVENTS_OF_ID 1u
#define VB_CMA_EVENTS_OF_CONNECTION \
	(VB_CMA_EVENTS_OF_ID + 3u) /* its outcome, its end, TIMEWAIT_EXIT */
int vb_cma_event_reserve(struct vb_cma_id *id, unsigned int count);
void vb_cma_event_unreserve(struct vb_cma_id *id);
/* As vb_cma_event_alloc(), with the id's lock; takes one of the reserve where there is no memory. */
struct vb_cma_event *vb_cma_event_take_locked(struct vb_cma_id *id, enum rdma_cm_event_type type,
					      int status);

/*
 * Queues the event; it belongs to the program from now on. The caller holds counted's lock, or
 * calls vb_cma_event_post(), which takes it.
 */
void vb_cma_event_post_locked(struct vb_cma_id *counted, struct vb_cma_event *event);
void vb_cma_event_post(struct vb_cma_id *counted, struct vb_cma_event *event);

/*
 * Takes the id's unread events off its channel and returns them, linked by `next`. Those that the
 * program has stay listed.
 */
struct vb_cma_event *vb_cma_event_withdraw(struct vb_cma_id *id);

/* Whether the id has an event that the program has not read. */
bool vb_cma_event_waits(struct vb_cma_id *id);

/* Returns when the program has acknowledged every event of the id that it has. No lock is held. */
void vb_cma_event_wait_acks(struct vb_cma_id *id);

/*
 * Drops the unread events of a group, and returns when those that the program has are acknowledged.
 */
void vb_cma_event_forget_group(struct vb_cma_id *id, const struct vb_cma_group *group);

void vb_cma_event_ack(struct vb_cma_event *event);

#endif
