/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The calls that no_room.c tries, each with what it needs and how it is undone. */
#ifndef TESTS_CALLS_CONTEXT_ROOM_CALLS_H
#define TESTS_CALLS_CONTEXT_ROOM_CALLS_H

#include <stdbool.h>
#include <stddef.h>

#include "failing.h"
#include "room.h"

struct room_call {
	const char *name;
	bool (*prepare)(struct room *room); /* false: not to be had here */
	int (*make)(struct room *room);     /* 0 or the call's errno */
	int (*undo)(struct room *room);     /* 0 or an errno */
	unsigned int refused; /* ROOM_...: kinds of which some failure must be refused */
	int other_errno;      /* an answer besides the system's, or 0 */
	bool slow;            /* the kernel takes its time: fewer attempts */
	bool meets; /* another process, in its own time: what is held cannot be compared */
};

/* For the tables. */
#define ROOM_MEMORY      (1u << FAILING_MEMORY)
#define ROOM_MAPS        (1u << FAILING_MAPS)
#define ROOM_DESCRIPTORS (1u << FAILING_DESCRIPTORS)
#define ROOM_SYSTEM      (1u << FAILING_SYSTEM)
#define ROOM_THREADS     (1u << FAILING_THREADS)

#define ROOM_CALL(text, before, call, after, ...)                                                 \
	{                                                                                         \
		.name = (text), .prepare = (before), .make = (call), .undo = (after), __VA_ARGS__ \
	}

/* room_calls.c and room_queue_calls.c; a name that is NULL ends each. */
extern const struct room_call room_calls[];
extern const struct room_call room_queue_calls[];

#endif
