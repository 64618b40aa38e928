/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: processes of different users do not reach each other, whatever
 * numbers and keys they know: a SEND or WRITE towards the other user's queue
 * pair ends with RETRY_EXC, the other side sees nothing and loses nothing, and
 * each user's own connections work before and after. Root is a user like any other.
 *
 * Needs root to become two users; skips otherwise.
 */
#include "procs/exercise.h"
#include "support/check.h"
#include "support/process.h"

#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { SIZE = 64 * 1024, FIRST_USER = PROCESS_NOBODY, SECOND_USER = 65533, BYTE = 0x42 };

static void become(uid_t user)
{
	if (user == 0)
		return;
	CHECK_ZERO(setgroups(0, NULL));
	CHECK_ZERO(setresgid(user, user, user));
	CHECK_ZERO(setresuid(user, user, user));
	CHECK_ZERO(prctl(PR_SET_DUMPABLE, 1));
}

/* A user's own pair within its process. */
static void own_pair_works(struct endpoint *endpoint)
{
	struct side here, there;

	side_open(&here, endpoint, NULL, NULL, 4096);
	side_open(&there, endpoint, NULL, NULL, 4096);
	sides_connect(&here, &there);
	memset(here.buffer, BYTE, 64);
	CHECK_ZERO(post_receive(&there, 1, 0, 64));
	CHECK_ZERO(post_send(&here, 2, 0, 64, 0));
	completion_expect(endpoint->cq, 1, IBV_WC_SUCCESS, NULL);
	CHECK_EQ(there.buffer[63], BYTE);
	CHECK_ZERO(post_write(&here, 3, 0, 64, 128, IBV_SEND_SIGNALED));
	completion_expect(endpoint->cq, 3, IBV_WC_SUCCESS, NULL);
	CHECK_EQ(there.buffer[128 + 63], BYTE);
	side_close(&here);
	side_close(&there);
}

static void attack(struct side *side)
{
	struct ibv_cq *cq = side->endpoint->cq;

	memset(side->buffer, BYTE, SIZE);
	CHECK_ZERO(post_write(side, 4, 0, SIZE, 0, IBV_SEND_SIGNALED));
	CHECK_ZERO(post_send(side, 5, 0, 64, IBV_SEND_SIGNALED));
	completion_expect(cq, 4, IBV_WC_RETRY_EXC_ERR, NULL);
	completion_expect(cq, 5, IBV_WC_WR_FLUSH_ERR, NULL);
}

static void stay_untouched(struct side *side)
{
	size_t i;

	completion_none(side->endpoint->cq, 100);
	for (i = 0; i < SIZE; i++)
		CHECK_SAY(side->buffer[i] == 0, "byte %zu was written by another user", i);
	CHECK_EQ(qp_state(side->qp), IBV_QPS_RTS);
}

static uid_t users[2];

static int run(int sock, uid_t user, bool attacks)
{
	struct qp_settings settings;
	struct endpoint endpoint;
	struct side side;

	promise("users do not reach each other");
	become(user);
	endpoint_open(&endpoint, 256, false);
	own_pair_works(&endpoint);
	qp_settings_default(&settings, IBV_QPT_RC);
	settings.retry_count = 2;
	side_open(&side, &endpoint, &settings, NULL, SIZE);
	if (!attacks)
		CHECK_ZERO(post_receive(&side, 9, 0, SIZE));
	side_exchange(&side, sock);
	if (attacks)
		attack(&side);
	message_meet(sock);
	if (!attacks)
		stay_untouched(&side);
	message_meet(sock);
	side_close(&side);
	/* Receives of ours that flushed into the queue are of no interest any more. */
	endpoint_close(&endpoint);
	endpoint_open(&endpoint, 256, false);
	own_pair_works(&endpoint);
	endpoint_close(&endpoint);
	return 0;
}

static int attacker(int sock, void *unused)
{
	(void)unused;
	return run(sock, users[0], true);
}

static int attacked(int sock, void *unused)
{
	(void)unused;
	return run(sock, users[1], false);
}

/* What root's context is called by passes to another user's process, which may not import it (ibv_import_device(3)). */
static int importer(int sock, void *context)
{
	const struct ibv_context *original = context;
	int fd = dup(original->cmd_fd);

	(void)sock;
	promise("another user's context cannot be imported");
	CHECK(fd >= 0);
	become(FIRST_USER);
	errno = 0;
	CHECK(!ibv_import_device(fd));
	CHECK_EQ(errno, EPERM);
	return 0;
}

static void import_is_refused(void)
{
	struct ibv_context *context = device_open();
	struct process process;

	process_start(&process, importer, context);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
	CHECK_ZERO(ibv_close_device(context));
}

int main(void)
{
	static const uid_t pairs[][2] = {
		{FIRST_USER, SECOND_USER}, {0, FIRST_USER}, {FIRST_USER, 0}};
	struct process a, b;
	unsigned int i;

	if (geteuid() != 0)
		SKIP("only root can become two different users");
	watchdog(90);
	promise("users do not reach each other");
	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		memcpy(users, pairs[i], sizeof(users));
		process_start_pair(&a, attacker, &b, attacked, NULL);
		process_expect_success(&a, 40000);
		process_expect_success(&b, PROCESS_PATIENCE_MS);
	}
	import_is_refused();
	return 0;
}
