/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The turn in which the progress thread serves everything of this room, and its wait. */
#include <time.h>

#include "base/lock.h"
#include "base/sys.h"
#include "host/channel_private.h"
#include "host/private.h"

/* The longest wait when the program has closed descriptors of the library. */
#define GONE_NS    (1 * VB_MSEC)
/* There is no other bound, but one is needed for the arithmetic of times. */
#define LONGEST_NS (3600000 * VB_MSEC)

/*
 * Serves everything that was left for the progress thread. True if the device was told something,
 * so that it should look before it sleeps.
 */
static bool serve(struct vb_node *node)
{
	bool told = vb_liveness_service(node);

	int64_t retry_at = atomic_load(&node->retry_at);
	bool due = retry_at && vb_node_clock() >= retry_at;

	if (due)
		atomic_store(&node->retry_at, 0);
	while (atomic_exchange(&node->todo, false) || due) {
		due = false;
		told |= vb_contact_service(node);
		told |= vb_channel_downs_service(node);
		told |= vb_liveness_service(node);
	}
	return told;
}

/* Events of this turn do not point to them any more. */
static void sweep(struct vb_node *node)
{
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	vb_connection_free_closed(node);
	vb_channel_free_retired(node);
	while (node->removed) {
		struct vb_peer *peer = node->removed;

		node->removed = peer->next;
		vb_peer_unref(peer);
	}
	vb_mutex_release(&node->lock);
}

static int64_t shorter(int64_t a, int64_t b)
{
	return a < 0 || b < a ? b : a;
}

/* What was to be tried again may be done by now: an idle process is not woken for it. */
static int64_t retry_time(struct vb_node *node)
{
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	if (!node->contacts_wanted && !node->ask_due && !node->late_due && !node->unsent &&
	    !node->admission.again)
		atomic_store(&node->retry_at, 0);
	int64_t at = atomic_load(&node->retry_at);

	vb_mutex_release(&node->lock);
	return at;
}

static int64_t wait_time(struct vb_node *node, int64_t timeout)
{
	int64_t t = shorter(timeout, LONGEST_NS);

	if (t == 0)
		return 0;

	t = shorter(t, vb_liveness_pause(node));
	if (atomic_load(&node->gone))
		t = shorter(t, GONE_NS);
	int64_t retry_at = atomic_load(&node->retry_at) ? retry_time(node) : 0;

	if (retry_at) {
		int64_t left = retry_at - vb_node_clock();

		t = shorter(t, left < 0 ? 0 : left);
	}
	return t;
}

bool vb_node_wait(struct vb_node *node, int64_t timeout_ns)
{
	bool told = serve(node);

	node->rang = false;
	sweep(node);
	bool intact = vb_reactor_intact(node);
	int64_t ns = told ? 0 : wait_time(node, timeout_ns);

	if (ns)
		ns = vb_bell_sleep(node) ? 0 : ns;
	if (!intact) {
		struct timespec t = {0, ns};

		if (ns)
			vb_sys_nanosleep(&t);
		node->rang = true;
	} else {
		vb_reactor_wait(node, ns);
	}
	vb_bell_wake(node);
	serve(node);
	sweep(node);
	return node->rang;
}
