/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The process's node and progress thread, and the hooks for events of the node. Started when first
 * needed, forgotten in a forked child.
 */
#include "process/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/fork.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/reason.h"
#include "base/thread.h"
#include "host/bell.h"
#include "host/channel.h"
#include "host/peer.h"

struct process {
	pthread_mutex_t start_lock;
	_Atomic(struct vb_node *) node;
	bool thread_started;
	_Atomic uint64_t contact_epoch;
};

static struct process process = {
	.start_lock = PTHREAD_MUTEX_INITIALIZER,
};

static struct vb_process_hook *hooks;

void vb_process_register(struct vb_process_hook *hook)
{
	hook->next = hooks;
	hooks = hook;
}

static int on_channel_up(void *arg, uint32_t index, struct vb_channel *channel)
{
	struct vb_node *node = vb_process_node_started();
	bool adopted = false;

	(void)arg;
	for (const struct vb_process_hook *h = hooks; h; h = h->next)
		adopted |= h->channel_up && h->channel_up(index, channel);
	atomic_fetch_add(&process.contact_epoch, 1);
	if (!adopted)
		return -ENOENT;
	/* It may be that no thread polls. */
	vb_bell_call(node, index);
	vb_progress_expect(1);
	return 0;
}

static void on_contact_changed(void *arg)
{
	(void)arg;
	for (const struct vb_process_hook *h = hooks; h; h = h->next) {
		if (h->contact_changed)
			h->contact_changed();
	}
	atomic_fetch_add(&process.contact_epoch, 1);
}

static void on_channel_down(void *arg, uint32_t index, struct vb_channel *channel)
{
	for (const struct vb_process_hook *h = hooks; h; h = h->next) {
		if (h->channel_down)
			h->channel_down(index, channel);
	}
	on_contact_changed(arg);
}

static void on_peer_dead(void *arg, struct vb_peer *peer)
{
	vb_note(VB_REASON_PEER_DEAD, "process %u has ended", vb_peer_pid(peer));
	for (const struct vb_process_hook *h = hooks; h; h = h->next) {
		if (h->peer_gone)
			h->peer_gone(peer);
	}
	on_contact_changed(arg);
}

static const struct vb_node_events node_events = {
	.channel_up = on_channel_up,
	.channel_down = on_channel_down,
	.peer_dead = on_peer_dead,
	.contact_changed = on_contact_changed,
};

int vb_process_node(struct vb_node **node)
{
	struct vb_node *n = atomic_load_explicit(&process.node, memory_order_acquire);
	int err = 0;

	if (!n) {
		vb_mutex_take(&process.start_lock, VB_ORDER_PROCESS);
		n = atomic_load(&process.node);
		if (!n) {
			err = vb_node_start(&node_events, &n);
			if (!err)
				atomic_store_explicit(&process.node, n, memory_order_release);
		}
		vb_mutex_release(&process.start_lock);
	}
	*node = n;
	return err;
}

struct vb_node *vb_process_node_started(void)
{
	return atomic_load_explicit(&process.node, memory_order_acquire);
}

static void *thread_main(void *arg)
{
	struct vb_node *node = arg;
	const struct vb_process_hook *h;

	vb_node_hold_alive(node);
	vb_thread_is_brief();
	for (h = hooks; h; h = h->next) {
		if (h->progress_starts)
			h->progress_starts(node);
	}
	for (h = hooks; h && !h->progress; h = h->next)
		;
	if (h)
		h->progress(node);
	return NULL;
}

static int thread_create(struct vb_node *node)
{
	int err = vb_thread_start("verbatim", 0, thread_main, node);

	if (err)
		return vb_refuse(-err, VB_REASON_SYSTEM, "progress thread: pthread_create: %s",
				 strerror(-err));
	return 0;
}

int vb_process_start_progress(void)
{
	struct vb_node *node;
	int err = vb_process_node(&node);

	if (err)
		return err;
	vb_mutex_take(&process.start_lock, VB_ORDER_PROCESS);
	if (!process.thread_started) {
		err = thread_create(node);
		process.thread_started = !err;
	}
	vb_mutex_release(&process.start_lock);
	return err;
}

__attribute__((destructor)) static void at_exit(void)
{
	for (const struct vb_process_hook *h = hooks; h && atomic_load(&process.node);
	     h = h->next) {
		if (h->at_exit)
			h->at_exit();
	}
}

uint64_t vb_process_contact_epoch(void)
{
	return atomic_load_explicit(&process.contact_epoch, memory_order_relaxed);
}

void vb_process_quiesce(uint32_t qpn, uint32_t key)
{
	struct vb_node *node = vb_process_node_started();

	if (!node)
		return;
	/*
	 * Engines check keys under their lock: a thread that held one across the change has
	 * released it after this. A queue pair's state is judged under its own engine's lock, which
	 * the caller has just held. Initiators mark what they use.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	for (const struct vb_process_hook *h = hooks; h && key; h = h->next) {
		if (h->pass_through)
			h->pass_through();
	}
	vb_mark_await(node, qpn, key);
}

/*
 * In the child of a fork the node and its thread are the parent's. They are started afresh when
 * next needed.
 */
static void forked(void)
{
	struct vb_node *node = atomic_load(&process.node);

	if (node)
		vb_node_forked(node);
	/*
	 * Locks may be held by threads that do not exist in the child, so all are new. The parent's
	 * objects are left alone.
	 */
	pthread_mutex_init(&process.start_lock, NULL);
	atomic_store(&process.node, NULL);
	process.thread_started = false;
}

VB_FORK_HOOK(.phase = VB_FORK_NODE, .child = forked);
