/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * No wake-up is lost: a thread takes its bell, arms the completion queue, looks, and then sleeps. The
 * event of the queue goes to one thread; it rings for others that sleep for the same queue. Each
 * sleep has a bound, after which the thread looks again.
 */
#include "rsocket/wait.h"

#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "base/pause.h"
#include "base/sys.h"
#include "rsocket/bell.h"
#include "rsocket/config.h"
#include "rsocket/datagram.h"

enum { LOOKS_A_CLOCK = 16 }; /* the clock is read once in so many looks */

#define SILENCE_NS 5000000000ull

bool vb_rs_progress(struct vb_rsocket *rs)
{
	return rs->datagram ? vb_datagram_progress(rs) : vb_stream_progress(&rs->stream);
}

bool vb_rs_arm(struct vb_rsocket *rs)
{
	__atomic_add_fetch(&rs->sleepers, 1, __ATOMIC_SEQ_CST);
	return rs->datagram ? vb_datagram_arm(rs) : vb_stream_arm(&rs->stream);
}

/*
 * A thread waits, and nothing comes. A peer that died without a word is found by a message that its
 * program does not see: it is not acknowledged.
 */
static void probe(struct vb_rsocket *rs)
{
	uint64_t come, now;

	if (rs->datagram || vb_rs_state(rs) != VB_RS_CONNECTED || vb_stream_ends(&rs->stream))
		return;
	now = vb_clock_ns();
	come = __atomic_load_n(&rs->stream.arrived.bytes, __ATOMIC_RELAXED);
	if (!__atomic_load_n(&rs->probe_at, __ATOMIC_RELAXED) ||
	    come != __atomic_load_n(&rs->probe_seen, __ATOMIC_RELAXED)) {
		__atomic_store_n(&rs->probe_seen, come, __ATOMIC_RELAXED);
		__atomic_store_n(&rs->probe_at, now + SILENCE_NS, __ATOMIC_RELAXED);
	} else if (now >= __atomic_load_n(&rs->probe_at, __ATOMIC_RELAXED)) {
		__atomic_store_n(&rs->probe_at, now + SILENCE_NS, __ATOMIC_RELAXED);
		vb_stream_keepalive(&rs->stream);
	}
}

void vb_rs_woken(struct vb_rsocket *rs, bool fired)
{
	if (fired && rs->datagram)
		vb_datagram_woken(rs);
	else if (fired)
		vb_stream_woken(&rs->stream);
	if (!fired)
		probe(rs);
	if (__atomic_sub_fetch(&rs->sleepers, 1, __ATOMIC_SEQ_CST) && fired)
		vb_rs_bell_ring();
}

int vb_rs_wake_fd(struct vb_rsocket *rs)
{
	return rs->datagram ? vb_datagram_wake_fd(rs) : rs->stream.channel->fd;
}

bool vb_rs_can_send(struct vb_rsocket *rs)
{
	return rs->datagram ? vb_datagram_can_send(rs) : vb_stream_can_send(&rs->stream);
}

bool vb_rs_can_receive(struct vb_rsocket *rs)
{
	return rs->datagram ? vb_datagram_can_receive(rs) : vb_stream_can_receive(&rs->stream);
}

/* Looks for a while. */
static bool spin(struct vb_rsocket *rs, vb_rs_ready ready)
{
	uint64_t end = 0, length = vb_rs_config()->polling_ns;

	if (!length)
		return ready(rs);
	for (uint32_t look = 0; !ready(rs); look++) {
		if (vb_rs_is_closing(rs))
			return false;
		if (look % LOOKS_A_CLOCK == 0) {
			uint64_t now = vb_clock_ns();

			if (!end)
				end = now + length;
			else if (now > end)
				return false;
		}
		if (!vb_rs_progress(rs))
			vb_pause();
	}
	return true;
}

static int time_left(uint64_t deadline)
{
	uint64_t wake = vb_rs_config()->wake_ms;
	uint64_t now, left;

	if (!deadline)
		return (int)wake;
	now = vb_clock_ns();
	left = now < deadline ? (deadline - now + 999999) / 1000000 : 0;
	return (int)(left < wake ? left : wake);
}

static int sleep_once(struct vb_rsocket *rs, vb_rs_ready ready, uint64_t deadline)
{
	struct vb_rs_bell bell;
	int err = vb_rs_bell_hold(&bell);
	bool fired = false;

	if (!vb_rs_arm(rs) && !err && !ready(rs) && !vb_rs_is_closing(rs)) {
		struct pollfd fds[] = {{.fd = vb_rs_wake_fd(rs), .events = POLLIN},
				       {.fd = bell.fd, .events = POLLIN}};

		if (vb_sys_poll(fds, 2, time_left(deadline)) < 0)
			err = -errno;
		fired = fds[0].revents;
	}
	vb_rs_woken(rs, fired);
	vb_rs_bell_leave(&bell);
	return err;
}

int vb_rs_wait(struct vb_rsocket *rs, vb_rs_ready ready, uint64_t deadline)
{
	if (spin(rs, ready))
		return 0;
	for (;;) {
		int err = sleep_once(rs, ready, deadline);

		if (vb_rs_is_closing(rs))
			return -EBADF;
		if (ready(rs))
			return 0;
		if (err)
			return err;
		if (deadline && vb_clock_ns() >= deadline)
			return -EAGAIN;
	}
}
