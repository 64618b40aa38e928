/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The descriptors of this room: at high numbers, close-on-exec, and in a table that a forked child
 * can walk without a lock. Thread-safe.
 */
#ifndef VB_HOST_DESCRIPTOR_H
#define VB_HOST_DESCRIPTOR_H

#include <errno.h>
#include <stdbool.h>

#include "base/export.h"
/*
 * A negative errno that means that the system is short of something: the same call may succeed
 * later.
 */
static inline bool vb_system_is_short(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -ENOBUFS;
}

/*
 * Takes ownership of `fd`: moves it to a high number (or leaves it where no higher one is free) and
 * records it. Returns the number, or -1 with errno if there is none. A negative argument is
 * returned as it is.
 */
VB_SHARED int vb_descriptor_adopt(int fd);

/*
 * Whether this number still stands for the file that was adopted under it. A program that closes
 * descriptors which it did not open may have got the number for a file of its own. To be called
 * before each use. A change between this call and the use cannot be seen: closing descriptors while
 * other threads are in calls is the program's race.
 */
VB_SHARED bool vb_descriptor_ours(int fd);

/* As vb_descriptor_ours(), by the mark alone: one light system call, for fast paths. */
VB_SHARED bool vb_descriptor_still(int fd);

/*
 * Whether so many numbers are free now (at most VB_DESCRIPTOR_ROOM). `fd` is any open file. Not a
 * promise: other threads take numbers as well.
 */
#define VB_DESCRIPTOR_ROOM 8
VB_SHARED bool vb_descriptor_room(int fd, int n);

/*
 * Closes an adopted descriptor and forgets it. Does nothing with -1, or with a number that is not
 * (or no longer) the library's.
 */
VB_SHARED void vb_descriptor_close(int fd);

/* In a forked child: closes every inherited descriptor of the table. Async-signal-safe. */
void vb_descriptor_close_inherited(void);

#endif
