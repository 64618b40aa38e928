/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: when a process is killed (SIGKILL, at a random moment, with or
 * without a sleeping forked child of it alive), then in its peer
 *   - all send work requests complete within a second, the first one in error
 *     with RETRY_EXC, those behind it and later ones with FLUSH,
 *   - posted receives stay until their queue pair is moved,
 *   - other connections go on (a canary counts all the time),
 * and nothing of the dead process is left: no name in /proc/net/unix, no file
 * in /dev/shm, no descriptor in the survivor.
 *
 * This process is the referee: it owns seed, clock and signal and opens no
 * device. One survivor lives through all rounds, each round has a new victim.
 *
 * usage: killed_peer [ROUNDS [SEED]]
 */
#include "procs/leftovers.h"
#include "procs/survivor.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/process.h"
#include "support/random.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * "Within a second" is what the library promises; on a machine with fewer cores
 * than the test has threads the observer may get its turn late.
 */
enum { PROMISED_US = 1000000, ALLOWANCE_US = 500000 };
/* A peer that died before first contact is merely absent: the retries run their course. */
enum { ABSENT_US = 5000000 };
enum { LATEST_KILL_US = 12000, SETTLED = 20, DESCRIPTOR_SLACK = 6 };

static struct kill_shared *shared;

/* A forked child that outlives its parent, which would keep locks and sockets alive. */
static pid_t sleeping_child(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		watchdog(watchdog_seconds());
		for (;;)
			pause();
	}
	return pid;
}

_Noreturn static void victim_traffic(struct endpoint *ep, bool initiates, bool polls)
{
	struct ibv_cq *cq = ep->resources->cq;
	uint64_t posted = 0, completed = 0;
	struct ibv_wc wc = {0};

	while (initiates || polls) {
		if (initiates && posted - completed < KILL_WINDOW)
			kill_mix(ep, posted++, true, true);
		if (ibv_poll_cq(cq, 1, &wc) != 1)
			continue;
		if (wc.status != IBV_WC_SUCCESS)
			completion_print(&wc);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		if (wc.wr_id == UINT64_MAX)
			CHECK_ZERO(ep_recv(ep, UINT64_MAX, 4096, KILL_MESSAGE));
		else
			completed++;
	}
	for (;;)
		pause();
}

static int victim(int sock, void *argument)
{
	const struct kill_round *round = argument;
	struct resources resources;
	struct endpoint ep;
	pid_t child = 0;
	int i;

	promise("the victim works until it is killed");
	resources_open(&resources, 1024, false);
	ep_open_on(&ep, &resources, NULL, NULL, KILL_SIZE);
	for (i = 0; i < KILL_RECEIVES; i++)
		CHECK_ZERO(ep_recv(&ep, UINT64_MAX, 4096, KILL_MESSAGE));
	if (round->forked)
		child = sleeping_child();
	message_send(sock, &child, sizeof(child));
	if (round->mode == KILL_NO_CONTACT) {
		message_send(sock, &ep.local, sizeof(ep.local));
		for (;;)
			pause();
	}
	ep_exchange(&ep, sock);
	victim_traffic(&ep, round->mode == KILL_RECEIVING || round->mode == KILL_MIXED,
		       round->victim_polls);
}

static int canary_send(int sock, void *unused)
{
	struct resources resources;
	struct endpoint ep;
	bool last = false;

	(void)unused;
	promise("other connections go on when a process dies");
	resources_open(&resources, 256, false);
	ep_open_on(&ep, &resources, NULL, NULL, 4096);
	ep_exchange(&ep, sock);
	/* One more after the stop, so that the thread blocking for it sees the stop. */
	while (!last) {
		last = shared->stop;
		CHECK_ZERO(ep_send(&ep, 0, 0, KILL_MESSAGE, IBV_SEND_SIGNALED));
		completion_expect(resources.cq, 0, IBV_WC_SUCCESS, NULL);
		sleep_ms(1);
	}
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static void canary_lives(void)
{
	uint64_t count = shared->canary;
	uint64_t until = now_ms() + 2000;

	while (shared->canary < count + 2) {
		CHECK_SAY(now_ms() < until, "the canary connection stands still");
		sleep_ms(1);
	}
}

/* The kernel may close a dead process's files a little after its parent was told. */
static void nothing_left(const struct names *names)
{
	uint64_t until = now_ms() + PROMISED_US / 1000;
	const char *name;

	while ((name = names_still_bound(names))) {
		CHECK_SAY(now_ms() < until, "the name %s is still bound", name);
		sleep_ms(5);
	}
	name = shared_file_left();
	CHECK_SAY(!name, "/dev/shm/%s is left", name);
}

/* Brings survivor and victim together, as far as this round wants it. */
static void introduce(struct process *survivor, struct process *dying,
		      const struct kill_round *round)
{
	struct peer peer, unused;

	if (round->mode != KILL_NO_CONTACT) {
		message_relay(survivor->sock, dying->sock, sizeof(peer));
		message_relay(survivor->sock, dying->sock, 1);
		return;
	}
	message_receive(dying->sock, &peer, sizeof(peer));
	message_receive(survivor->sock, &unused, sizeof(unused));
	message_send(survivor->sock, &peer, sizeof(peer));
}

static void play(struct process *survivor, const struct kill_round *round, uint64_t wait_us,
		 struct kill_report *report)
{
	uint64_t bound = round->mode == KILL_NO_CONTACT ? ABSENT_US : PROMISED_US + ALLOWANCE_US;
	struct process dying;
	struct names names;
	pid_t child;

	shared->killed_us = 0;
	process_start(&dying, victim, (void *)(uintptr_t)round);
	message_receive(dying.sock, &child, sizeof(child));
	if (child)
		process_adopt(child);
	message_send(survivor->sock, round, sizeof(*round));
	names_of_process(dying.pid, &names);
	CHECK_SAY(names.count, "the victim has bound no name");
	introduce(survivor, &dying, round);
	usleep((useconds_t)wait_us);
	shared->killed_us = now_us();
	process_kill(&dying);
	message_send(survivor->sock, "k", 1);
	nothing_left(&names);
	message_receive(survivor->sock, report, sizeof(*report));
	CHECK_SAY(report->error_after_us < bound, "errors came %llu us after the kill",
		  (unsigned long long)report->error_after_us);
	canary_lives();
	if (child)
		process_reap(child);
}

static void finish(struct process *survivor, struct process *canary)
{
	struct kill_round quit = {.quit = true};

	shared->stop = true;
	message_meet(canary->sock);
	message_send(survivor->sock, &quit, sizeof(quit));
	process_expect_success(survivor, PROCESS_PATIENCE_MS);
	process_expect_success(canary, PROCESS_PATIENCE_MS);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 200;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (now_us() | 1);
	struct process survivor, canary;
	struct kill_report report = {0};
	enum kill_mode slowest_mode = KILL_ONE_SIDED;
	uint64_t slowest = 0;
	int settled = 0;
	int i;

	printf("seed %llu\n", (unsigned long long)seed);
	watchdog((unsigned int)(120 + rounds));
	/* This process reaps the children of a killed victim. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	shared = memory_shared(sizeof(*shared));
	process_start(&survivor, survivor_main, shared);
	process_start(&canary, canary_send, NULL);
	message_relay(survivor.sock, canary.sock, sizeof(struct peer));
	message_relay(survivor.sock, canary.sock, 1);
	for (i = 0; i < rounds; i++) {
		struct kill_round round = {
			.mode = (enum kill_mode)(i % KILL_MODES),
			.forked = i / KILL_MODES % 2,
			.victim_polls = random_next(&seed) & 1,
		};

		promise(kill_mode_name(round.mode));
		play(&survivor, &round, random_next(&seed) % LATEST_KILL_US, &report);
		if (round.mode != KILL_NO_CONTACT && report.error_after_us > slowest) {
			slowest = report.error_after_us;
			slowest_mode = round.mode;
		}
		if (i == SETTLED)
			settled = report.descriptors;
		CHECK_SAY(i <= SETTLED || report.descriptors <= settled + DESCRIPTOR_SLACK,
			  "the survivor has %d descriptors in round %d, %d in round %d",
			  report.descriptors, i, settled, SETTLED);
	}
	finish(&survivor, &canary);
	printf("%d kills, slowest error %llu us after its kill (%s)\n", rounds,
	       (unsigned long long)slowest, kill_mode_name(slowest_mode));
	return 0;
}
