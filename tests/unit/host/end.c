/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A node with a recording progress thread, and child processes. */
#include "unit/host/end.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void require(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "end: %s (errno %s)\n", what, strerror(errno));
	abort();
}

int64_t end_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

void end_sleep_ms(int ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

static int on_up(void *arg, uint32_t engine, struct vb_channel *channel)
{
	struct end *end = arg;

	if (engine == end->no_engine)
		return -ENOENT;
	int n = atomic_load(&end->ups);

	require(n < END_CHANNELS, "too many channels");
	atomic_store(&end->up[n], channel);
	atomic_store(&end->ups, n + 1);
	if (end->at_up)
		end->at_up(end);
	return 0;
}

static void on_down(void *arg, uint32_t engine, struct vb_channel *channel)
{
	struct end *end = arg;

	(void)engine;
	atomic_store(&end->down, channel);
	atomic_fetch_add(&end->downs, 1);
}

static void on_dead(void *arg, struct vb_peer *peer)
{
	struct end *end = arg;

	atomic_store(&end->death_at, end_clock());
	atomic_store(&end->dead_peer, peer);
	atomic_fetch_add(&end->deaths, 1);
}

static void on_changed(void *arg)
{
	atomic_fetch_add(&((struct end *)arg)->changes, 1);
}

static void *progress(void *arg)
{
	struct end *end = arg;

	vb_node_hold_alive(end->node);
	while (!atomic_load(&end->stop)) {
		if (vb_node_wait(end->node, -1))
			atomic_fetch_add(&end->rings, 1);
	}
	return NULL;
}

void end_start(struct end *end)
{
	struct vb_node_events events = {on_up, on_down, on_dead, on_changed, end};

	memset(end, 0, sizeof(*end));
	end->no_engine = UINT32_MAX;
	require(vb_node_start(&events, &end->node) == 0, "vb_node_start");
	require(pthread_create(&end->thread, NULL, progress, end) == 0, "pthread_create");
}

void end_stop(struct end *end)
{
	atomic_store(&end->stop, true);
	vb_node_kick(end->node);
	pthread_join(end->thread, NULL);
	for (int i = 0; i < atomic_load(&end->ups); i++) {
		if (atomic_load(&end->up[i]))
			vb_channel_close(end->node, atomic_load(&end->up[i]));
	}
	vb_node_stop(end->node);
}

uint32_t end_engine(struct end *end)
{
	uint32_t engine;

	require(vb_node_engine_alloc(end->node, &engine) == 0, "engine");
	return engine;
}

uint32_t end_qp(struct end *end, uint32_t engine, struct vb_page_qp **out)
{
	struct vb_page_qp *entry;
	uint32_t qpn;

	require(vb_node_qpn_alloc(end->node, &qpn, &entry) == 0, "qpn");
	entry->engine = engine;
	__atomic_store_n(&entry->qpn, qpn, __ATOMIC_RELEASE);
	if (out)
		*out = entry;
	return qpn;
}

struct vb_channel *end_find(struct end *end, uint32_t engine, uint32_t qpn, int timeout_ms,
			    enum vb_contact *why)
{
	int64_t until = end_clock() + timeout_ms * 1000000ll;
	struct vb_channel *ch;

	do {
		ch = vb_channel_find_since(end->node, engine, qpn, 0, true, why);
		if (ch || *why != VB_CONTACT_PENDING)
			return ch;
		nanosleep(&(struct timespec){0, 100000}, NULL);
	} while (end_clock() < until);
	return NULL;
}

void end_close(struct end *end, struct vb_channel *channel)
{
	for (int i = 0; i < atomic_load(&end->ups); i++) {
		if (atomic_load(&end->up[i]) == channel)
			atomic_store(&end->up[i], NULL);
	}
	vb_channel_close(end->node, channel);
}

bool end_await(_Atomic int *count, int want, int timeout_ms)
{
	int64_t until = end_clock() + timeout_ms * 1000000ll;

	while (atomic_load(count) < want && end_clock() < until)
		end_sleep_ms(1);
	return atomic_load(count) >= want;
}

struct vb_channel *end_announced(struct end *end, int n, int timeout_ms)
{
	return end_await(&end->ups, n + 1, timeout_ms) ? atomic_load(&end->up[n]) : NULL;
}

bool end_push(struct vb_channel *ch, uint64_t number)
{
	int64_t until = end_clock() + END_PATIENCE_MS * 1000000ll;
	struct vb_slot *slot;

	while (!(slot = vb_ring_reserve(&ch->tx, 0, NULL))) {
		if (end_clock() > until)
			return false;
		sched_yield();
	}
	memcpy(slot->data, &number, sizeof(number));
	vb_ring_push(&ch->tx);
	return true;
}

bool end_take(struct vb_channel *ch, uint64_t *number)
{
	int64_t until = end_clock() + END_PATIENCE_MS * 1000000ll;
	struct vb_slot slot;

	while (!vb_ring_peek(&ch->rx, &slot)) {
		if (end_clock() > until)
			return false;
		vb_ring_tell(&ch->rx);
		sched_yield();
	}
	memcpy(number, slot.data, sizeof(*number));
	vb_ring_pop(&ch->rx);
	return true;
}

/* What cmocka catches. */
static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS};

void child_start(struct child *child, int (*fn)(int sock, void *arg), void *arg)
{
	int pair[2];

	require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
	fflush(NULL);
	child->pid = fork();
	require(child->pid >= 0, "fork");
	if (child->pid == 0) {
		/* No process outlives a test that fails. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/*
		 * A fault ends the child, as its status tells, and does not go on with the parent's
		 * tests.
		 */
		for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
			signal(faults[i], SIG_DFL);
		close(pair[0]);
		_exit(fn(pair[1], arg));
	}
	close(pair[1]);
	child->sock = pair[0];
}

uint32_t end_start_beside(struct end *end, struct child *child, int (*fn)(int sock, void *arg),
			  uint32_t *qpn)
{
	child_start(child, fn, NULL);
	end_start(end);
	*qpn = (uint32_t)hear(child->sock);
	return end_engine(end);
}

struct vb_channel *end_serve(struct end *end, int sock, uint32_t *engine)
{
	end_start(end);
	uint32_t own = end_engine(end);

	if (engine)
		*engine = own;
	tell(sock, end_qp(end, own, NULL));
	return end_announced(end, 0, END_PATIENCE_MS);
}

void child_join(struct child *child)
{
	int status;

	require(waitpid(child->pid, &status, 0) == child->pid, "waitpid");
	close(child->sock);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fprintf(stderr, "end: child's wait status 0x%x\n", (unsigned int)status);
	require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child failed");
}

void child_kill(struct child *child)
{
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	close(child->sock);
}

void tell(int sock, uint64_t number)
{
	require(send(sock, &number, sizeof(number), MSG_NOSIGNAL) == sizeof(number), "tell");
}

uint64_t hear(int sock)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	uint64_t number;

	require(poll(&p, 1, 60000) == 1, "hear: nothing for 60 s");
	require(recv(sock, &number, sizeof(number), MSG_WAITALL) == sizeof(number), "hear");
	return number;
}
