/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The list of those who sleep. */
#include "rsocket/bell.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/lock.h"
#include "base/sys.h"

enum { HIGH = 512 };

static struct vb_lock lock = VB_LOCK_AT(VB_ORDER_RS_BELL);
static struct vb_rs_bell *holders;
static uint32_t holding; /* their number; read without the lock */
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static uint32_t generation; /* of forks */

/* The descriptor of one thread. */
struct own {
	int fd;
	uint32_t generation;
	dev_t device;
	ino_t inode;
};

static __thread struct own *own __attribute__((tls_model("initial-exec")));

int vb_rs_fd_move_up(int fd)
{
	struct rlimit limit;
	int from = HIGH;
	int high;

	if (fd < 0 || fd >= HIGH)
		return fd;
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < 2 * HIGH)
		from = (int)limit.rlim_cur / 2;
	high = fcntl(fd, F_DUPFD_CLOEXEC, from);
	if (high < 0)
		return fd;
	vb_sys_close(fd);
	return high;
}

/* A program may have closed the number and got it for a file of its own. */
static bool is_still_ours(const struct own *o)
{
	struct stat st;

	return o->generation == generation && !fstat(o->fd, &st) && st.st_dev == o->device &&
	       st.st_ino == o->inode;
}

static void thread_ends(void *arg)
{
	struct own *o = arg;

	if (is_still_ours(o))
		vb_sys_close(o->fd);
	free(o);
}

static void make_key(void)
{
	pthread_key_create(&key, thread_ends);
}

static int own_fd(void)
{
	struct stat st;
	int fd;

	if (own && is_still_ours(own))
		return own->fd;
	if (!own) {
		pthread_once(&key_once, make_key);
		own = calloc(1, sizeof(*own));
		if (!own)
			return -ENOMEM;
		pthread_setspecific(key, own);
	}
	own->fd = -1;
	fd = vb_rs_fd_move_up(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (fd < 0 || fstat(fd, &st))
		return -errno;
	*own = (struct own){fd, generation, st.st_dev, st.st_ino};
	return fd;
}

int vb_rs_bell_hold(struct vb_rs_bell *bell)
{
	int fd = own_fd();

	bell->fd = fd < 0 ? -1 : fd;
	bell->rung = false;
	vb_lock_take(&lock);
	bell->next = holders;
	bell->at = &holders;
	if (holders)
		holders->at = &bell->next;
	holders = bell;
	/* Whoever changes something from now on sees this, or its change is seen by the next look. */
	__atomic_store_n(&holding, holding + 1, __ATOMIC_SEQ_CST);
	vb_lock_release(&lock);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return fd < 0 ? fd : 0;
}

void vb_rs_bell_leave(struct vb_rs_bell *bell)
{
	bool rung;
	uint64_t n;

	vb_lock_take(&lock);
	*bell->at = bell->next;
	if (bell->next)
		bell->next->at = bell->at;
	__atomic_store_n(&holding, holding - 1, __ATOMIC_RELAXED);
	rung = bell->rung;
	vb_lock_release(&lock);
	if (rung && bell->fd >= 0)
		(void)!vb_sys_read(bell->fd, &n, sizeof(n));
}

void vb_rs_bell_ring(void)
{
	const uint64_t one = 1;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&holding, __ATOMIC_SEQ_CST))
		return;
	vb_lock_take(&lock);
	for (struct vb_rs_bell *b = holders; b; b = b->next) {
		if (b->rung || b->fd < 0)
			continue;
		b->rung = true;
		(void)!vb_sys_write(b->fd, &one, sizeof(one));
	}
	vb_lock_release(&lock);
}

void vb_rs_bell_forked(void)
{
	lock = (struct vb_lock)VB_LOCK_AT(VB_ORDER_RS_BELL);
	holders = NULL;
	holding = 0;
	generation++;
}
