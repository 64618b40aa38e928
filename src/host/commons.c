/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tables that the processes of a user share by name: finding a member, taking a seat, handing the table on. */
#include "host/commons.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/reason.h"
#include "base/sys.h"
#include "host/control.h"
#include "host/descriptor.h"
#include "host/private.h"
#include "host/shared.h"

/* A member that does not answer within this may be stopped; another is asked, then all again. */
#define ANSWER_MS 200
#define NAP_NS    (2 * VB_MSEC)
#define JOIN_NS   (10000 * VB_MSEC)

struct vb_commons {
	struct vb_source source; /* the listening socket of our seat */
	struct vb_commons *next;
	char name[64];
	size_t bytes;
	void *table;
	int table_fd;
	struct vb_atomic_lock *lock;
	int lock_fd;
	uint32_t seat;
};

/* Left, but the progress thread may be about to look at them: they are used again, never freed. */
static struct vb_commons *left;
static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;

static socklen_t seat_address(struct sockaddr_un *addr, const char *name, uint32_t seat)
{
	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	int n = snprintf(addr->sun_path + 1, sizeof(addr->sun_path) - 1, "verbatim/%u/%s/%u",
			 geteuid(), name, seat);

	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* A socket with the name of a seat, or -errno. */
static int seat_bind(const char *name, uint32_t seat)
{
	struct sockaddr_un addr;
	socklen_t len = seat_address(&addr, name, seat);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&addr, len)) {
		int err = -errno;

		vb_sys_close(fd);
		return err;
	}
	return fd;
}

/* 0: nobody sits there; -EADDRINUSE: somebody does; other -errno: nobody knows. */
static int seat_look(const char *name, uint32_t seat)
{
	int fd = seat_bind(name, seat);

	if (fd < 0)
		return fd;
	vb_sys_close(fd);
	return 0;
}

bool vb_commons_seat_taken(const struct vb_commons *commons, uint32_t seat)
{
	return seat == commons->seat || seat_look(commons->name, seat);
}

/* Somebody wants the table. Everybody who can connect is of this network namespace; only our user gets an answer. */
static void commons_ready(struct vb_node *node, struct vb_source *source, uint32_t events)
{
	struct vb_commons *c = (struct vb_commons *)source; /* its first member */
	struct vb_control msg = {
		.magic = VB_CONTROL_MAGIC,
		.version = VB_CONTROL_VERSION,
		.type = VB_CONTROL_COMMONS,
		.nonce = c->bytes,
	};
	int fds[2] = {c->table_fd, c->lock_fd};

	(void)node;
	(void)events;
	for (;;) {
		struct ucred cred = {0};
		socklen_t len = sizeof(cred);
		int fd = vb_sys_accept4(c->source.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) && cred.uid == geteuid())
			(void)vb_control_send(fd, &msg, fds, 2);
		vb_sys_close(fd);
	}
}

/*
 * What the member of that seat gives. 0; -ECONNREFUSED: nobody sits there; -EADDRINUSE: somebody does who does not listen yet, or any more;
 * other -errno: no answer.
 */
static int seat_ask(const char *name, uint32_t seat, int fds[2])
{
	struct sockaddr_un addr;
	socklen_t len = seat_address(&addr, name, seat), cred_len = sizeof(struct ucred);
	struct vb_control msg;
	struct ucred cred = {0};
	int got[VB_CONTROL_FDS], num = 0, err = 0;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (vb_sys_connect(fd, (struct sockaddr *)&addr, len))
		err = -errno;
	else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) || cred.uid != geteuid())
		err = -EPERM;
	if (!err && vb_sys_poll_one(fd, POLLIN, ANSWER_MS) != 1)
		err = -ETIMEDOUT;
	if (!err) {
		int n = vb_control_receive(fd, &msg, got, &num);

		if (n != 1 || num != 2 || msg.type != VB_CONTROL_COMMONS)
			err = vb_system_is_short(n) ? n : -EPROTO;
	}
	vb_sys_close(fd);
	for (int i = 0; err && i < num; i++)
		vb_descriptor_close(got[i]);
	if (!err)
		memcpy(fds, got, 2 * sizeof(int));
	if (err != -ECONNREFUSED)
		return err;
	err = seat_look(name, seat);
	return err ? err : -ECONNREFUSED;
}

/*
 * The first member other than `but` that answers. -ENOENT: there is none; -EADDRINUSE: somebody is coming or going; -EBUSY: none
 * answered; a lack of the system's, which waiting for other members does not cure.
 */
static int find_member(const char *name, uint32_t but, int fds[2])
{
	int found = -ENOENT;

	for (uint32_t seat = 0; seat < VB_COMMONS_SEATS; seat++) {
		int err = seat == but ? -ECONNREFUSED : seat_ask(name, seat, fds);

		if (!err || vb_system_is_short(err))
			return err;
		if (err == -EADDRINUSE && found == -ENOENT)
			found = err;
		else if (err != -ECONNREFUSED && err != -EADDRINUSE)
			found = -EBUSY;
	}
	return found;
}

static int take_seat(struct vb_commons *c, uint32_t from)
{
	for (uint32_t seat = from; seat < VB_COMMONS_SEATS; seat++) {
		int fd = seat_bind(c->name, seat);

		if (fd >= 0) {
			c->source.fd = vb_descriptor_adopt(fd);
			c->seat = seat;
			return 0;
		}
		if (fd != -EADDRINUSE)
			return fd;
		if (!c->table) /* who makes the table sits on the first seat, so that there is one maker */
			return -EADDRINUSE;
	}
	return -EBUSY;
}

static int table_map(struct vb_commons *c, const int fds[2])
{
	const char *defect = "";
	int err;

	c->table_fd = fds[0];
	c->lock_fd = fds[1];
	err = vb_shared_map(c->table_fd, c->bytes, true, &c->table, &defect);
	if (!err)
		err = vb_atomic_lock_map(c->lock_fd, &c->lock, &defect);
	if (err)
		vb_note(VB_REASON_PEER_VERSION, "the shared table %s: %s", c->name, defect);
	return err;
}

static int seat_listen(struct vb_commons *c)
{
	return listen(c->source.fd, SOMAXCONN) ? -errno : 0;
}

/*
 * Nobody was found. Who has the first seat may make the table, if no other seat is taken: a member that has died may have had a
 * successor that did not listen yet.
 */
static int table_make(struct vb_commons *c)
{
	int err = take_seat(c, 0);

	for (uint32_t seat = 1; !err && seat < VB_COMMONS_SEATS; seat++)
		err = seat_look(c->name, seat);
	if (!err)
		err = vb_shared_create_common("verbatim-commons", c->bytes, &c->table,
					      &c->table_fd);
	if (!err)
		err = vb_atomic_lock_create(&c->lock, &c->lock_fd);
	return err ? err : seat_listen(c);
}

static bool same_file(int a, int b)
{
	struct stat sa, sb;

	return !fstat(a, &sa) && !fstat(b, &sb) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/*
 * Whoever gave us the table may have died before we had a seat, and somebody who found none may have made another one since: who
 * came by asking gives way to who is there. -EADDRINUSE: start again.
 */
static int verify(const struct vb_commons *c)
{
	int fds[2] = {-1, -1};
	int64_t until = vb_node_clock() + JOIN_NS;
	struct timespec nap = {0, NAP_NS};
	int err = find_member(c->name, c->seat, fds);

	while (err == -EADDRINUSE && vb_node_clock() < until) {
		vb_sys_nanosleep(&nap);
		err = find_member(c->name, c->seat, fds);
	}
	if (vb_system_is_short(err))
		return err;
	if (err) /* alone with it, or with others that are stopped */
		return 0;
	err = same_file(fds[0], c->table_fd) ? 0 : -EADDRINUSE;
	vb_descriptor_close(fds[0]);
	vb_descriptor_close(fds[1]);
	return err;
}

static void commons_drop(struct vb_commons *c)
{
	if (c->table)
		vb_shared_unmap(c->table, c->bytes);
	if (c->lock)
		vb_atomic_lock_unmap(c->lock);
	vb_descriptor_close(c->table_fd);
	vb_descriptor_close(c->lock_fd);
	vb_descriptor_close(c->source.fd);
	c->table = NULL;
	c->lock = NULL;
	c->table_fd = c->lock_fd = c->source.fd = -1;
}

static int try_join(struct vb_commons *c, bool create, bool *fresh)
{
	int fds[2] = {-1, -1};
	int err = find_member(c->name, VB_COMMONS_SEATS, fds);

	*fresh = err == -ENOENT;
	if (err == -ENOENT && create)
		return table_make(c);
	if (err)
		return err;
	err = table_map(c, fds);
	if (!err)
		err = take_seat(c, 0);
	if (!err)
		err = seat_listen(c);
	return err ? err : verify(c);
}

static struct vb_commons *commons_new(const char *name, size_t bytes)
{
	pthread_mutex_lock(&left_lock);
	struct vb_commons *c = left;

	if (c)
		left = c->next;
	pthread_mutex_unlock(&left_lock);
	if (!c)
		c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	memset(c, 0, sizeof(*c));
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->bytes = bytes;
	c->table_fd = c->lock_fd = c->source.fd = -1;
	c->source.ready = commons_ready;
	return c;
}

static void commons_retire(struct vb_commons *c)
{
	commons_drop(c);
	pthread_mutex_lock(&left_lock);
	c->next = left;
	left = c;
	pthread_mutex_unlock(&left_lock);
}

int vb_commons_join(struct vb_node *node, const char *name, size_t bytes, bool create,
		    struct vb_commons **out, bool *fresh)
{
	struct vb_commons *c = commons_new(name, bytes);
	struct timespec nap = {0, NAP_NS};
	int64_t until = vb_node_clock() + JOIN_NS;
	int err;

	if (!c)
		return -ENOMEM;
	for (;;) {
		err = try_join(c, create, fresh);
		if ((err != -EADDRINUSE && err != -EBUSY) || vb_node_clock() > until)
			break;
		commons_drop(c);
		vb_sys_nanosleep(&nap);
	}
	if (!err) {
		pthread_mutex_lock(&node->lock);
		err = vb_node_source_add(node, &c->source, EPOLLIN);
		pthread_mutex_unlock(&node->lock);
	}
	if (err) {
		commons_retire(c);
		return err == -EADDRINUSE ? -EBUSY : err;
	}
	*out = c;
	return 0;
}

void vb_commons_leave(struct vb_node *node, struct vb_commons *c)
{
	pthread_mutex_lock(&node->lock);
	vb_node_source_remove(node, &c->source);
	pthread_mutex_unlock(&node->lock);
	commons_retire(c);
}

void *vb_commons_table(const struct vb_commons *commons)
{
	return commons->table;
}

uint32_t vb_commons_seat(const struct vb_commons *commons)
{
	return commons->seat;
}

bool vb_commons_lock(struct vb_commons *commons)
{
	return !vb_atomic_lock_take(commons->lock);
}

void vb_commons_unlock(struct vb_commons *commons)
{
	vb_atomic_lock_release(commons->lock);
}

void vb_commons_forked(void)
{
	pthread_mutex_init(&left_lock, NULL);
	left = NULL;
}
