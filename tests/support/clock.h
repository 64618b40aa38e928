/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Time in tests: a watchdog for each process, monotonic time, sleeping, and busy waits. */
#ifndef TESTS_SUPPORT_CLOCK_H
#define TESTS_SUPPORT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Ends the process with status 1 and a message after this many seconds (0: never). */
void watchdog(unsigned int seconds);
unsigned int watchdog_seconds(void);

/* Monotonic time. */
uint64_t now_ms(void);
uint64_t now_us(void);
/* The whole time, also when signals arrive. */
void sleep_ms(unsigned int ms);

/* One turn of a busy wait: a pause, and now and then sched_yield(2). */
void spin_once(unsigned int *turns);
/*
 * One turn of a wait for what may take long, such as a time-out: yields for the first 2 ms since
 * @begun (now_us()), then sleeps 0.1 ms a turn, which leaves the processor to other tests. Did it sleep?
 */
bool wait_once(uint64_t begun);

#endif
