/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rpoll(3): sockets and other descriptors together. It looks for as long as the configuration says,
 * then sleeps until a descriptor is readable or another thread rings, and looks again at the latest
 * after the wake-up interval.
 */
#include "rsocket/poll.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rsocket.h>

#include "base/clock.h"
#include "base/pause.h"
#include "base/sys.h"
#include "rsocket/bell.h"
#include "rsocket/config.h"
#include "rsocket/connect.h"
#include "rsocket/datagram.h"
#include "rsocket/listen.h"
#include "rsocket/table.h"
#include "rsocket/wait.h"

enum { FEW = 32 }; /* descriptors for which the stack has room */

static short connected_readiness(struct vb_rsocket *rs, short events)
{
	const short reads = POLLIN | POLLRDNORM;
	const short writes = POLLOUT | POLLWRNORM;
	short now = 0;
	uint32_t ends;

	vb_rs_progress(rs);
	if (events & reads && vb_rs_can_receive(rs))
		now |= events & reads;
	if (events & writes && vb_rs_can_send(rs))
		now |= events & writes;
	if (rs->datagram)
		return now;
	ends = vb_stream_ends(&rs->stream);
	if (ends & VB_STREAM_BROKEN && !(ends & VB_STREAM_PEER_LEFT))
		now |= POLLERR | POLLHUP;
	/* Programs take POLLHUP for the end of all: it comes after the last byte was read. */
	if (ends & VB_STREAM_PEER_LEFT && !vb_stream_readable(&rs->stream))
		now |= POLLHUP;
	if (ends & (VB_STREAM_PEER_WROTE | VB_STREAM_PEER_LEFT | VB_STREAM_BROKEN))
		now |= events & POLLRDHUP;
	return now;
}

short vb_rs_readiness(struct vb_rsocket *rs, short events)
{
	if (rs->datagram)
		return connected_readiness(rs, events);
	if (vb_rs_is_opening(rs) && !rs->serviced)
		vb_rs_step(rs);
	switch (vb_rs_state(rs)) {
	case VB_RS_CONNECTED:
		return connected_readiness(rs, events);
	case VB_RS_LISTENING:
		return vb_rs_backlog_has(rs) ? events & (POLLIN | POLLRDNORM) : 0;
	case VB_RS_FAILED:
		return (short)((events & (POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM)) | POLLERR |
			       POLLHUP);
	case VB_RS_IDLE:
	case VB_RS_BOUND:
		return (short)((events & (POLLOUT | POLLWRNORM)) | POLLHUP);
	default:
		return 0;
	}
}

bool vb_rs_has_queue(const struct vb_rsocket *rs)
{
	return rs->datagram || vb_rs_state(rs) == VB_RS_CONNECTED;
}

uint64_t vb_rs_in_edge(struct vb_rsocket *rs)
{
	if (vb_rs_state(rs) == VB_RS_LISTENING)
		return vb_rs_backlog_count(rs);
	if (rs->datagram || !rs->has_stream)
		return vb_rs_state(rs);
	return __atomic_load_n(&rs->stream.arrived.bytes, __ATOMIC_ACQUIRE) ^
	       (uint64_t)vb_stream_ends(&rs->stream) << 48 ^ (uint64_t)vb_rs_state(rs) << 56;
}

uint64_t vb_rs_out_edge(struct vb_rsocket *rs)
{
	uint64_t ends = rs->has_stream ? vb_stream_ends(&rs->stream) : 0;

	return __atomic_load_n(&rs->write_full, __ATOMIC_RELAXED) ^ ends << 48 ^
	       (uint64_t)vb_rs_state(rs) << 56;
}

/* One call. `asleep`: what poll(2) gets, the bell last. */
struct round {
	struct pollfd *fds;
	nfds_t count;
	struct vb_rsocket **sockets; /* NULL: another kind of descriptor */
	struct pollfd *asleep;
	bool *begun;
	bool has_others;
};

/* poll(2) for those that are no sockets, without waiting. How many are ready. */
static int look_at_others(const struct round *r)
{
	int ready = 0;

	if (!r->has_others)
		return 0;
	for (nfds_t i = 0; i < r->count; i++) {
		r->asleep[i] = r->fds[i];
		if (r->sockets[i])
			r->asleep[i].fd = -1;
	}
	if (vb_sys_poll(r->asleep, (unsigned int)r->count, 0) < 0)
		return errno == EINTR ? 0 : -errno;
	for (nfds_t i = 0; i < r->count; i++) {
		if (r->sockets[i])
			continue;
		r->fds[i].revents = r->asleep[i].revents;
		ready += !!r->fds[i].revents;
	}
	return ready;
}

static int look(const struct round *r)
{
	int ready = look_at_others(r);

	for (nfds_t i = 0; i < r->count && ready >= 0; i++) {
		if (!r->sockets[i])
			continue;
		r->fds[i].revents = vb_rs_is_closing(r->sockets[i])
					    ? POLLNVAL
					    : vb_rs_readiness(r->sockets[i], r->fds[i].events);
		ready += !!r->fds[i].revents;
	}
	return ready;
}

static int time_left(uint64_t end)
{
	uint64_t wake = vb_rs_config()->wake_ms;
	uint64_t now = vb_clock_ns(), left = now < end ? (end - now + 999999) / 1000000 : 0;

	return (int)(left < wake ? left : wake);
}

/* Sleeps once. How many were ready before that; -EINTR. */
static int sleep_once(const struct round *r, uint64_t end)
{
	struct vb_rs_bell bell;
	int n, err = vb_rs_bell_hold(&bell);
	bool slept = false;

	for (nfds_t i = 0; i < r->count; i++) {
		r->begun[i] = r->sockets[i] && vb_rs_has_queue(r->sockets[i]);
		if (r->begun[i])
			vb_rs_arm(r->sockets[i]);
	}
	n = err ? err : look(r);
	if (!n) {
		for (nfds_t i = 0; i < r->count; i++) {
			r->asleep[i] = r->fds[i];
			if (r->begun[i])
				r->asleep[i] =
					(struct pollfd){vb_rs_wake_fd(r->sockets[i]), POLLIN, 0};
			else if (r->sockets[i])
				r->asleep[i].fd = -1;
		}
		r->asleep[r->count] = (struct pollfd){bell.fd, POLLIN, 0};
		slept = vb_sys_poll(r->asleep, (unsigned int)r->count + 1, time_left(end)) >= 0;
		if (!slept)
			n = -errno;
	}
	for (nfds_t i = 0; i < r->count; i++) {
		if (r->begun[i])
			vb_rs_woken(r->sockets[i], slept && r->asleep[i].revents);
	}
	vb_rs_bell_leave(&bell);
	return n;
}

static int wait_for(const struct round *r, int timeout)
{
	uint64_t start, end, spin;
	int n = look(r);

	if (n || !timeout)
		return n;
	start = vb_clock_ns();
	end = timeout < 0 ? UINT64_MAX : start + (uint64_t)timeout * 1000000ull;
	spin = start + vb_rs_config()->polling_ns;
	for (;;) {
		uint64_t now = vb_clock_ns();

		n = now < spin ? look(r) : sleep_once(r, end);
		if (n)
			return n;
		if (vb_clock_ns() >= end)
			return look(r);
		vb_pause();
	}
}

static int poll_with(struct round *r, int timeout)
{
	int n;

	for (nfds_t i = 0; i < r->count; i++) {
		r->sockets[i] = r->fds[i].fd < 0 ? NULL : vb_rs_get(r->fds[i].fd);
		r->has_others |= !r->sockets[i] && r->fds[i].fd >= 0;
		r->fds[i].revents = 0;
	}
	n = wait_for(r, timeout);
	for (nfds_t i = 0; i < r->count; i++) {
		if (r->sockets[i])
			vb_rs_put(r->fds[i].fd);
	}
	return n;
}

/* The memory of a call with many descriptors, kept by its thread for the next one. */
static __thread void *kept __attribute__((tls_model("initial-exec")));
static __thread nfds_t kept_for __attribute__((tls_model("initial-exec")));
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_key(void)
{
	pthread_key_create(&key, free);
}

static void *memory_for(nfds_t count)
{
	size_t each = sizeof(struct pollfd) + sizeof(struct vb_rsocket *) + sizeof(bool);
	void *memory;

	if (kept_for >= count)
		return kept;
	memory = malloc((count + 1) * each);
	if (!memory)
		return NULL;
	pthread_once(&once, make_key);
	free(kept);
	kept = memory;
	kept_for = count;
	pthread_setspecific(key, memory);
	return memory;
}

VB_EXPORT int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	struct vb_rsocket *sockets[FEW];
	struct pollfd asleep[FEW + 1];
	bool begun[FEW];
	struct round r = {fds, nfds, sockets, asleep, begun, false};

	if (nfds > FEW) {
		if (nfds > 1u << 20)
			return (int)vb_rs_answer(-EINVAL);
		r.sockets = memory_for(nfds);
		if (!r.sockets)
			return (int)vb_rs_answer(-ENOMEM);
		r.asleep = (struct pollfd *)(void *)(r.sockets + nfds);
		r.begun = (bool *)(void *)(r.asleep + nfds + 1);
	}
	return (int)vb_rs_answer(poll_with(&r, timeout));
}
