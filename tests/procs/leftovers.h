/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a process owns that other processes can see, and whether it is gone after the process's end.
 */
#ifndef TESTS_PROCS_LEFTOVERS_H
#define TESTS_PROCS_LEFTOVERS_H

#include <stdbool.h>
#include <sys/types.h>

enum { LEFTOVERS_NAMES = 16, LEFTOVERS_NAME = 110 };

/* The abstract socket names that a process has bound. */
struct names {
	int count;
	char name[LEFTOVERS_NAMES][LEFTOVERS_NAME];
};

void names_of_process(pid_t pid, struct names *names);

/* The first of them that exists, whichever process holds it, or NULL. */
const char *names_still_bound(const struct names *names);

/* The name of a file of this library in /dev/shm, or NULL. The answer is a static buffer. */
const char *shared_file_left(void);

/* How many descriptors this process has. */
int descriptors_open(void);

#endif
