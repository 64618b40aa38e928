/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The names by which the members of a shared table (commons.h) are found: one abstract unix socket
 * for each seat. The process that listens on it has the seat. A name that another user has taken is
 * no seat, and no call waits for it.
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
	VB_SEAT_FOREIGN, /* a process of another user listens */
	/*
	 * Taken without a listener, or the backlog is full: a member that is coming, or a squatter.
	 */
	VB_SEAT_UNCLEAR,
};

/* Returns an adopted socket that is bound to the name; -EADDRINUSE, -errno. */
int vb_seat_bind(const char *name, uint32_t seat);
/* True also where that cannot be found out. Does not disturb the owner. */
bool vb_seat_is_bound(const char *name, uint32_t seat);
/* Tells whose the seat is. Does not wait. -errno when the system is short of something. */
int vb_seat_look(const char *name, uint32_t seat, enum vb_seat *what);

/*
 * The table of the first member that answers. Asks from seat `from` on, never seat `but`; `until`
 * by vb_node_clock(). A member that stands still delays the search by a fraction of a second. 0 and
 * *fd, *seat; -ENOENT: no member; -EADDRINUSE: a member hung up; -ETIMEDOUT: no member answered in
 * time; -errno when the system is short of something.
 */
int vb_seat_ask(const char *name, uint32_t from, uint32_t but, int64_t until, int *fd,
		uint32_t *seat);

/*
 * Whether another user has a table of this name. Found by the names that processes have taken
 * (proc_pid_net(5)), so it is false where these cannot be read.
 */
bool vb_seat_of_another(const char *name, unsigned int *uid);

#endif
