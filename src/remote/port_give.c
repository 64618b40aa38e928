/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Giving sockets of the port to processes of the domain. Everybody can call, as often as he wants:
 * so many callers are answered in a turn, and as many wait in the socket's queue. So whoever has
 * got into the queue is answered in the next turn, which comes a millisecond later, or on a busy
 * machine when the scheduler lets it come. Who finds the queue full tries again. Opening a socket
 * costs more than refusing one, and a socket that its receiver does not read takes its share of the
 * packets that are not steered: so fewer are given than callers answered.
 */
#include "remote/port.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/reason.h"
#include "base/sys.h"
#include "engine/progress.h"
#include "host/abstract.h"
#include "host/control.h"
#include "host/descriptor.h"
#include "host/domain.h"
#include "base/clock.h"
#include "remote/sockets.h"
#include "udp/holder.h"
#include "udp/socket.h"
#include "wire/packet.h"

#define CALLERS_A_TURN 128u
#define TURN_NS        1000000ull
#define GIVEN_AT_ONCE  64u
#define GIVEN_NS       4000000ull /* a socket more in each such time */
/*
 * With so many sockets of the port no more are given: processes find their place among 256 only
 * (remote/steer.h), and those of this user are to find theirs, whatever others do with sockets.
 */
#define SOCKETS_MOST   192u

static struct giver {
	pthread_mutex_t lock;
	int listener[2];      /* IPv6, IPv4; -1: none */
	uint64_t given_until; /* the rate of giving is used up until then */
	_Atomic uint64_t due;
} giver = {.lock = PTHREAD_MUTEX_INITIALIZER, .listener = {-1, -1}};

void vb_port_give_begin(bool ipv4)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = VB_UDP_TAG_CALLERS};
	char name[VB_ABSTRACT_NAME];

	if (!vb_domain_is_named())
		return;
	snprintf(name, sizeof(name), "verbatim/%u/port%d/%08x", geteuid(), ipv4 ? 4 : 6,
		 vb_random32());
	vb_mutex_take(&giver.lock, VB_ORDER_PORT);
	vb_descriptor_close(giver.listener[ipv4]);
	int fd = giver.listener[ipv4] = vb_abstract_listen(name, CALLERS_A_TURN);

	if (fd >= 0)
		(void)epoll_ctl(vb_udp_sockets_epoll(), EPOLL_CTL_ADD, fd, &event);
	else
		vb_log(VB_LOG_INFO, "no sockets of the port for other users: %s", strerror(-fd));
	vb_mutex_release(&giver.lock);
}

void vb_port_give_end(bool ipv4)
{
	vb_mutex_take(&giver.lock, VB_ORDER_PORT);
	vb_descriptor_close(giver.listener[ipv4]);
	giver.listener[ipv4] = -1;
	vb_mutex_release(&giver.lock);
}

static bool may_give(uint64_t now)
{
	if (giver.given_until < now)
		giver.given_until = now;
	if (giver.given_until - now >= GIVEN_AT_ONCE * GIVEN_NS)
		return false;
	giver.given_until += GIVEN_NS;
	return true;
}

/* A socket of the port, or -1 and why not. */
static int socket_for(const struct vb_domain *domain, int caller, bool ipv4, char *why, size_t size)
{
	uint32_t buffer;
	const char *refusal = NULL;
	int fd = -1;

	if (!domain || !vb_domain_admits(domain, caller))
		refusal = "its VERBATIM_DOMAIN does not have this process";
	else if (!may_give(vb_clock_ns()))
		refusal = "it has given too many sockets just now";
	else if (vb_udp_port_sockets(ipv4, VB_UDP_PORT) >= SOCKETS_MOST)
		refusal = "the port has too many sockets already";
	else if ((fd = vb_udp_open_receiver(ipv4, &buffer)) < 0)
		refusal = strerror(-fd);
	else
		vb_udp_mute(fd);
	if (refusal)
		snprintf(why, size, "%s", refusal);
	return fd;
}

static void caller_serve(const struct vb_domain *domain, int caller, bool ipv4)
{
	struct vb_control answer = {
		.magic = VB_CONTROL_MAGIC,
		.version = VB_CONTROL_VERSION,
		.type = VB_CONTROL_PORT,
	};
	int fd = socket_for(domain, caller, ipv4, answer.text, sizeof(answer.text));

	if (fd >= 0)
		vb_log(VB_LOG_INFO, "a socket of the port is given to another user (IPv%d)",
		       ipv4 ? 4 : 6);
	else
		vb_note(VB_REASON_STRANGERS, "another user asks for the port (IPv%d): %s",
			ipv4 ? 4 : 6, answer.text);
	(void)vb_control_send(caller, &answer, &fd, fd >= 0);
	if (fd >= 0)
		vb_sys_close(fd);
	vb_sys_close(caller);
}

/* True: more callers may be waiting, or there is no descriptor for them. */
static bool callers_serve(bool ipv4)
{
	int listener = giver.listener[ipv4];
	struct vb_domain domain;

	if (listener < 0 || !vb_descriptor_ours(listener))
		return false;
	bool any = vb_domain_read(&domain);

	for (uint32_t i = 0; i < CALLERS_A_TURN; i++) {
		int caller = vb_sys_accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (caller < 0)
			return errno != EAGAIN;
		caller_serve(any ? &domain : NULL, caller, ipv4);
	}
	return true;
}

void vb_port_give_ready(void)
{
	atomic_store(&giver.due, 1);
}

static uint64_t serve(void)
{
	uint64_t due = atomic_load_explicit(&giver.due, memory_order_relaxed);
	uint64_t now = due ? vb_clock_ns() : 0;
	bool more;

	if (!due || now < due)
		return due;
	if (!vb_mutex_try(&giver.lock, VB_ORDER_PORT)) {
		atomic_store(&giver.due, now + TURN_NS);
		return now + TURN_NS;
	}
	more = callers_serve(true);
	more |= callers_serve(false);
	vb_mutex_release(&giver.lock);
	atomic_store(&giver.due, more ? now + TURN_NS : 0);
	return more ? now + TURN_NS : 0;
}

static void forked(void)
{
	memset(&giver, 0, sizeof(giver));
	pthread_mutex_init(&giver.lock, NULL);
	giver.listener[0] = giver.listener[1] = -1;
}

VB_PROGRESS_HOOK(.serve = serve);

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);
