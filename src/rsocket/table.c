/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table: pages of slots, which stay once they are there. */
#include "rsocket/table.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/sys.h"
#include "rsocket/bell.h"
#include "rsocket/service.h"

enum { PAGE_BITS = 10, PAGE_SLOTS = 1 << PAGE_BITS, PAGES = 1024 };

struct slot {
	struct vb_rsocket *rs;
	uint32_t users;
};

static struct slot *pages[PAGES];
static uint32_t generation;
static uint64_t serials;

static struct slot *slot_of(int fd)
{
	struct slot *page;

	if (fd < 0 || fd >= PAGES * PAGE_SLOTS)
		return NULL;
	page = __atomic_load_n(&pages[fd >> PAGE_BITS], __ATOMIC_ACQUIRE);
	return page ? &page[fd & (PAGE_SLOTS - 1)] : NULL;
}

static struct slot *make_slot(int fd)
{
	struct slot *fresh, *now = NULL;

	if (fd < 0 || fd >= PAGES * PAGE_SLOTS || slot_of(fd))
		return slot_of(fd);
	fresh = calloc(PAGE_SLOTS, sizeof(*fresh));
	if (fresh && !__atomic_compare_exchange_n(&pages[fd >> PAGE_BITS], &now, fresh, false,
						  __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		free(fresh);
	return slot_of(fd);
}

struct vb_rsocket *vb_rs_get(int fd)
{
	struct slot *slot = slot_of(fd);
	struct vb_rsocket *rs;

	if (!slot || !__atomic_load_n(&slot->rs, __ATOMIC_RELAXED))
		return NULL;
	/* Counted first, looked at then: who takes it out does both in the other order. */
	__atomic_fetch_add(&slot->users, 1, __ATOMIC_SEQ_CST);
	rs = __atomic_load_n(&slot->rs, __ATOMIC_SEQ_CST);
	if (rs && rs->generation == generation)
		return rs;
	__atomic_fetch_sub(&slot->users, 1, __ATOMIC_RELEASE);
	return NULL;
}

void vb_rs_put(int fd)
{
	__atomic_fetch_sub(&slot_of(fd)->users, 1, __ATOMIC_RELEASE);
}

static void wait_for_users(struct slot *slot, unsigned int mine)
{
	for (int turn = 0; __atomic_load_n(&slot->users, __ATOMIC_ACQUIRE) > mine; turn++) {
		vb_rs_bell_ring();
		vb_lock_relax(turn);
	}
}

int vb_rs_enter(struct vb_rsocket *rs)
{
	struct slot *slot = make_slot(rs->fd);
	struct vb_rsocket *old;

	if (!slot)
		return rs->fd < PAGES * PAGE_SLOTS ? -ENOMEM : -EMFILE;
	rs->generation = generation;
	rs->serial = __atomic_add_fetch(&serials, 1, __ATOMIC_RELAXED);
	old = __atomic_exchange_n(&slot->rs, rs, __ATOMIC_SEQ_CST);
	/* The program closed the old one's descriptor. It is left alone: its number is not its own. */
	if (old)
		__atomic_store_n(&old->closing, true, __ATOMIC_RELEASE);
	return 0;
}

struct vb_rsocket *vb_rs_remove(int fd, unsigned int mine)
{
	struct slot *slot = slot_of(fd);
	struct vb_rsocket *rs;

	if (!slot)
		return NULL;
	rs = __atomic_exchange_n(&slot->rs, NULL, __ATOMIC_SEQ_CST);
	if (!rs)
		return NULL;
	__atomic_store_n(&rs->closing, true, __ATOMIC_SEQ_CST);
	wait_for_users(slot, mine);
	return rs;
}

bool vb_rs_forget(int fd)
{
	struct slot *slot = slot_of(fd);
	struct vb_rsocket *rs = slot ? slot->rs : NULL;

	if (!rs || rs->generation == generation)
		return false;
	/* What it had in memory is the parent's, too, and goes with the process. */
	slot->rs = NULL;
	vb_sys_close(fd);
	return true;
}

uint32_t vb_rs_generation(void)
{
	return generation;
}

static void forked(void)
{
	generation++;
	for (int p = 0; p < PAGES; p++) {
		for (int i = 0; pages[p] && i < PAGE_SLOTS; i++)
			pages[p][i].users = 0;
	}
	vb_rs_bell_forked();
	vb_rs_service_forked();
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked);
}
