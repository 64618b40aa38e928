/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory windows bound and invalidated by engines, and the table in which they are found by key. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "base/lock.h"
#include "memory/mw.h"
#include "process/process.h"
#include "host/peer.h"

#define TAG 0xffu

static struct vb_lock lock = VB_LOCK_AT(VB_ORDER_WINDOWS);
static struct vb_mw **window_at; /* index: slot of the key; NULL before the first window */

/* The window that a key names, whatever its tag. The caller holds the lock. */
static struct vb_mw *find(uint32_t key)
{
	struct vb_mw *m = window_at ? window_at[vb_key_slot(key)] : NULL;

	return m && !((m->key ^ key) & ~TAG) ? m : NULL;
}

static void link_to(struct vb_mw *m, struct vb_mw **list)
{
	m->list = list;
	m->prev = NULL;
	m->next = *list;
	if (m->next)
		m->next->prev = m;
	*list = m;
}

static void unlink_from(struct vb_mw *m)
{
	if (!m->list)
		return;
	if (m->prev)
		m->prev->next = m->next;
	else
		*m->list = m->next;
	if (m->next)
		m->next->prev = m->prev;
	m->list = NULL;
}

/* No new access begins from here on. The caller holds the lock. */
static void unbind(struct vb_mw *m)
{
	vb_key_withdraw(m->entry);
	if (m->region)
		m->region->windows--;
	m->region = NULL;
	unlink_from(m);
}

/*
 * Waits for accesses that have begun. Initiators in other processes, and engines of this process
 * that serve a window, mark the key that they use.
 */
static void await_users(uint32_t key)
{
	vb_mark_await(vb_process_node_started(), 0, key);
}

static enum vb_reason judge_window(const struct vb_mw_place *on, const struct vb_mw *m,
				   const struct vb_send_wqe *w)
{
	bool type_1 = w->window_rights & VB_MW_BIND_TYPE_1;

	if (!m || (m->mw.type == IBV_MW_TYPE_1) != type_1)
		return VB_REASON_BIND_WINDOW;
	if (m->pd_id != on->pd_id)
		return VB_REASON_BIND_PD;
	if (!type_1 && m->region)
		return VB_REASON_BIND_BOUND;
	return VB_REASON_NONE;
}

/*
 * IBA 10.6.7.2: the region needs no remote right. But memory that a window lets peers change must
 * be writable by the local side.
 */
static enum vb_reason judge_region(const struct vb_mw *m, const struct vb_key *region,
				   const struct vb_send_wqe *w)
{
	const uint32_t change = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	uint64_t length = w->window_length;

	if (!w->region_key || region->key != w->region_key || region->kind != VB_KEY_REGION)
		return VB_REASON_BIND_REGION;
	if (region->pd != m->pd_id)
		return VB_REASON_BIND_PD;
	if (!(region->access & IBV_ACCESS_MW_BIND) || region->access & IBV_ACCESS_ZERO_BASED)
		return VB_REASON_BIND_REGION;
	if (!length || w->remote_addr < region->start || length > region->length ||
	    w->remote_addr - region->start > region->length - length)
		return VB_REASON_BIND_RANGE;
	if ((w->window_rights & change) && !(region->access & IBV_ACCESS_LOCAL_WRITE))
		return VB_REASON_BIND_ACCESS;
	return VB_REASON_NONE;
}

static void bind(struct vb_mw *m, const struct vb_mw_place *on, struct vb_key *region,
		 const struct vb_send_wqe *w)
{
	struct vb_key *k = m->entry;
	bool type_2 = m->mw.type == IBV_MW_TYPE_2;

	k->access = (uint32_t)w->window_rights & VB_MW_RIGHTS;
	k->pd = m->pd_id;
	k->qpn = type_2 ? on->qpn : 0;
	k->start = w->window_rights & IBV_ACCESS_ZERO_BASED ? 0 : w->remote_addr;
	k->length = w->window_length;
	k->base = region->base + (w->remote_addr - region->start);
	/* Engines read the kind before they set their mark. */
	__atomic_store_n(&k->kind, VB_KEY_WINDOW, __ATOMIC_RELAXED);
	k->windows = 0;
	k->shared = region->shared;
	region->windows++;
	m->region = region;
	if (type_2)
		link_to(m, on->list);
	__atomic_store_n(&k->key, w->rkey, __ATOMIC_RELEASE);
}

static enum vb_reason bind_or_release(const struct vb_mw_place *on, const struct vb_send_wqe *w)
{
	struct vb_key *region =
		&vb_node_keyring(vb_process_node_started())->key[vb_key_slot(w->region_key)];
	struct vb_mw *m = find(w->rkey);
	enum vb_reason reason = judge_window(on, m, w);
	bool release = m && m->mw.type == IBV_MW_TYPE_1 && !w->window_length;

	if (!reason && !release)
		reason = judge_region(m, region, w);
	if (reason)
		return reason;
	uint32_t old = m->entry->key;

	if (old) {
		unbind(m);
		await_users(old);
	}
	if (!release)
		bind(m, on, region, w);
	return VB_REASON_NONE;
}

enum vb_reason vb_mw_bind(const struct vb_mw_place *on, const struct vb_send_wqe *w)
{
	enum vb_reason reason;

	vb_lock_take(&lock);
	reason = bind_or_release(on, w);
	vb_lock_release(&lock);
	if (reason)
		vb_note(reason,
			"qp 0x%x: bind of window 0x%x to 0x%llx+%llu of mr key 0x%x, access 0x%x: %s",
			on->qpn, w->rkey, (unsigned long long)w->remote_addr,
			(unsigned long long)w->window_length, w->region_key,
			(unsigned int)w->window_rights, vb_reason_text(reason));
	return reason;
}

enum vb_reason vb_mw_invalidate(struct vb_mw **list, uint32_t key)
{
	struct vb_mw *m;
	bool valid;

	vb_lock_take(&lock);
	m = find(key);
	valid = m && m->entry->key == key && m->list == list;
	if (valid)
		unbind(m);
	vb_lock_release(&lock);
	if (!valid)
		return VB_REASON_INVALIDATE;
	await_users(key);
	return VB_REASON_NONE;
}

void vb_mw_release(struct vb_mw **list)
{
	vb_lock_take(&lock);
	while (*list)
		unbind(*list);
	vb_lock_release(&lock);
}

int vb_mw_list(struct vb_mw *m)
{
	int err = 0;

	vb_lock_take(&lock);
	if (!window_at)
		window_at = calloc(VB_MAX_KEYS, sizeof(struct vb_mw *));
	if (window_at)
		window_at[vb_key_slot(m->key)] = m;
	else
		err = vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "no memory for the table of windows");
	vb_lock_release(&lock);
	return err;
}

uint32_t vb_mw_unlist(struct vb_mw *m)
{
	uint32_t bound;

	vb_lock_take(&lock);
	if (window_at[vb_key_slot(m->key)] == m)
		window_at[vb_key_slot(m->key)] = NULL;
	bound = m->entry->key;
	unbind(m);
	vb_lock_release(&lock);
	return bound;
}

bool vb_mw_withdraw_region(struct vb_key *region)
{
	bool free;

	vb_lock_take(&lock);
	free = !region->windows;
	if (free)
		vb_key_withdraw(region);
	vb_lock_release(&lock);
	return free;
}

/* In a forked child the lock may be held by a thread that does not exist there. */
static void forked(void)
{
	lock = (struct vb_lock)VB_LOCK_AT(VB_ORDER_WINDOWS);
	window_at = NULL;
}

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);
