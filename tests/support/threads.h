/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The other threads of a test's process, which are mostly the library's. */
#ifndef TESTS_SUPPORT_THREADS_H
#define TESTS_SUPPORT_THREADS_H

/*
 * Waits until every other thread of the process sleeps and has not run for some milliseconds: then it
 * is in none of the system calls that return at once. Ends the test if that does not come to pass.
 */
void threads_rest(void);

#endif
