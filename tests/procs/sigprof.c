/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a storm of signals (a profiler's SIGPROF by CPU time, and a timer's
 * SIGUSR1 every 50 us of real time) disturbs nothing: traffic loses nothing,
 * and no handler of the program ever runs on a thread of the library.
 *
 * usage: sigprof [MESSAGES]
 */
#include "procs/stream.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { SHORTEST_US = 100, LONGEST_US = 1000, CLOCK_US = 50, CHANGE_EVERY = 5000 };

static uint64_t messages;
static volatile sig_atomic_t signals;
static volatile sig_atomic_t astray;
static pid_t own_thread;

static void handle(int number)
{
	(void)number;
	signals++;
	if ((pid_t)syscall(SYS_gettid) != own_thread)
		astray++;
}

static timer_t clock_timer;

static void profile_every(unsigned int us)
{
	struct itimerval timer = {.it_interval = {.tv_usec = us}, .it_value = {.tv_usec = us}};

	CHECK_ZERO(setitimer(ITIMER_PROF, &timer, NULL));
}

static void alarm_every(unsigned int us)
{
	struct timespec interval = {.tv_nsec = (long)us * 1000};
	struct itimerspec timer = {.it_interval = interval, .it_value = interval};

	CHECK_ZERO(timer_settime(clock_timer, 0, &timer, NULL));
}

/* The storm gets denser and thinner; system calls are restarted or interrupted in turn. */
static void change_storm(struct stream *stream, uint64_t number)
{
	struct sigaction action = {.sa_handler = handle};

	(void)stream;
	action.sa_flags = number / CHANGE_EVERY % 2 ? SA_RESTART : 0;
	sigemptyset(&action.sa_mask);
	CHECK_ZERO(sigaction(SIGPROF, &action, NULL));
	CHECK_ZERO(sigaction(SIGUSR1, &action, NULL));
	profile_every(number / CHANGE_EVERY % 3 ? SHORTEST_US : LONGEST_US);
	alarm_every(CLOCK_US);
}

static void play(int sock, bool sends)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct resources resources;
	struct endpoint ep;
	struct stream stream = {
		.ep = &ep, .messages = messages, .hook = change_storm, .hook_every = CHANGE_EVERY};

	promise("a stream loses nothing in a storm of signals");
	own_thread = (pid_t)syscall(SYS_gettid);
	CHECK_ZERO(timer_create(CLOCK_MONOTONIC, &event, &clock_timer));
	/* Also while the library starts: its thread must begin with all signals blocked. */
	change_storm(&stream, 0);
	resources_open(&resources, 256, false);
	ep_open_on(&ep, &resources, NULL, NULL, STREAM_SIZE);
	stream_prepare(&ep);
	ep_exchange(&ep, sock);
	if (sends)
		stream_send(&stream);
	else
		stream_receive(&stream);
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	profile_every(0);
	alarm_every(0);
	CHECK_SAY(signals > 0, "the timers never fired: nothing was tested");
	CHECK_SAY(!astray, "%d of %d signals ran on another thread", (int)astray, (int)signals);
}

int main(int argc, char **argv)
{
	messages = argc > 1 ? strtoull(argv[1], NULL, 0) : 100000;
	watchdog(120);
	stream_between(play);
	return 0;
}
