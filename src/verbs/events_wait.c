/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counting acknowledgements and waiting for them. */
#include "verbs/events_wait.h"

void vb_acks_add(struct vb_acks acks, uint32_t n)
{
	pthread_mutex_lock(acks.mutex);
	*acks.completed += n;
	pthread_cond_broadcast(acks.cond);
	pthread_mutex_unlock(acks.mutex);
}

void vb_acks_wait(struct vb_acks acks, uint32_t got)
{
	int state;

	/* The object is half destroyed: a cancelled thread goes on until it is gone. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(acks.mutex);
	while ((int32_t)(got - *acks.completed) > 0)
		pthread_cond_wait(acks.cond, acks.mutex);
	pthread_mutex_unlock(acks.mutex);
	pthread_setcancelstate(state, NULL);
}
