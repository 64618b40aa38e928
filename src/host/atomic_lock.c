/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The atomic lock: whoever does a remote atomic on a process's memory, by whatever path, holds that process's lock around its
 * read-modify-write. It is the one object here that several processes write, hence a memfd of its own; robust, so that a holder
 * that dies releases it (pthread_mutexattr_setrobust(3)). A dead holder leaves an aligned word either changed or not.
 */
#include <errno.h>
#include <sched.h>
#include <time.h>

#include "base/sys.h"
#include "host/private.h"
#include "host/shared.h"

#define LOCK_BYTES  4096u
#define LOCK_SPINS  200
#define LOCK_YIELDS 200
/* A holder that does not run for some 100 ms was stopped; atomics are declined rather than made to wait for it. */
#define LOCK_NAPS   1000
#define LOCK_NAP_NS 50000

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

/* 0, -EBUSY, or -ENOTRECOVERABLE. */
static int try_lock(struct vb_atomic_lock *lock)
{
	int err = pthread_mutex_trylock(&lock->mutex);

	if (err == EOWNERDEAD) {
		pthread_mutex_consistent(&lock->mutex);
		err = 0;
	}
	return -err;
}

/* The lock is held for a microsecond, so waiting means to look again; only a holder without a core makes it longer. */
int vb_atomic_lock_take(struct vb_atomic_lock *lock)
{
	struct timespec nap = {0, LOCK_NAP_NS};
	int err = try_lock(lock);

	for (int i = 0; err == -EBUSY && i < LOCK_SPINS; i++) {
		vb_cpu_relax();
		err = try_lock(lock);
	}
	for (int i = 0; err == -EBUSY && i < LOCK_YIELDS; i++) {
		sched_yield();
		err = try_lock(lock);
	}
	for (int i = 0; err == -EBUSY && i < LOCK_NAPS; i++) {
		vb_sys_nanosleep(&nap);
		err = try_lock(lock);
	}
	return err == -EBUSY ? -EAGAIN : err;
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
