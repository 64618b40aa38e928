/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The descriptors of this room: at high numbers, close-on-exec, and known to a table that a forked child can walk without a
 * lock. Thread-safe.
 */
#ifndef VB_HOST_DESCRIPTOR_H
#define VB_HOST_DESCRIPTOR_H

#include <errno.h>
#include <stdbool.h>

/* A negative errno that says that the system has nothing to give now: the same may succeed later. */
static inline bool vb_system_is_short(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -ENOBUFS;
}

/*
 * Takes over `fd`: moves it to a high number (or leaves it where no higher one is free), remembers it. Returns the number, -1 with
 * errno if there is none; a negative argument is returned as it is.
 */
int vb_descriptor_adopt(int fd);

/*
 * Does this number still stand for the file that was adopted under it? A program that closes descriptors which it did not open may
 * have got the number for a file of its own. To be asked before each use. What happens between the question and the use cannot be
 * seen: closing descriptors while other threads are in calls is the program's race.
 */
bool vb_descriptor_ours(int fd);

/* The same by its mark alone: one light system call, for fast paths. */
bool vb_descriptor_still(int fd);

/* Are so many numbers free now (at most VB_DESCRIPTOR_ROOM)? `fd` is any open file. Not a promise: other threads take them too. */
#define VB_DESCRIPTOR_ROOM 8
bool vb_descriptor_room(int fd, int n);

/* Closes an adopted descriptor and forgets it. Does nothing with -1 or with a number that is not (or no longer) ours. */
void vb_descriptor_close(int fd);

/* In a forked child: closes every inherited one. Async-signal-safe. */
void vb_descriptor_close_inherited(void);

#endif
