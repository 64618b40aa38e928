/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which ways the messages of a process took, as the library logs it when a context is closed: for
 * tests of a way that is taken for its cost alone, which nothing else shows.
 */
#ifndef TESTS_SUPPORT_PATHS_H
#define TESTS_SUPPORT_PATHS_H

struct paths {
	unsigned long long short_sent, short_received; /* messages on the short way */
	unsigned long long lent_offered, lent_taken;   /* halves of lent payloads */
};

/* To be called before the process opens its first device: the log goes to memory. */
void paths_begin(void);
/* After a device was closed: the sum of the process so far. */
struct paths paths_end(void);

#endif
