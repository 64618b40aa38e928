/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The lock of a shared table. A holder that dies releases it (pthread_mutexattr_setrobust(3)). A
 * holder that is stopped keeps it, so a waiting thread looks again until the caller's time is over.
 */
#include "host/commons_lock.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

#include "base/sys.h"
#include "base/pause.h"
#include "host/private.h"

#define SPINS  200
#define YIELDS 50
#define NAP_NS 50000

int vb_commons_mutex_init(struct vb_commons_mutex *m)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	int err = -pthread_mutex_init(&m->mutex, &attr);

	pthread_mutexattr_destroy(&attr);
	return err;
}

/*
 * 0, EBUSY, or ENOTRECOVERABLE, which does not arise: a thread that finds a dead holder makes the
 * lock consistent.
 */
static int try_once(struct vb_commons_mutex *m)
{
	int err = pthread_mutex_trylock(&m->mutex);

	if (err == EOWNERDEAD) {
		pthread_mutex_consistent(&m->mutex);
		err = 0;
	}
	return err;
}

bool vb_commons_mutex_try(struct vb_commons_mutex *m)
{
	int err = try_once(m);

	for (int i = 0; err == EBUSY && i < SPINS; i++) {
		vb_pause();
		err = try_once(m);
	}
	for (int i = 0; err == EBUSY && i < YIELDS; i++) {
		sched_yield();
		err = try_once(m);
	}
	return !err;
}

bool vb_commons_mutex_take(struct vb_commons_mutex *m, int64_t patience)
{
	struct timespec nap = {0, NAP_NS};
	int64_t until = vb_node_clock() + patience;

	while (!vb_commons_mutex_try(m)) {
		if (vb_node_clock() > until)
			return false;
		vb_sys_nanosleep(&nap);
	}
	return true;
}

void vb_commons_mutex_release(struct vb_commons_mutex *m)
{
	pthread_mutex_unlock(&m->mutex);
}
