/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The atomic lock: whoever does a remote atomic on a process's memory, by whatever path, holds that process's lock around its
 * read-modify-write. It is the one object here that several processes write, hence a memfd of its own; robust, so that a holder
 * that dies releases it (pthread_mutexattr_setrobust(3)). A dead holder leaves an aligned word either changed or not.
 */
#include <errno.h>
#include <time.h>

#include "host/private.h"
#include "host/shared.h"

#define LOCK_BYTES       4096u
#define LOCK_SPINS       200
/* A holder that does not run for so long was stopped; its atomics are declined rather than waited for. */
#define LOCK_PATIENCE_NS (20 * VB_MSEC)

struct vb_atomic_lock {
	pthread_mutex_t mutex;
};

int vb_atomic_lock_create(struct vb_atomic_lock **out, int *fd)
{
	pthread_mutexattr_t attr;
	void *map;
	int err = vb_shared_create_common("verbatim-atomic", LOCK_BYTES, &map, fd);

	if (err)
		return err;
	struct vb_atomic_lock *lock = map;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	err = -pthread_mutex_init(&lock->mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	*out = lock;
	return err;
}

int vb_atomic_lock_map(int fd, struct vb_atomic_lock **lock, const char **defect)
{
	void *map;
	int err = vb_shared_map(fd, LOCK_BYTES, true, &map, defect);

	if (!err)
		*lock = map;
	return err;
}

void vb_atomic_lock_unmap(struct vb_atomic_lock *lock)
{
	vb_shared_unmap(lock, LOCK_BYTES);
}

static int settle(struct vb_atomic_lock *lock, int err)
{
	if (err == EOWNERDEAD) {
		pthread_mutex_consistent(&lock->mutex);
		err = 0;
	}
	return -err;
}

int vb_atomic_lock_take(struct vb_atomic_lock *lock)
{
	struct timespec until;
	int err;

	for (int i = 0; i < LOCK_SPINS; i++) {
		err = pthread_mutex_trylock(&lock->mutex);
		if (err != EBUSY)
			return settle(lock, err);
		vb_cpu_relax();
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOCK_PATIENCE_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	err = pthread_mutex_clocklock(&lock->mutex, CLOCK_MONOTONIC, &until);
	return err == ETIMEDOUT ? -EAGAIN : settle(lock, err);
}

void vb_atomic_lock_release(struct vb_atomic_lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
}

void vb_node_atomic_lock(struct vb_node *node)
{
	/* Nobody else can judge a request for our own memory: wait for as long as it takes. */
	while (vb_atomic_lock_take(node->self->atomic_lock) == -EAGAIN)
		;
}

void vb_node_atomic_unlock(struct vb_node *node)
{
	vb_atomic_lock_release(node->self->atomic_lock);
}
