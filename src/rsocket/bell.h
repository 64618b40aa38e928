/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a thread that sleeps learns of what another thread of its process did: the event of a
 * completion queue goes to one thread only, and connections come and end in the service thread.
 *
 *	vb_rs_bell_hold(&bell);
 *	... look whether there is something to be done ...
 *	poll(2) of bell.fd and others;
 *	vb_rs_bell_leave(&bell);
 *
 * Who changes something calls vb_rs_bell_ring() afterwards. It rings for all that hold a bell; they
 * look again. Without one that sleeps it costs a load.
 */
#ifndef VB_RSOCKET_BELL_H
#define VB_RSOCKET_BELL_H

#include <stdbool.h>

struct vb_rs_bell {
	int fd;
	bool rung;
	struct vb_rs_bell *next, **at;
};

/* The descriptor is the thread's, and lives as long. 0, or a negative errno: fd is -1 then. */
int vb_rs_bell_hold(struct vb_rs_bell *bell);
void vb_rs_bell_leave(struct vb_rs_bell *bell);
void vb_rs_bell_ring(void);

/* In a forked child: nobody sleeps. */
void vb_rs_bell_forked(void);

/* Moves a descriptor out of the way of the program's, close-on-exec. Takes ownership. */
int vb_rs_fd_move_up(int fd);

#endif
