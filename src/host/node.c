/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The node: start, stop, and the wait in which the progress thread serves everything of this room. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/random.h"
#include "base/reason.h"
#include "base/sys.h"
#include "host/arena.h"
#include "host/bell.h"
#include "host/channel_private.h"
#include "host/descriptor.h"
#include "host/private.h"
#include "host/shared.h"

/* The node lies outside the heap: tell the leak checker that what it points to is in use. */
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#define LEAK_ROOT(at, size)    __lsan_register_root_region(at, size)
#define NO_LEAK_ROOT(at, size) __lsan_unregister_root_region(at, size)
#else
#define LEAK_ROOT(at, size)    ((void)0)
#define NO_LEAK_ROOT(at, size) ((void)0)
#endif

#define EVENTS     32
/* Wait at most so long when the program closed our descriptors; ever. */
#define GONE_NS    (1 * VB_MSEC)
#define LONGEST_NS (500 * VB_MSEC)

struct vb_watch {
	struct vb_source source;
	struct vb_watch *next;
	void (*fn)(void *arg);
	void *arg;
};

int64_t vb_node_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

void vb_node_descriptors_gone(struct vb_node *node)
{
	if (atomic_exchange(&node->gone, true))
		return;
	vb_note(VB_REASON_DESCRIPTORS_GONE,
		"the program closed descriptors that it did not open: no new contacts, no direct access, polling every ms");
	vb_log(VB_LOG_WARN, "the program closed the device's descriptors; it goes on more slowly");
}

/* Is the set that the progress thread waits for still there? Nothing of the program's is waited for, or put into its own set. */
static bool node_intact(struct vb_node *node)
{
	if (atomic_load(&node->gone))
		return false;
	if (vb_descriptor_still(node->epoll))
		return true;
	vb_node_descriptors_gone(node);
	return false;
}

int vb_node_source_add(struct vb_node *node, struct vb_source *source, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = source};

	if (!node_intact(node))
		return -EBADF;
	if (epoll_ctl(node->epoll, EPOLL_CTL_ADD, source->fd, &ev) == 0)
		return 0;
	return -errno;
}

void vb_node_source_again(struct vb_node *node, struct vb_source *source, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = source};

	if (!atomic_load(&node->gone))
		epoll_ctl(node->epoll, EPOLL_CTL_MOD, source->fd, &ev);
}

/* Out of the set before it is closed: a forked child that keeps a copy would keep it in the set. */
void vb_node_source_remove(struct vb_node *node, struct vb_source *source)
{
	if (source->fd < 0)
		return;
	if (node_intact(node) && vb_descriptor_ours(source->fd))
		epoll_ctl(node->epoll, EPOLL_CTL_DEL, source->fd, NULL);
	vb_descriptor_close(source->fd);
	source->fd = -1;
}

static void doorbell_ready(struct vb_node *node, struct vb_source *source, uint32_t events)
{
	uint64_t count;

	(void)events;
	if (!vb_descriptor_ours(source->fd))
		vb_node_descriptors_gone(node);
	else if (vb_sys_read(source->fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		vb_log(VB_LOG_WARN, "doorbell: %s", strerror(errno));
	atomic_store(&node->kicked, false);
	node->rang = true;
}

static int doorbell_open(struct vb_node *node)
{
	node->epoll = vb_descriptor_adopt(epoll_create1(EPOLL_CLOEXEC));
	if (node->epoll < 0)
		return -errno;
	node->doorbell.fd = vb_descriptor_adopt(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	node->doorbell.ready = doorbell_ready;
	if (node->doorbell.fd < 0)
		return -errno;
	return vb_node_source_add(node, &node->doorbell, EPOLLIN);
}

/* The peer that this process is to itself. */
static int self_make(struct vb_node *node)
{
	const char *defect = NULL;
	struct vb_peer *self = vb_peer_new(node, node->page, node->nonce);

	if (!self)
		return -ENOMEM;
	self->self = true;
	self->state = VB_PEER_UP;
	self->seen_pid = getpid();
	self->keys = node->keyring;
	atomic_store(&self->whole_page, node->page);
	atomic_store(&self->whole_keys, node->keyring);
	atomic_store(&self->given, true);
	node->self = self;
	int err = node->arena.fd < 0 ? 0 : vb_window_attach(self, node->arena.fd, &defect);

	if (err == -ENOMEM)
		return err;
	if (err)
		vb_note(VB_REASON_NO_DIRECT_ACCESS, "own shared memory: %s", defect);
	return vb_turn_create(&self->turn, &node->lock_fd);
}

/*
 * What peers reach directly. The device works without, and stays without for good; so what is lacking just now refuses the start,
 * which the program's next call tries again.
 */
static int direct_make(struct vb_node *node)
{
	int err = vb_arena_create(node);

	if (vb_system_is_short(err))
		return err;
	if (err)
		vb_note(VB_REASON_SYSTEM, "no device memory and no mapped buffers: %s",
			strerror(-err));
	node->mem_fd = vb_memory_open_own(&node->nonce, node->obstacle, sizeof(node->obstacle));
	if (vb_system_is_short(node->mem_fd))
		return node->mem_fd;
	if (node->mem_fd < 0)
		vb_note(VB_REASON_NO_DIRECT_ACCESS, "%s", node->obstacle);
	return 0;
}

static void node_free(struct vb_node *node)
{
	if (node->self) {
		vb_turn_unmap(node->self->turn);
		vb_window_detach(node->self);
		free(node->self);
	}
	vb_arena_destroy(node);
	vb_shared_unmap(node->page, sizeof(struct vb_page));
	vb_shared_unmap(node->keyring, sizeof(struct vb_keyring));
	vb_descriptor_close(node->doorbell.fd);
	vb_descriptor_close(node->epoll);
	vb_descriptor_close(node->page_fd);
	vb_descriptor_close(node->keyring_fd);
	vb_descriptor_close(node->lock_fd);
	vb_descriptor_close(node->mem_fd);
	vb_descriptor_close(node->admission.spare);
	pthread_mutex_destroy(&node->lock);
	NO_LEAK_ROOT(node, sizeof(*node));
	munmap(node, sizeof(*node));
}

int vb_node_start(const struct vb_node_events *events, struct vb_node **out)
{
	/* Mostly tables that are touched as they are used. */
	struct vb_node *node = mmap(NULL, sizeof(*node), PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (node == MAP_FAILED)
		return vb_refuse(errno, VB_REASON_SYSTEM, "start of the shared-memory node: %s",
				 strerror(errno));
	LEAK_ROOT(node, sizeof(*node));
	node->epoll = node->doorbell.fd = node->lock_fd = node->mem_fd = -1;
	node->page_fd = node->keyring_fd = node->arena.fd = node->admission.spare = -1;
	pthread_mutex_init(&node->lock, NULL);
	node->events = *events;
	do {
		node->nonce = vb_random64();
	} while (!node->nonce);
	int err = vb_page_create(node->nonce, &node->page, &node->page_fd);

	if (!err)
		err = vb_keyring_create(node->nonce, &node->keyring, &node->keyring_fd);
	if (!err)
		err = direct_make(node);
	if (!err)
		err = doorbell_open(node);
	vb_admit_spare(node);
	vb_names_open(node);
	if (!err)
		err = self_make(node);
	if (err) {
		node_free(node);
		return vb_refuse(-err, VB_REASON_SYSTEM, "start of the shared-memory node: %s",
				 strerror(-err));
	}
	*out = node;
	return 0;
}

void vb_node_stop(struct vb_node *node)
{
	pthread_mutex_lock(&node->lock);
	vb_names_close(node);
	while (node->connections)
		vb_connection_close(node, node->connections);
	while (node->peers) {
		struct vb_peer *peer = node->peers;

		node->peers = peer->next;
		while (peer->channels)
			vb_channel_retire(node, peer->channels);
		vb_node_source_remove(node, &peer->pidfd);
		vb_peer_unref(peer);
	}
	while (node->self->channels)
		vb_channel_close_loop(node, node->self->channels);
	vb_connection_free_closed(node);
	vb_channel_free_retired(node);
	vb_contact_free_all(node);
	while (node->watches) {
		struct vb_watch *w = node->watches;

		node->watches = w->next;
		free(w);
	}
	pthread_mutex_unlock(&node->lock);
	node_free(node);
}

struct vb_page *vb_node_page(struct vb_node *node)
{
	return node->page;
}

struct vb_keyring *vb_node_keyring(struct vb_node *node)
{
	return node->keyring;
}

struct vb_peer *vb_node_self(struct vb_node *node)
{
	return node->self;
}

uint64_t vb_node_nonce(struct vb_node *node)
{
	return node->nonce;
}

/* What a thread that was rung for and has not heard it yet is to look at now, it will look at. */
void vb_node_kick(struct vb_node *node)
{
	if (atomic_load(&node->gone) || atomic_exchange(&node->kicked, true))
		return;
	vb_peer_ring(node->self);
}

void vb_node_todo(struct vb_node *node)
{
	atomic_store(&node->todo, true);
	/* The progress thread looks before it sleeps. */
	if (!atomic_load(&node->held) || !pthread_equal(node->thread, pthread_self()))
		vb_node_kick(node);
}

void vb_node_retry(struct vb_node *node, int64_t delay)
{
	int64_t at = vb_node_clock() + delay;
	int64_t set = atomic_load(&node->retry_at);

	if (!set || at < set)
		atomic_store(&node->retry_at, at);
}

static void watch_ready(struct vb_node *node, struct vb_source *source, uint32_t events)
{
	struct vb_watch *w = (struct vb_watch *)source; /* its first member */

	(void)node;
	(void)events;
	w->fn(w->arg);
}

int vb_node_watch(struct vb_node *node, int fd, void (*fn)(void *arg), void *arg)
{
	struct vb_watch *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	w->source.fd = fd;
	w->source.ready = watch_ready;
	w->fn = fn;
	w->arg = arg;
	pthread_mutex_lock(&node->lock);
	err = vb_node_source_add(node, &w->source, EPOLLIN);
	if (!err) {
		w->next = node->watches;
		node->watches = w;
	}
	pthread_mutex_unlock(&node->lock);
	if (err)
		free(w);
	return err;
}

/* Everything that was left for the progress thread. True if the device was told something, so that it should look before it sleeps. */
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
		told |= vb_channel_loop_service(node);
		told |= vb_liveness_service(node);
	}
	return told;
}

/* Nothing of this turn points to them any more. */
static void sweep(struct vb_node *node)
{
	pthread_mutex_lock(&node->lock);
	vb_connection_free_closed(node);
	vb_channel_free_retired(node);
	while (node->buried) {
		struct vb_peer *peer = node->buried;

		node->buried = peer->next;
		vb_peer_unref(peer);
	}
	pthread_mutex_unlock(&node->lock);
}

static int64_t shorter(int64_t a, int64_t b)
{
	return a < 0 || b < a ? b : a;
}

static int64_t wait_time(struct vb_node *node, int64_t timeout)
{
	int64_t t = shorter(timeout, LONGEST_NS);

	if (t == 0)
		return 0;

	t = shorter(t, vb_liveness_pause(node));
	if (atomic_load(&node->gone))
		t = shorter(t, GONE_NS);
	int64_t retry_at = atomic_load(&node->retry_at);

	if (retry_at) {
		int64_t left = retry_at - vb_node_clock();

		t = shorter(t, left < 0 ? 0 : left);
	}
	return t;
}

static void dispatch(struct vb_node *node, int64_t ns)
{
	struct epoll_event events[EVENTS];
	int n = vb_sys_epoll_wait_ns(node->epoll, events, EVENTS, ns);

	/* EBADF: closed; EINVAL: the number is some other file by now. */
	if (n < 0 && errno != EINTR)
		vb_node_descriptors_gone(node);
	for (int i = 0; i < n; i++) {
		struct vb_source *source = events[i].data.ptr;

		/* An event before it in this turn may have removed it. The lock also shows what was written when it was added. */
		pthread_mutex_lock(&node->lock);
		bool there = source->fd >= 0;

		pthread_mutex_unlock(&node->lock);
		if (there)
			source->ready(node, source, events[i].events);
	}
}

bool vb_node_wait(struct vb_node *node, int64_t timeout_ns)
{
	bool told = serve(node);

	node->rang = false;
	sweep(node);
	bool intact = node_intact(node);
	int64_t ns = told ? 0 : wait_time(node, timeout_ns);

	if (ns)
		ns = vb_bell_sleep(node) ? 0 : ns;
	if (!intact) {
		struct timespec t = {0, ns};

		if (ns)
			vb_sys_nanosleep(&t);
		node->rang = true;
	} else {
		dispatch(node, ns);
	}
	vb_bell_wake(node);
	serve(node);
	sweep(node);
	return node->rang;
}
