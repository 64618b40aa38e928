/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Guarded access: another process's memory is touched only while what that process publishes still
 * stands, however long this thread stood still in between.
 *
 * The look at the published words and the access after it are one restartable sequence (rseq(2)).
 * The kernel sends a thread that is preempted, signalled, or stopped and switched away from between
 * the two back to the look, before it executes another instruction. The access is the last
 * instruction of the sequence: a store, a locked instruction, or a system call, which the kernel
 * finishes before the thread stands still. So a thread that stood still (host/standstill.h) does no
 * harm afterwards, and a process that made the words invalid must wait for running copies only
 * (host/mark.c).
 *
 * The C library registers the threads (glibc 2.35 and later). A thread that is not registered
 * (another C library, valgrind, glibc.pthread.rseq=0, a processor that this file does not know)
 * touches no other process's memory: its requests go through the ring.
 */
#ifndef VB_HOST_GUARD_H
#define VB_HOST_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Published words and the values that they had when they were judged. The assembler code knows the
 * layout.
 */
struct vb_guard {
	const uint32_t *first;
	const uint32_t *second;
	const uint64_t *third;
	uint64_t third_is;
	uint32_t first_is;
	uint32_t second_is;
};

/* A guard without words. */
static inline void vb_guard_init(struct vb_guard *guard)
{
	guard->first = &guard->first_is;
	guard->second = &guard->second_is;
	guard->third = &guard->third_is;
	guard->third_is = 0;
	guard->first_is = guard->second_is = 0;
}

/* Copies a guard; the words of the copy are its own. */
static inline void vb_guard_copy(struct vb_guard *to, const struct vb_guard *from)
{
	vb_guard_init(to);
	if (!from)
		return;
	if (from->first != &from->first_is) {
		to->first = from->first;
		to->first_is = from->first_is;
	}
	if (from->second != &from->second_is) {
		to->second = from->second;
		to->second_is = from->second_is;
	}
	if (from->third != &from->third_is) {
		to->third = from->third;
		to->third_is = from->third_is;
	}
}

/* Whether this thread can make guarded accesses. Two loads. */
bool vb_guard_possible(void);

/*
 * Each returns -ESTALE, without having touched anything, when a word has changed; -EOPNOTSUPP when
 * the thread is not registered. A part that was copied before the change stays.
 */

/* Returns the result of the system call, or -errno. */
ssize_t vb_guard_call(const struct vb_guard *guard, long number, const long argument[6]);
int vb_guard_move(const struct vb_guard *guard, void *to, const void *from, size_t bytes);
/* One store of an aligned word. */
int vb_guard_store(const struct vb_guard *guard, uint64_t *word, uint64_t value);
/* *value gets what the word was. */
int vb_guard_add(const struct vb_guard *guard, uint64_t *word, uint64_t *value);
/* *compare gets what the word was. */
int vb_guard_swap(const struct vb_guard *guard, uint64_t *word, uint64_t *compare, uint64_t swap);

#endif
