/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The names by which the members of a shared table (commons.h) are found: one abstract unix socket a seat. Whoever
 * listens on it has the seat. A name that another user has taken is no seat, and nobody waits for it.
 */
#ifndef VB_HOST_COMMONS_SEAT_H
#define VB_HOST_COMMONS_SEAT_H

#include <stdbool.h>
#include <stdint.h>

#define VB_COMMONS_SEATS 512u
#define VB_COMMONS_NAME  80u

enum vb_seat {
	VB_SEAT_FREE,
	VB_SEAT_OURS,    /* a process of this user listens */
	VB_SEAT_FOREIGN, /* another user's does */
	VB_SEAT_UNCLEAR, /* taken, but nobody listens, or the backlog is full: a member that is coming, or a squatter */
};

/* A socket bound to the name, adopted; -EADDRINUSE, -errno. */
int vb_seat_bind(const char *name, uint32_t seat);
/* True also where that cannot be found out. Nobody is disturbed. */
bool vb_seat_is_bound(const char *name, uint32_t seat);
/* Who is there? Does not wait. -errno when the system is short of something. */
int vb_seat_look(const char *name, uint32_t seat, enum vb_seat *what);

/*
 * The table of the first member that answers, asked beginning with seat `from`, never seat `but`; `until` by
 * vb_node_clock(). A member that stands still delays the search by a fraction of a second, not more. 0 and *fd, *seat;
 * -ENOENT: nobody is there;
 * -EADDRINUSE: somebody was there and hung up;
 * -ETIMEDOUT: nobody answered in time; -errno when the system is short of something.
 */
int vb_seat_ask(const char *name, uint32_t from, uint32_t but, int64_t until, int *fd,
		uint32_t *seat);

/*
 * Has another user a table of this name? Found by the names that processes have taken (proc_pid_net(5)), so it
 * says something only where that can be read.
 */
bool vb_seat_of_another(const char *name, unsigned int *uid);

#endif
