/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The lock of a table that processes share (commons.h): robust, and with a bound on waiting for a
 * holder that stands still.
 */
#ifndef VB_HOST_COMMONS_LOCK_H
#define VB_HOST_COMMONS_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_commons_mutex {
	pthread_mutex_t mutex;
};

/* In shared memory that no other process has yet. -errno. */
int vb_commons_mutex_init(struct vb_commons_mutex *m);
/* Waits some microseconds at most: long enough for a holder that runs. */
bool vb_commons_mutex_try(struct vb_commons_mutex *m);
/* For a call of the program that holds no other lock: gives up after `patience` ns. */
bool vb_commons_mutex_take(struct vb_commons_mutex *m, int64_t patience);
void vb_commons_mutex_release(struct vb_commons_mutex *m);

#endif
