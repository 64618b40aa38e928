/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A system that gives nothing: the program's own malloc(3), mmap(2), eventfd(2) and the like, which
 * the library finds before the C library's, fail where a test says so. Those that the C library
 * calls of itself (getifaddrs(3) and its socket) are out of reach, but for malloc.
 */
#ifndef TESTS_CALLS_CONTEXT_FAILING_H
#define TESTS_CALLS_CONTEXT_FAILING_H

#include <stdbool.h>
#include <stdint.h>

enum failing_kind {
	FAILING_MEMORY,      /* malloc and its relatives: ENOMEM */
	FAILING_MAPS,        /* mmap, and room in a memfd: ENOMEM */
	FAILING_DESCRIPTORS, /* whatever makes a descriptor: EMFILE */
	FAILING_SYSTEM,      /* what is done with a fresh descriptor: ENOBUFS */
	FAILING_THREADS,     /* pthread_create: EAGAIN, which a verb calls ENOMEM */
	FAILING_KINDS,
};

const char *failing_name(enum failing_kind kind);
int failing_errno(enum failing_kind kind);

/*
 * From now on the @kth request of this kind by this thread (the first is 1) fails; with @lasting
 * all after it, too.
 */
void failing_start(enum failing_kind kind, unsigned int kth, bool lasting);
/* Whether it came to that. */
bool failing_stop(void);

/* The same of all threads, which count together. stop: the number of requests so far. */
void failing_everywhere(enum failing_kind kind, unsigned int kth, bool lasting);
unsigned int failing_everywhere_stop(void);

/* NULL, or where the callers of a request that failed for all threads are noted. */
#define FAILING_FRAMES 12
extern void **failing_frames;

/*
 * The largest piece of a file that was to be filled with memory since the last call. More than 1
 * GiB is refused here (ENOMEM), since the kernel would kill processes rather than refuse it.
 */
uint64_t failing_largest_piece(void);

/*
 * What this process has of the system, all threads together, once the library's threads have
 * settled.
 */
struct failing_held {
	long blocks; /* of malloc and its relatives */
	long mapped; /* bytes of mmap */
	long descriptors;
};

struct failing_held failing_held(void);

#endif
