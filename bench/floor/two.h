/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the floors are made of: two processes on two cores with a mapping that both have, a clock,
 * and the table of what a program can measure.
 *
 * usage of each: PROGRAM [-c CORE] [-d CORE] NAME[:SIZE]...
 * -c and -d are the cores of this process and of the other one. One line for each word: the word,
 * a space, and the figure, the median of many samples.
 */
#ifndef BENCH_FLOOR_TWO_H
#define BENCH_FLOOR_TWO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { TWO_SAMPLES = 41 };

struct two_figure {
	const char *name;
	double (*measure)(size_t size);
};

/* The program: measures what its arguments name. Ends with a list of NULLs. */
int two_main(int argc, char **argv, const struct two_figure *figures);

/* Zeroed memory that children have, too. */
void *two_shared(size_t size);
/* Private memory, written once. */
void *two_private(size_t size);
void two_free(void *memory, size_t size);

/* Starts `other` in a process on the second core, which dies with this one. */
pid_t two_start(void (*other)(void *), void *argument);
/* Waits for its end; a bad end is this program's. */
void two_end(pid_t pid);

uint64_t two_ns(void);
double two_median(double *samples, int count);
_Noreturn void two_fail(const char *what);

static inline void two_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif
