/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promises about ibv_open_xrcd(3) while others are in the way; no call takes longer than its manual
 * page says:
 *   stopped   processes that have a file's domain open stand still: as long as one of them runs,
 *             others open it; when none does, they are refused with EBUSY, and domains of other
 *             files are not held up meanwhile
 *   squatted  another user takes the names of the domain, with and without listening: they are
 *             passed over; all names taken: EBUSY
 *   full      every seat is taken: EBUSY, and one fits again when one has gone
 *   crowd     many more than 64 processes have one domain
 *
 * usage: xrc_domain stopped|squatted|full|crowd [PROCESSES]
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/network.h"
#include "support/process.h"
#include "support/xrc.h"

#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* BOUND_MS: ibv_open_xrcd(3). */
enum { SEATS = 512, BOUND_MS = 3000, HOLDERS = 6, MOST = 220, CROWD_MS = 200000 };

struct shared {
	char path[64];
	char prefix[108]; /* of the domain's names, which end with the seat */
	uint32_t qpn;
};

static struct shared *shared;

/* Opens the domain within the bound. */
static struct ibv_xrcd *open_in_time(struct ibv_context *context, int oflags, int err)
{
	uint64_t since = now_ms();
	struct ibv_xrcd *xrcd;

	errno = 0;
	xrcd = xrc_domain(context, shared->path, oflags);
	CHECK_EQ(xrcd ? 0 : errno, err);
	CHECK_SAY(now_ms() - since < BOUND_MS, "ibv_open_xrcd took %llu ms",
		  (unsigned long long)(now_ms() - since));
	return xrcd;
}

/* Has the domain open until it is told to go. */
static int holder(int sock, void *unused)
{
	struct resources resources;
	struct ibv_xrcd *xrcd;

	(void)unused;
	resources_open(&resources, 16, false);
	xrcd = xrc_domain(resources.context, shared->path, O_CREAT);
	CHECK_SAY(xrcd, "errno %d", errno);
	message_meet(sock);
	message_meet(sock);
	CHECK_ZERO(ibv_close_xrcd(xrcd));
	resources_close(&resources);
	return 0;
}

/* stopped */

static struct resources resources;
static _Atomic bool other_done;

static void *opens_others(void *unused)
{
	uint64_t since = now_ms();

	for (int i = 0; i < 5; i++) {
		struct ibv_xrcd *xrcd = xrc_domain(resources.context, NULL, O_CREAT);

		CHECK(xrcd);
		CHECK_ZERO(ibv_close_xrcd(xrcd));
	}
	CHECK_SAY(now_ms() - since < BOUND_MS / 2, "other domains took %llu ms",
		  (unsigned long long)(now_ms() - since));
	other_done = true;
	return unused;
}

static void stopped_test(void)
{
	struct process process[HOLDERS];
	struct ibv_xrcd *xrcd;
	pthread_t thread;

	promise("a domain is opened beside members that stand still");
	for (int i = 0; i < HOLDERS; i++) {
		process_start(&process[i], holder, NULL);
		message_meet(process[i].sock);
	}
	resources_open(&resources, 16, false);
	for (int i = 0; i < HOLDERS - 1; i++)
		process_stop(&process[i]);
	for (int i = 0; i < 3; i++) {
		xrcd = open_in_time(resources.context, 0, 0);
		CHECK_ZERO(ibv_close_xrcd(xrcd));
	}
	promise("when none of them runs, opening is refused in time, and nobody else waits");
	process_stop(&process[HOLDERS - 1]);
	CHECK_ZERO(pthread_create(&thread, NULL, opens_others, NULL));
	open_in_time(resources.context, O_CREAT, EBUSY);
	CHECK(other_done);
	CHECK_ZERO(pthread_join(thread, NULL));
	promise("and works when they go on");
	for (int i = 0; i < HOLDERS; i++)
		process_continue(&process[i]);
	xrcd = open_in_time(resources.context, 0, 0);
	CHECK_ZERO(ibv_close_xrcd(xrcd));
	for (int i = 0; i < HOLDERS; i++) {
		message_meet(process[i].sock);
		process_expect_success(&process[i], PROCESS_PATIENCE_MS);
	}
	resources_close(&resources);
}

/* squatted, full */

/* Finds out the beginning of the domain's names: another process of this user has it open. */
static void learn_prefix(void)
{
	FILE *table = fopen("/proc/self/net/unix", "re");
	char line[512], wanted[40];
	bool found = false;

	CHECK(table);
	snprintf(wanted, sizeof(wanted), "@verbatim/%u/xrc-", geteuid());
	while (!found && fgets(line, sizeof(line), table)) {
		char *at = strstr(line, wanted), *end = at ? strrchr(at, '/') : NULL;

		if (!at)
			continue;
		*end = '\0';
		snprintf(shared->prefix, sizeof(shared->prefix), "%s", at + 1);
		found = true;
	}
	fclose(table);
	CHECK_SAY(found, "no name %s", wanted);
}

/* Backlog -1: does not listen. False: another process has the name. */
static bool take_name(int seat, int backlog)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int n = snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1, "%s/%d", shared->prefix,
			 seat);

	CHECK(fd >= 0);
	if (bind(fd, (struct sockaddr *)&addr,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n))) {
		close(fd);
		return false;
	}
	if (backlog >= 0)
		CHECK_ZERO(listen(fd, backlog));
	return true;
}

static int squatter(int sock, void *unused)
{
	int seats;

	(void)unused;
	CHECK_ZERO(setgroups(0, NULL));
	CHECK_ZERO(setresgid(PROCESS_USER, PROCESS_USER, PROCESS_USER));
	CHECK_ZERO(setresuid(PROCESS_USER, PROCESS_USER, PROCESS_USER));
	for (int from = 0;; from = seats) {
		message_receive(sock, &seats, sizeof(seats));
		if (!seats)
			return 0;
		/* A backlog of 0 makes connect(2) of a blocking socket wait for ever. */
		for (int seat = from; seat < seats; seat++)
			CHECK(take_name(seat, seat % 3 - 1));
		message_send(sock, &seats, sizeof(seats));
	}
}

static void squat(struct process *process, int seats)
{
	message_send(process->sock, &seats, sizeof(seats));
	if (seats)
		message_receive(process->sock, &seats, sizeof(seats));
}

/* Another process opens the domain that this one has, whatever stands between. */
static int joins(int sock, void *unused)
{
	struct ibv_xrcd *xrcd;

	(void)unused;
	message_meet(sock);
	resources_open(&resources, 16, false);
	xrcd = open_in_time(resources.context, 0, 0);
	CHECK_ZERO(ibv_close_xrcd(xrcd));
	resources_close(&resources);
	return 0;
}

static void squatted_test(void)
{
	struct process attacker, joiner[2];
	struct ibv_xrcd *xrcd;

	/* Abstract names belong to a network namespace: one of the test's own keeps others out. */
	network_leave();
	promise("names that another user has taken are passed over");
	process_start(&attacker, squatter, NULL);
	for (int i = 0; i < 2; i++)
		process_start(&joiner[i], joins, NULL);
	resources_open(&resources, 16, false);
	xrcd = open_in_time(resources.context, O_CREAT, 0);
	learn_prefix();
	CHECK_ZERO(ibv_close_xrcd(xrcd));
	for (int i = 0; i < 2; i++) {
		squat(&attacker, i ? 200 : 3);
		open_in_time(resources.context, 0, EAGAIN);
		xrcd = open_in_time(resources.context, O_CREAT | O_EXCL, 0);
		message_meet(joiner[i].sock);
		process_expect_success(&joiner[i], PROCESS_PATIENCE_MS);
		CHECK_ZERO(ibv_close_xrcd(xrcd));
	}
	promise("nothing hangs when all are taken");
	squat(&attacker, SEATS);
	open_in_time(resources.context, O_CREAT, EBUSY);
	squat(&attacker, 0);
	process_expect_success(&attacker, PROCESS_PATIENCE_MS);
	xrcd = open_in_time(resources.context, O_CREAT, 0);
	CHECK_ZERO(ibv_close_xrcd(xrcd));
	resources_close(&resources);
}

static void full_test(void)
{
	struct process process, second;
	int taken = 0;

	promise("a domain without a seat refuses");
	process_start(&process, holder, NULL);
	process_start(&second, joins, NULL);
	message_meet(process.sock);
	learn_prefix();
	for (int seat = 0; seat < SEATS; seat++) {
		bool mine = take_name(seat, -1);

		/* Members look at names by binding them for a moment. */
		for (int i = 0; !mine && i < 20; i++) {
			sleep_ms(1);
			mine = take_name(seat, -1);
		}
		taken += mine;
	}
	CHECK_EQ(taken, SEATS - 1);
	resources_open(&resources, 16, false);
	open_in_time(resources.context, 0, EBUSY);
	message_meet(process.sock);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
	resources_close(&resources);
	process_kill(&second);
}

/* crowd */

static int crowd_member(int sock, void *unused)
{
	struct ibv_xrcd *xrcd;
	struct ibv_qp *qp;
	char go;

	(void)unused;
	resources_open(&resources, 16, false);
	xrcd = xrc_domain(resources.context, shared->path, 0);
	CHECK_SAY(xrcd, "ibv_open_xrcd: errno %d", errno);
	qp = xrc_receiver_open(resources.context, xrcd, shared->qpn);
	CHECK_SAY(qp, "ibv_open_qp: errno %d", errno);
	message_meet(sock);
	/* While the others come, however long that takes. */
	CHECK(message_try_receive(sock, &go, 1, CROWD_MS));
	CHECK_ZERO(ibv_destroy_qp(qp));
	CHECK_ZERO(ibv_close_xrcd(xrcd));
	resources_close(&resources);
	return 0;
}

static int crowd_maker(int sock, void *unused)
{
	struct ibv_xrcd *xrcd;
	struct ibv_qp *qp;

	(void)unused;
	resources_open(&resources, 16, false);
	xrcd = xrc_domain(resources.context, shared->path, O_CREAT | O_EXCL);
	CHECK(xrcd);
	qp = xrc_receiver(resources.context, xrcd);
	CHECK(qp);
	shared->qpn = qp->qp_num;
	message_meet(sock);
	sleep_ms(CROWD_MS); /* killed here */
	return 1;
}

static void crowd_test(int processes)
{
	static struct process process[MOST];
	struct process maker;

	promise("hundreds of processes have one domain and one queue pair of it");
	CHECK(processes <= MOST);
	process_start(&maker, crowd_maker, NULL);
	message_meet(maker.sock);
	for (int i = 0; i < processes; i++) {
		process_start(&process[i], crowd_member, NULL);
		message_meet(process[i].sock);
	}
	promise("which goes on without its maker");
	process_kill(&maker);
	for (int i = 0; i < processes; i++) {
		message_send(process[i].sock, "g", 1);
		process_expect_success(&process[i], PROCESS_PATIENCE_MS);
	}
}

int main(int argc, char **argv)
{
	int file;

	watchdog(230);
	CHECK_SAY(argc >= 2, "usage: xrc_domain stopped|squatted|full|crowd [PROCESSES]");
	shared = memory_shared(sizeof(*shared));
	snprintf(shared->path, sizeof(shared->path), "/tmp/vb-xrc-XXXXXX");
	file = mkstemp(shared->path);
	CHECK(file >= 0);
	if (!strcmp(argv[1], "stopped"))
		stopped_test();
	else if (!strcmp(argv[1], "squatted"))
		squatted_test();
	else if (!strcmp(argv[1], "full"))
		full_test();
	else
		crowd_test(argc > 2 ? atoi(argv[2]) : 100);
	unlink(shared->path);
	close(file);
	return 0;
}
