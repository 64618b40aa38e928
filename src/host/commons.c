/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tables that the processes of a user share by name: joining one, taking a seat, handing the table
 * on.
 */
#include "host/commons.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/reason.h"
#include "base/random.h"
#include "base/sys.h"
#include "host/commons_lock.h"
#include "host/control.h"
#include "host/descriptor.h"
#include "host/private.h"
#include "host/shared.h"
#include "host/trust.h"

#define NAP_NS    (2 * VB_MSEC)
/*
 * A name that is bound for so long without a listener has no owner: a process of this library would
 * have gone on.
 */
#define GHOST_NS  (300 * VB_MSEC)
/* Members that could know of another table are asked for this long. */
#define VERIFY_NS (250 * VB_MSEC)
/* Callers that are served in one turn of the progress thread. */
#define TURN      64
#define NO_SEAT   VB_COMMONS_SEATS

/* The first page of the memory that is shared; the table follows. */
union head {
	struct {
		struct vb_commons_mutex lock;
		/* A number of each taking of a seat, written by the process that has its name. */
		uint32_t taking[VB_COMMONS_SEATS];
	};
	char page[4096];
};
_Static_assert(sizeof(union head) == 4096, "the head is one page");

struct vb_commons {
	struct vb_source source; /* the listening socket of this process's seat */
	struct vb_commons *next;
	char name[VB_COMMONS_NAME];
	size_t bytes;
	union head *head;
	int fd;
	uint32_t seat;
};

/*
 * One attempt to join: its deadline, and since when names were seen that are bound and have no
 * listener.
 */
struct joining {
	int64_t until;
	int64_t unclear[VB_COMMONS_SEATS];
};

/*
 * Tables that were left. The progress thread may be about to look at them, so they are used again
 * and never freed.
 */
static struct vb_commons *left;
static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;

static size_t file_bytes(const struct vb_commons *c)
{
	return sizeof(*c->head) + c->bytes;
}

bool vb_commons_seat_taken(const struct vb_commons *commons, uint32_t seat, bool suspect)
{
	enum vb_seat what;
	int err;

	if (seat == commons->seat)
		return true;
	if (!suspect)
		return vb_seat_is_bound(commons->name, seat);
	err = vb_seat_look(commons->name, seat, &what);
	/* A failure to find out is not held against the seat. */
	return err || what == VB_SEAT_OURS;
}

uint32_t vb_commons_taking(const struct vb_commons *commons, uint32_t seat)
{
	return __atomic_load_n(&commons->head->taking[seat], __ATOMIC_ACQUIRE);
}

/*
 * The caller holds the lock, without which leaving may end either. The program may have put its own
 * files under these numbers.
 */
static bool is_intact(const struct vb_commons *c)
{
	return c->source.fd >= 0 && vb_descriptor_ours(c->source.fd) && vb_descriptor_ours(c->fd);
}

static int commons_accept(struct vb_node *node, const struct vb_commons *c)
{
	int fd = -1;

	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	if (is_intact(c))
		fd = vb_sys_accept4(c->source.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	vb_mutex_release(&node->lock);
	return fd;
}

static void commons_send(struct vb_node *node, const struct vb_commons *c, int fd)
{
	struct vb_control msg = {
		.magic = VB_CONTROL_MAGIC,
		.version = VB_CONTROL_VERSION,
		.type = VB_CONTROL_COMMONS,
		.nonce = c->bytes,
	};

	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	if (is_intact(c))
		(void)vb_control_send(fd, &msg, &c->fd, 1);
	vb_mutex_release(&node->lock);
}

/*
 * A process asks for the table. Every process of the network namespace can connect; only kin of
 * this user gets an answer. Callers are judged without the lock, because judging reads /proc.
 */
static bool commons_serve(struct vb_node *node, const struct vb_commons *c)
{
	int fd = commons_accept(node, c);

	if (fd < 0)
		return false;
	if (vb_trust_socket_is_kin(fd, true))
		commons_send(node, c, fd);
	vb_sys_close(fd);
	return true;
}

static void commons_ready(struct vb_node *node, struct vb_source *source, uint32_t events)
{
	struct vb_commons *c = (struct vb_commons *)source; /* its first member */

	(void)events;
	for (int i = 0; i < TURN; i++) {
		if (!commons_serve(node, c))
			return;
	}
	/*
	 * More callers may wait. They are served in the next turn, so that other sources have
	 * theirs.
	 */
	vb_node_source_again(node, source, EPOLLIN | EPOLLET);
}

enum { COUNTS = 1, COUNTS_YET };

/*
 * Whether another process that answers, or may answer yet, has the seat. -errno when the system is
 * short of something.
 */
static int seat_counts(const struct vb_commons *c, struct joining *j, uint32_t seat)
{
	enum vb_seat what;
	int err = vb_seat_look(c->name, seat, &what);

	if (err)
		return err;
	if (what != VB_SEAT_UNCLEAR) {
		/*
		 * The next time its backlog may be full, because this process is in it: the seat
		 * stays another user's.
		 */
		j->unclear[seat] = what == VB_SEAT_FOREIGN;
		return what == VB_SEAT_OURS ? COUNTS : 0;
	}
	if (!j->unclear[seat])
		j->unclear[seat] = vb_node_clock();
	return vb_node_clock() - j->unclear[seat] < GHOST_NS ? COUNTS_YET : 0;
}

/* As seat_counts(), once that is settled. */
static int seat_settle(const struct vb_commons *c, struct joining *j, uint32_t seat)
{
	struct timespec nap = {0, NAP_NS};
	int counts = seat_counts(c, j, seat);

	while (counts == COUNTS_YET) {
		vb_sys_nanosleep(&nap);
		counts = seat_counts(c, j, seat);
	}
	return counts;
}

/* The time of all unclear names runs at once. -EADDRINUSE: a process listens. */
static int look_at_all(const struct vb_commons *c, struct joining *j)
{
	for (uint32_t seat = 0; seat < VB_COMMONS_SEATS; seat++) {
		int counts = seat == c->seat ? 0 : seat_counts(c, j, seat);

		if (counts < 0 || counts == COUNTS)
			return counts < 0 ? counts : -EADDRINUSE;
	}
	return 0;
}

/* -EADDRINUSE: another process has a seat, or is about to. */
static int be_alone(const struct vb_commons *c, struct joining *j)
{
	int err = look_at_all(c, j);

	for (uint32_t seat = 0; !err && seat < VB_COMMONS_SEATS; seat++) {
		int counts = j->unclear[seat] && seat != c->seat ? seat_settle(c, j, seat) : 0;

		if (counts)
			err = counts < 0 ? counts : -EADDRINUSE;
	}
	return err;
}

static int seat_keep(struct vb_commons *c, uint32_t seat)
{
	int fd = vb_seat_bind(c->name, seat);

	if (fd < 0)
		return fd;
	c->source.fd = fd;
	c->seat = seat;
	return 0;
}

/* The maker of the table takes the first seat that can be had, so that there is one maker. */
static int take_first_seat(struct vb_commons *c, struct joining *j)
{
	for (uint32_t seat = 0; seat < VB_COMMONS_SEATS; seat++) {
		int err = seat_keep(c, seat);

		if (err != -EADDRINUSE)
			return err;
		err = seat ? 0 : look_at_all(c, j);
		if (!err)
			err = seat_settle(c, j, seat);
		if (err)
			return err < 0 ? err : -EADDRINUSE;
	}
	return -EADDRNOTAVAIL;
}

static int take_any_seat(struct vb_commons *c)
{
	for (uint32_t seat = 0; seat < VB_COMMONS_SEATS; seat++) {
		int err = seat_keep(c, seat);

		if (err != -EADDRINUSE)
			return err;
	}
	return -EUSERS;
}

/* Before others can see the new member they see that it is another one. */
static int seat_listen(struct vb_commons *c)
{
	__atomic_store_n(&c->head->taking[c->seat], vb_random32(), __ATOMIC_RELEASE);
	return listen(c->source.fd, SOMAXCONN) ? -errno : 0;
}

/* As be_alone(), for seats with a listener. */
static int be_first(const struct vb_commons *c)
{
	uint32_t seat;
	int fd = -1;
	int err = vb_seat_ask(c->name, 0, c->seat, vb_node_clock(), &fd, &seat);

	vb_descriptor_close(fd);
	if (err == -ENOENT)
		return 0;
	return vb_system_is_short(err) ? err : -EADDRINUSE;
}

/*
 * No member was found. The process on the first seat may make the table if no other seat is taken:
 * a member that has died may have had a successor that did not listen yet. The seats are looked at
 * again when others can see this one, because this process may have stood still in between, for
 * long enough to be passed over.
 */
static int table_make(struct vb_commons *c, struct joining *j)
{
	void *map = NULL;
	int err = take_first_seat(c, j);

	if (!err)
		err = be_alone(c, j);
	if (!err)
		err = vb_shared_create_common("verbatim-commons", file_bytes(c), &map, &c->fd);
	if (err)
		return err;
	c->head = map;
	err = vb_commons_mutex_init(&c->head->lock);
	if (!err)
		err = seat_listen(c);
	return err ? err : be_first(c);
}

static bool same_file(int a, int b)
{
	struct stat sa, sb;

	return !fstat(a, &sa) && !fstat(b, &sb) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/*
 * The giver of the table may have died before this process had a seat, and a process that found no
 * member may have made another table since. A process that came by asking gives way to one that is
 * there. -EADDRINUSE: start again.
 */
static int verify(const struct vb_commons *c, uint32_t giver)
{
	int64_t until = vb_node_clock() + VERIFY_NS;
	struct timespec nap = {0, NAP_NS};
	uint32_t seat;
	int fd = -1;
	int err = vb_seat_ask(c->name, giver, c->seat, until, &fd, &seat);

	while (err == -EADDRINUSE && vb_node_clock() < until) {
		vb_sys_nanosleep(&nap);
		err = vb_seat_ask(c->name, giver, c->seat, until, &fd, &seat);
	}
	if (vb_system_is_short(err))
		return err;
	if (err) /* no other member, or only members that are stopped */
		return 0;
	err = same_file(fd, c->fd) ? 0 : -EADDRINUSE;
	vb_descriptor_close(fd);
	return err;
}

static void commons_drop(struct vb_commons *c)
{
	if (c->head)
		vb_shared_unmap(c->head, file_bytes(c));
	vb_descriptor_close(c->fd);
	vb_descriptor_close(c->source.fd);
	c->head = NULL;
	c->fd = c->source.fd = -1;
	c->seat = NO_SEAT;
}

static int table_take(struct vb_commons *c, int fd)
{
	const char *defect = "";
	void *map = NULL;
	int err;

	c->fd = fd;
	err = vb_shared_map(fd, file_bytes(c), true, &map, &defect);
	c->head = map;
	if (err)
		vb_note(VB_REASON_PEER_VERSION, "the shared table %s: %s", c->name, defect);
	return err;
}

static int try_join(struct vb_commons *c, struct joining *j, bool create, bool *fresh)
{
	uint32_t giver = 0;
	int fd = -1;
	int err = vb_seat_ask(c->name, 0, NO_SEAT, j->until, &fd, &giver);

	*fresh = err == -ENOENT;
	if (err == -ENOENT && create)
		return table_make(c, j);
	if (err == -ENOENT) {
		err = be_alone(c, j);
		return err ? err : -ENOENT;
	}
	if (err)
		return err;
	err = table_take(c, fd);
	if (!err)
		err = take_any_seat(c);
	if (!err)
		err = seat_listen(c);
	return err ? err : verify(c, giver);
}

static struct vb_commons *commons_new(const char *name, size_t bytes)
{
	vb_mutex_take(&left_lock, VB_ORDER_COMMONS_LEFT);
	struct vb_commons *c = left;

	if (c)
		left = c->next;
	vb_mutex_release(&left_lock);
	if (!c)
		c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	memset(c, 0, sizeof(*c));
	/*
	 * The user at the time of opening: seats keep their names when the process changes its
	 * user.
	 */
	snprintf(c->name, sizeof(c->name), "%u/%s", geteuid(), name);
	c->bytes = bytes;
	c->fd = c->source.fd = -1;
	c->seat = NO_SEAT;
	c->source.ready = commons_ready;
	return c;
}

static void commons_retire(struct vb_commons *c)
{
	commons_drop(c);
	vb_mutex_take(&left_lock, VB_ORDER_COMMONS_LEFT);
	c->next = left;
	left = c;
	vb_mutex_release(&left_lock);
}

/* Another process is coming or going: tries again until that is clear, or time is over. */
static int join(struct vb_commons *c, bool create, bool *fresh)
{
	struct joining j = {.until = vb_node_clock() + VB_COMMONS_JOIN_NS};
	struct timespec nap = {0, NAP_NS};

	for (;;) {
		int err = try_join(c, &j, create, fresh);

		if (err != -EADDRINUSE || vb_node_clock() > j.until)
			return err == -EADDRINUSE ? -EBUSY : err;
		commons_drop(c);
		vb_sys_nanosleep(&nap);
	}
}

int vb_commons_join(struct vb_node *node, const char *name, size_t bytes, bool create,
		    struct vb_commons **out, bool *fresh)
{
	struct vb_commons *c = commons_new(name, bytes);
	int err;

	if (!c)
		return -ENOMEM;
	err = join(c, create, fresh);
	if (!err) {
		vb_mutex_take(&node->lock, VB_ORDER_NODE);
		err = vb_node_source_add(node, &c->source, EPOLLIN | EPOLLET);
		vb_mutex_release(&node->lock);
	}
	if (err) {
		commons_retire(c);
		return err;
	}
	*out = c;
	return 0;
}

void vb_commons_leave(struct vb_node *node, struct vb_commons *c)
{
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	vb_node_source_remove(node, &c->source);
	vb_mutex_release(&node->lock);
	commons_retire(c);
}

void *vb_commons_table(const struct vb_commons *commons)
{
	return commons->head + 1;
}

uint32_t vb_commons_seat(const struct vb_commons *commons)
{
	return commons->seat;
}

bool vb_commons_try(struct vb_commons *commons)
{
	return vb_commons_mutex_try(&commons->head->lock);
}

bool vb_commons_lock(struct vb_commons *commons)
{
	return vb_commons_mutex_take(&commons->head->lock, VB_COMMONS_LOCK_NS);
}

void vb_commons_unlock(struct vb_commons *commons)
{
	vb_commons_mutex_release(&commons->head->lock);
}

void vb_commons_forked(void)
{
	pthread_mutex_init(&left_lock, NULL);
	left = NULL;
}
