/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Channels between two engines of this process, or of an engine with itself: the same rings, in
 * private memory.
 */
#include <errno.h>
#include <sys/mman.h>

#include "base/lock.h"
#include "base/reason.h"
#include "base/sys.h"
#include "host/channel_private.h"
#include "host/private.h"

#define HALF_BYTES sizeof(struct vb_ring_half)

static struct vb_ring_half *half_new(void)
{
	void *p = vb_sys_pages(HALF_BYTES);

	return p == MAP_FAILED ? NULL : p;
}

static void half_free(const struct vb_ring_half *half)
{
	if (half)
		munmap((void *)(uintptr_t)half, HALF_BYTES);
}

static struct vb_channel *end_new(struct vb_node *node, uint32_t engine, uint32_t remote_engine)
{
	struct vb_channel *ch = vb_channel_new(node, node->self, engine, remote_engine);

	if (!ch)
		return NULL;
	ch->loop = true;
	vb_channel_link(ch);
	ch->own_half = half_new();
	if (!ch->own_half) {
		vb_channel_retire(node, ch);
		return NULL;
	}
	return ch;
}

/* The caller holds the lock. Makes both ends; returns the end of `engine`. */
static struct vb_channel *pair_new(struct vb_node *node, uint32_t engine, uint32_t remote_engine)
{
	struct vb_channel *a = end_new(node, engine, remote_engine);
	struct vb_channel *b = a;

	if (a && engine != remote_engine)
		b = end_new(node, remote_engine, engine);
	if (a && !b) {
		half_free(a->own_half);
		vb_channel_retire(node, a);
	}
	if (!b)
		return NULL;
	a->other = b;
	b->other = a;
	a->peer_half = b->own_half;
	b->peer_half = a->own_half;
	vb_channel_bring_up(a);
	if (b != a)
		vb_channel_bring_up(b);
	return a;
}

static struct vb_channel *loop_between(const struct vb_node *node, uint32_t engine,
				       uint32_t remote_engine)
{
	struct vb_channel *ch = vb_channel_between(node->self, engine, remote_engine);

	return ch && ch->stage == VB_CHANNEL_UP ? ch : NULL;
}

static void end_close(struct vb_node *node, struct vb_channel *ch)
{
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	vb_channel_close_loop(node, ch);
	vb_mutex_release(&node->lock);
}

/*
 * Without the lock. False if an engine has ended; then only an end that the device has taken is
 * left, and the device is told that it closed.
 */
static bool announce_both(struct vb_node *node, struct vb_channel *ch)
{
	struct vb_channel *other = ch->other;

	if (!node->events.channel_up)
		return true;
	if (node->events.channel_up(node->events.arg, ch->engine, ch)) {
		if (other != ch)
			end_close(node, other);
		end_close(node, ch);
		return false;
	}
	if (other != ch && node->events.channel_up(node->events.arg, other->engine, other)) {
		end_close(node, other);
		return false;
	}
	return true;
}

struct vb_channel *vb_channel_find_loop(struct vb_node *node, uint32_t engine, uint32_t dest_qpn,
					enum vb_contact *why)
{
	const struct vb_page_qp *qp = vb_peer_qp(node->self, dest_qpn);
	uint32_t remote;

	*why = VB_CONTACT_ABSENT;
	if (!qp || __atomic_load_n(&qp->qpn, __ATOMIC_ACQUIRE) != dest_qpn)
		return NULL;
	remote = __atomic_load_n(&qp->engine, __ATOMIC_RELAXED);
	if (remote >= VB_MAX_ENGINES)
		return NULL;
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	struct vb_channel *ch = loop_between(node, engine, remote);
	bool fresh = !ch;

	if (fresh)
		ch = pair_new(node, engine, remote);
	vb_mutex_release(&node->lock);
	if (!ch) {
		vb_note(VB_REASON_NO_MEMORY, "no memory for a channel within the process");
		*why = VB_CONTACT_NO_MEMORY;
		return NULL;
	}
	if (fresh && !announce_both(node, ch))
		return NULL;
	*why = VB_CONTACT_UP;
	return ch;
}

/* The halves belong to both ends: the last end to close frees them. */
void vb_channel_close_loop(struct vb_node *node, struct vb_channel *ch)
{
	if (ch->stage == VB_CHANNEL_CLOSED)
		return;
	if (ch->other == ch) {
		half_free(ch->own_half);
	} else if (ch->other) {
		ch->other->other = NULL;
		vb_channel_down_later(node, ch->other);
	} else {
		half_free(ch->own_half);
		half_free(ch->peer_half);
	}
	vb_channel_retire(node, ch);
}
