/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening, reading and closing the process's sockets to other hosts. */
#include "remote/link.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/fork.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/reason.h"
#include "base/sys.h"
#include "base/port_counters.h"
#include "engine/engine.h"
#include "memory/copy.h"
#include "process/process.h"
#include "remote/deliver.h"
#include "remote/groups.h"
#include "remote/hand_over.h"
#include "remote/part.h"
#include "remote/port.h"
#include "remote/senders.h"
#include "remote/sockets.h"
#include "remote/steer.h"
#include "remote/stray.h"
#include "host/descriptor.h"
#include "host/domain.h"
#include "udp/fault.h"
#include "udp/receive.h"
#include "udp/socket.h"
#include "engine/engine_channel.h"
#include "engine/engines.h"
#include "engine/progress.h"

/*
 * An engine that found nothing so many times reads only in every so many drives: a system call each
 * time would slow its other links.
 */
#define IDLE_LOOKS      256u
#define IDLE_SKIP       16u

/* So many looks at a socket between two checks that it is still the library's. */
#define LOOKS_UNCHECKED 16u
#define LAST_LOOKS      256u          /* batches that a socket can still hold when it is closed */
#define MEND_NS         1000000000ull /* between attempts to open a socket again */
#define LEAVE_NS        1000000ull
#define EXIT_LOOK_NS    200000l
/* The longest time for which the end of the process waits for its strays. */
#define EXIT_NS         100000000ull

/* The longest waits for a process that has the port, and for one that is at work. */
#define ASK_NS          2000000000ull
#define ASK_WORK_NS     10000000000ull
/* The wait for the end of the search for a socket's place. */
#define JOIN_NS         20000000ull
#define NAP_NS          50000l
/* Without a socket: between attempts to get one, which do not wait. */
#define SEEK_NS         100000000ull

struct side {
	uint32_t users;
	uint32_t unchecked; /* looks since the socket was last seen to be the library's */
	/*
	 * Not 0: the program has closed the socket, and the next attempt to open it again is due
	 * then.
	 */
	uint64_t mend_at;
	/*
	 * Not 0: another user has the port, so there is no socket, and the next attempt to get one
	 * is due then.
	 */
	_Atomic uint64_t seek_at;
	struct vb_port_question question; /* the progress thread's */
	/*
	 * A socket that is to be closed: packets that the kernel had begun to put into its queue
	 * are read first.
	 */
	_Atomic int leaving; /* -1: none */
	_Atomic uint64_t left_at;
};

struct link {
	pthread_mutex_t lock; /* opening and closing */
	struct vb_lock drain; /* guards reading; taken after `lock` */
	struct side side[2];
	struct vb_udp_receiver *receiver;
	_Atomic bool emptying; /* a socket that is to be closed is read for the last time */
};

static struct link udp_link = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.drain = VB_LOCK_AT(VB_ORDER_DRAIN),
	.side = {{.leaving = -1}, {.leaving = -1}},
};

static struct side *side_of(unsigned int family)
{
	return &udp_link.side[family == VB_UDP_IPV4 ? 0 : 1];
}

static unsigned int family_of(const struct side *side)
{
	return side == &udp_link.side[0] ? VB_UDP_IPV4 : VB_UDP_IPV6;
}

static void on_event(uint64_t tag)
{
	if (tag >= VB_UDP_TAG_STEER)
		vb_udp_steer_event(tag);
	else
		vb_port_give_ready();
}

static int watch_begin(void)
{
	if (!udp_link.receiver)
		udp_link.receiver = vb_udp_receiver_create();
	if (!udp_link.receiver)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "udp receive buffers");
	return vb_udp_sockets_begin(on_event);
}

/* A receiving socket of this user, adopted. -EADDRINUSE: another user has the port. */
static int own_open(bool ipv4, uint32_t *buffer)
{
	int fd = vb_descriptor_adopt(vb_udp_open_receiver(ipv4, buffer));

	if (fd >= 0)
		vb_port_give_begin(ipv4);
	return fd;
}

/*
 * Without a lock: a receiving socket of this user or, where another user has the port, one that it
 * gives.
 */
static void seek(bool ipv4, const struct vb_port_patience *patience,
		 struct vb_port_question *question, struct vb_udp_got *got)
{
	int fd = vb_descriptor_adopt(vb_udp_open_receiver(ipv4, &got->buffer));

	got->own = fd >= 0;
	got->answer.silent = false;
	if (fd == -EADDRINUSE)
		fd = vb_port_ask(ipv4, patience, question, &got->buffer, &got->answer);
	got->fd = fd;
}

void vb_udp_link_seek(unsigned int family, struct vb_udp_got *got)
{
	struct vb_port_question question = {0};
	static const struct vb_port_patience patience = {ASK_NS, ASK_WORK_NS};

	got->fd = -1;
	got->sought = vb_domain_is_named() && vb_udp_socket_number(family) < 0 &&
		      !atomic_load(&side_of(family)->seek_at);
	if (!got->sought)
		return;
	seek(family == VB_UDP_IPV4, &patience, &question, got);
	vb_port_ask_end(&question);
	if (got->fd == -EADDRINUSE)
		got->served = vb_udp_steer_is_served(family, got->answer.silent ? got->answer.holder
										: (uid_t)-1);
}

void vb_udp_link_seek_end(struct vb_udp_got *got)
{
	vb_descriptor_close(got->fd);
	got->fd = -1;
}

static int got_take(bool ipv4, struct vb_udp_got *got, uint32_t *buffer)
{
	int fd = got->fd;

	got->fd = -1;
	*buffer = got->buffer;
	if (got->own)
		vb_port_give_begin(ipv4);
	return fd;
}

/* There is a socket now. 0 or -errno with the reason recorded. */
static int socket_begin(struct side *side, int fd, uint32_t buffer)
{
	int err = vb_udp_socket_set(family_of(side), fd, buffer);

	if (err) {
		err = vb_refuse(-err, VB_REASON_SYSTEM, "udp link: epoll_ctl: %s", strerror(-err));
		vb_descriptor_close(fd);
		return err;
	}
	atomic_store(&side->seek_at, 0);
	return 0;
}

/* There is no socket: the progress thread seeks one from `at` on. */
static void seek_plan(struct side *side, uint64_t at)
{
	atomic_store(&side->seek_at, at);
	vb_progress_expect(1);
}

static const struct vb_udp_fault_host fault_host = {vb_progress_expect, vb_descriptor_still};

static int side_open(struct side *side, bool ipv4, struct vb_udp_got *got)
{
	bool sought = got && got->sought && got->fd == -EADDRINUSE;
	uint32_t buffer = 0;
	char cure[256];
	int err = watch_begin();
	int fd;

	if (err)
		return err;
	vb_udp_fault_join(&fault_host);
	fd = got && got->fd >= 0 ? got_take(ipv4, got, &buffer) : own_open(ipv4, &buffer);
	if (fd >= 0)
		return socket_begin(side, fd, buffer);
	if (fd != -EADDRINUSE)
		return fd;
	if (!vb_domain_is_named()) {
		vb_port_cure(ipv4, cure, sizeof(cure));
		return vb_udp_refuse_port(ipv4, cure);
	}
	if (sought && !got->served)
		return vb_udp_refuse_port(ipv4, got->answer.why);
	vb_log(VB_LOG_INFO, "udp port (IPv%d): other processes pass packets on; %s", ipv4 ? 4 : 6,
	       sought ? got->answer.why : "a socket is asked for");
	vb_udp_socket_expect(family_of(side), buffer);
	seek_plan(side, sought ? vb_clock_ns() + SEEK_NS : 1);
	return 0;
}

/* Under the lock: whether the family is in use without a socket. */
static bool seeks(const struct side *side)
{
	return side->users && atomic_load(&side->seek_at);
}

/* In the progress thread, without a lock: another attempt to get a socket, which does not wait. */
static void side_seek(struct side *side, bool ipv4)
{
	struct vb_port_patience none = {0, 0};
	struct vb_udp_got got;
	uint32_t buffer = 0;
	int fd;

	seek(ipv4, &none, &side->question, &got);
	vb_mutex_take(&udp_link.lock, VB_ORDER_UDP_LINK);
	if (seeks(side)) {
		atomic_store(&side->seek_at, vb_clock_ns() + SEEK_NS);
		fd = got.fd < 0 ? -1 : got_take(ipv4, &got, &buffer);
		if (fd >= 0 && !socket_begin(side, fd, buffer)) {
			vb_udp_groups_rejoin(ipv4);
			vb_udp_steer_renewed();
		}
	}
	vb_mutex_release(&udp_link.lock);
	vb_udp_link_seek_end(&got);
}

/* Returns when the next attempt is due, 0: none is. */
static uint64_t side_seek_due(struct side *side)
{
	uint64_t at = atomic_load_explicit(&side->seek_at, memory_order_relaxed);

	if (!at && side->question.sock)
		vb_port_ask_end(&side->question);
	if (!at || vb_clock_ns() < at)
		return at;
	if (!vb_mutex_try(&udp_link.lock, VB_ORDER_UDP_LINK))
		return at;
	bool wanted = seeks(side);

	vb_mutex_release(&udp_link.lock);
	if (wanted)
		side_seek(side, side == &udp_link.side[0]);
	return atomic_load(&side->seek_at);
}

/* Under the drain lock. */
static int socket_read(struct vb_engine *e, int fd, bool ipv4, bool looks)
{
	vb_mem_copy_from(vb_udp_receiver_source(udp_link.receiver));
	int n = looks ? vb_udp_look(udp_link.receiver, fd, ipv4, vb_udp_deliver, e)
		      : vb_udp_receive(udp_link.receiver, fd, ipv4, vb_udp_deliver, e);

	vb_mem_copy_from(NULL);
	return n;
}

static void socket_empty(struct vb_engine *e, int fd, bool ipv4)
{
	for (uint32_t i = 0; i < LAST_LOOKS && vb_descriptor_still(fd); i++) {
		if (socket_read(e, fd, ipv4, false) <= 0)
			break;
	}
}

/*
 * After this the progress thread alone reads from the socket, once more. Packets in it that are for
 * another process are passed on.
 */
static void side_leave(struct vb_engine *e, struct side *side, int fd)
{
	unsigned int family = family_of(side);
	bool ipv4 = family == VB_UDP_IPV4;

	vb_udp_steer_part(family);
	if (vb_descriptor_still(fd))
		vb_udp_leave(fd, ipv4);
	vb_lock_take(&udp_link.drain);
	(void)vb_udp_socket_take(family);
	socket_empty(e, fd, ipv4);
	vb_udp_forgive(udp_link.receiver, ipv4);
	vb_lock_release(&udp_link.drain);
	vb_engine_flush(e);
	vb_udp_socket_unwatch(fd);
	atomic_store(&side->left_at, vb_clock_ns());
	fd = atomic_exchange(&side->leaving, fd);
	vb_descriptor_close(fd); /* two sockets were given up within a moment */
	vb_progress_expect(1);
}

static void side_close(struct vb_engine *e, struct side *side)
{
	unsigned int family = family_of(side);
	int fd = vb_udp_socket_number(family);

	(void)vb_udp_fault_serve(UINT64_MAX);
	vb_port_give_end(family == VB_UDP_IPV4);
	atomic_store(&side->seek_at, 0);
	if (fd >= 0) {
		side_leave(e, side, fd);
	} else {
		vb_udp_steer_part(family);
		vb_udp_steer_parted();
	}
	vb_udp_senders_close(family);
	vb_udp_fault_report();
}

/* True: the socket is closed. False: another thread is reading; try later. */
static bool leaving_close(struct side *side, struct vb_engine *keeper)
{
	int fd;

	if (keeper && !vb_engine_try(keeper))
		return false;
	if (!vb_lock_try(&udp_link.drain)) {
		if (keeper)
			vb_lock_release(&keeper->lock);
		return false;
	}
	atomic_store(&udp_link.emptying, true);
	fd = atomic_exchange(&side->leaving, -1);
	if (keeper && fd >= 0)
		socket_empty(keeper, fd, side == &udp_link.side[0]);
	vb_lock_release(&udp_link.drain);
	if (keeper) {
		vb_engine_flush(keeper);
		vb_lock_release(&keeper->lock);
	}
	atomic_store(&udp_link.emptying, false);
	vb_descriptor_close(fd);
	vb_udp_steer_parted();
	return true;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

/*
 * Closes the sockets that were given up a moment ago, seeks those that are missing, and sends what the
 * fault tap has held back.
 */
static uint64_t serve(void)
{
	uint64_t due = vb_udp_fault_active() ? vb_udp_fault_serve(vb_clock_ns()) : 0;

	for (unsigned int i = 0; i < 2; i++) {
		struct side *side = &udp_link.side[i];

		due = sooner(side_seek_due(side), due);
		if (atomic_load_explicit(&side->leaving, memory_order_relaxed) < 0)
			continue;
		uint64_t at = atomic_load(&side->left_at) + LEAVE_NS;

		if (vb_clock_ns() < at || !leaving_close(side, vb_udp_stray_keeper()))
			due = sooner(at, due);
	}
	return due;
}

int vb_udp_link_get(unsigned int family, struct vb_udp_got *got)
{
	struct side *side = side_of(family);
	int err = 0;

	vb_mutex_take(&udp_link.lock, VB_ORDER_UDP_LINK);
	if (!side->users)
		err = side_open(side, family == VB_UDP_IPV4, got);
	if (!err && !side->users++)
		vb_udp_steer_join(family);
	vb_mutex_release(&udp_link.lock);
	return err;
}

void vb_udp_link_put(struct vb_engine *e, unsigned int family)
{
	struct side *side = side_of(family);

	vb_mutex_take(&udp_link.lock, VB_ORDER_UDP_LINK);
	if (!--side->users)
		side_close(e, side);
	vb_mutex_release(&udp_link.lock);
}

/*
 * Under the drain lock: opens another socket in place of the one that the program closed. -1:
 * later.
 */
static int side_mend(struct side *side, bool ipv4)
{
	unsigned int family = family_of(side);
	uint64_t now = vb_clock_ns();
	uint32_t buffer;
	int fd = -1;

	/* A thread that opens or closes takes the drain lock after the other lock. */
	if (now < side->mend_at || !vb_mutex_try(&udp_link.lock, VB_ORDER_UDP_LINK))
		return -1;
	vb_note(VB_REASON_DESCRIPTORS_GONE, "udp socket for IPv%d: another one is opened",
		ipv4 ? 4 : 6);
	vb_descriptor_close(vb_udp_socket_take(family));
	vb_udp_forgive(udp_link.receiver, ipv4);
	if (side->users)
		fd = own_open(ipv4, &buffer);
	side->mend_at = side->users && fd < 0 ? now + MEND_NS : 0;
	if (side->mend_at && fd == -EADDRINUSE && vb_domain_is_named()) {
		side->mend_at = 0;
		seek_plan(side, 1);
	}
	if (fd >= 0) {
		if (vb_udp_socket_replace(family, fd, buffer))
			vb_node_descriptors_gone(vb_process_node_started());
		vb_udp_groups_rejoin(ipv4);
		vb_udp_steer_renewed();
	}
	vb_mutex_release(&udp_link.lock);
	return fd;
}

/* At the port of the engine that has read them: of what is no packet, no other is known. */
static void count_faults(struct vb_engine *e)
{
	struct vb_udp_faults faults = vb_udp_receiver_faults(udp_link.receiver);

	if (!e->port)
		return;
	e->port->rx_errors += faults.packets;
	e->port->rx_icrc += faults.icrc;
}

/* Under the drain lock. */
static bool side_drain(struct vb_engine *e, struct side *side, bool ipv4, bool polled)
{
	bool looks = polled && vb_udp_is_calm(udp_link.receiver);
	int fd = vb_udp_socket_number(family_of(side));
	int n;

	/*
	 * The program may have closed it: the number would be the program's own by now. A look takes
	 * nothing from it.
	 */
	if (!looks || fd < 0 || vb_udp_owed(udp_link.receiver, ipv4) ||
	    ++side->unchecked >= LOOKS_UNCHECKED) {
		side->unchecked = 0;
		if (fd >= 0 ? !vb_descriptor_still(fd) : side->mend_at != 0)
			fd = side_mend(side, ipv4);
	}
	if (fd < 0 || !vb_udp_hand_over_may())
		return false;
	n = socket_read(e, fd, ipv4, looks);
	if (n < 0)
		side->unchecked = LOOKS_UNCHECKED;
	if (n <= 0)
		return false;
	count_faults(e);
	vb_progress_took_packets();
	return true;
}

static bool skip(struct vb_engine *e)
{
	uint32_t looks = e->remote->idle;

	if (looks < IDLE_LOOKS)
		return false;
	e->remote->idle = looks % IDLE_SKIP ? looks + 1 : IDLE_LOOKS + 1;
	return looks % IDLE_SKIP && !__atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED);
}

bool vb_udp_link_drain(struct vb_engine *e, bool polled)
{
	bool worked = false;

	if ((polled && skip(e)) || !vb_lock_try(&udp_link.drain))
		return false;
	worked |= side_drain(e, &udp_link.side[0], true, polled);
	worked |= side_drain(e, &udp_link.side[1], false, polled);
	vb_lock_release(&udp_link.drain);
	if (worked)
		e->remote->idle = 0;
	else if (e->remote->idle < IDLE_LOOKS)
		e->remote->idle++;
	return worked;
}

bool vb_udp_link_take(struct vb_engine *e)
{
	bool worked;

	if (!vb_lock_try(&udp_link.drain))
		return false;
	worked = side_drain(e, &udp_link.side[0], true, false);
	worked |= side_drain(e, &udp_link.side[1], false, false);
	vb_lock_release(&udp_link.drain);
	return worked;
}

void vb_udp_link_await(struct vb_engine *e, unsigned int family)
{
	uint64_t until = vb_clock_ns() + JOIN_NS;

	while (!vb_udp_steer_is_joined(family) && vb_clock_ns() < until) {
		if (vb_engine_try(e)) {
			(void)vb_udp_link_take(e);
			vb_lock_release(&e->lock);
		}
		vb_udp_steer_go_on();
		vb_sys_nanosleep(&(struct timespec){.tv_nsec = NAP_NS});
	}
}

/*
 * In a forked child, after the node's descriptors were closed: everything is the parent's; the
 * child starts afresh.
 */
static void forked(void)
{
	vb_udp_receiver_destroy(udp_link.receiver);
	vb_udp_fault_forget();
	memset(&udp_link, 0, sizeof(udp_link));
	pthread_mutex_init(&udp_link.lock, NULL);
	vb_lock_place(&udp_link.drain, VB_ORDER_DRAIN);
	for (unsigned int i = 0; i < 2; i++)
		atomic_store(&udp_link.side[i].leaving, -1);
}

/*
 * exit(3). The progress thread passes on packets that this process has taken for another one of the
 * host: a datagram is not sent again.
 */
static void at_exit(void)
{
	uint64_t until = vb_clock_ns() + EXIT_NS;

	while ((atomic_load(&udp_link.side[0].leaving) >= 0 ||
		atomic_load(&udp_link.side[1].leaving) >= 0 || atomic_load(&udp_link.emptying) ||
		vb_udp_stray_kept()) &&
	       vb_clock_ns() < until)
		vb_sys_nanosleep(&(struct timespec){0, EXIT_LOOK_NS});
}

VB_PROCESS_HOOK(.at_exit = at_exit);

VB_PROGRESS_HOOK(.serve = serve, .arm = vb_udp_sockets_arm, .rang = vb_udp_sockets_rang);

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);
