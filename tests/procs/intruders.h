/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program's own files, pipes, sockets and so on, put by dup2(2) under every number from 3 to
 * 1023, where the library's descriptors were. Each number gets another kind in each turn.
 * Afterwards it is checked that none of them was written, read, waited for or closed. One set in a
 * process. All functions end the test on failure.
 */
#ifndef TESTS_PROCS_INTRUDERS_H
#define TESTS_PROCS_INTRUDERS_H

#include <stddef.h>

/* Turns after which every number has had every kind. */
enum { INTRUDERS_TURNS = 11 };

/* Opens them, and takes the numbers. */
void intruders_take(unsigned int turn);
/* Checks that all is as it was. Does nothing before intruders_take(). */
void intruders_check(void);

#endif
