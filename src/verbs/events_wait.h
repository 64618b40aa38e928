/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Acknowledgements: what ibv_ack_*(3) counts and ibv_destroy_*(3) waits for.
 */
#ifndef VB_VERBS_EVENTS_WAIT_H
#define VB_VERBS_EVENTS_WAIT_H

#include <pthread.h>
#include <stdint.h>

/* The pair of counters of one kind of event; they live in the public object. */
struct vb_acks {
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
	uint32_t *completed;
};

/* n more events were acknowledged; wakes a thread that destroys the object. Any thread. */
void vb_acks_add(struct vb_acks acks, uint32_t n);

/*
 * Returns when at least got events were acknowledged; counters wrap. The object must be retired,
 * so that got is final. Holds no lock but *acks.mutex, which an acknowledging thread needs.
 */
void vb_acks_wait(struct vb_acks acks, uint32_t got);

#endif
