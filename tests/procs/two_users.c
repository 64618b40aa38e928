/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: processes of different users reach each other, as users of two adapters would. The
 * numbers and keys that they exchange decide: every kind of message arrives, and a WRITE without a
 * key that allows it does not. Root is a user like any other. The same holds for processes that
 * made their queue pairs as one user and connect as another (daemons that drop their privileges).
 *
 * Needs root to become two users; skips otherwise.
 */
#include "procs/exercise.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/process.h"

#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_USER = PROCESS_USER, SECOND_USER = 65533, ROUNDS = 2 };

static void become(uid_t user)
{
	if (user == 0)
		return;
	CHECK_ZERO(setgroups(0, NULL));
	CHECK_ZERO(setresgid(user, user, user));
	CHECK_ZERO(setresuid(user, user, user));
}

static uid_t users[2];
static bool drops_late;

/* A key that the other user did not give stays closed, however the memory is reached. */
static void wrong_key(struct endpoint *ep)
{
	struct ibv_cq *cq = ep->resources->cq;

	ep->remote.rkey ^= 0x100;
	CHECK_ZERO(ep_write(ep, 4, 0, 4096, 0, IBV_SEND_SIGNALED));
	completion_expect(cq, 4, IBV_WC_REM_ACCESS_ERR, NULL);
}

static int run(int sock, uid_t user, bool initiates)
{
	struct resources resources;
	struct endpoint ep;

	promise(drops_late ? "privileges dropped after the queue pair was made"
			   : "two users reach each other");
	if (!drops_late)
		become(user);
	resources_open(&resources, 256, false);
	ep_open_on(&ep, &resources, NULL, NULL, EXERCISE_SIZE);
	if (drops_late)
		become(user);
	ep_exchange(&ep, sock);
	if (initiates) {
		exercise_initiate(&ep, sock, ROUNDS);
		wrong_key(&ep);
	} else {
		exercise_serve(&ep, sock, ROUNDS);
	}
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static int initiator(int sock, void *unused)
{
	(void)unused;
	return run(sock, users[0], true);
}

static int target(int sock, void *unused)
{
	(void)unused;
	return run(sock, users[1], false);
}

/*
 * The descriptor of root's context is passed to another user's process, which may not import it
 * (ibv_import_device(3)).
 */
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
	static const struct {
		uid_t users[2];
		bool drops_late;
	} cases[] = {
		{{FIRST_USER, SECOND_USER}, false}, {{0, FIRST_USER}, false},
		{{FIRST_USER, 0}, false},           {{FIRST_USER, FIRST_USER}, true},
		{{FIRST_USER, SECOND_USER}, true},
	};
	struct process a, b;
	unsigned int i;

	if (geteuid() != 0)
		SKIP("only root can become two different users");
	watchdog(150);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(users, cases[i].users, sizeof(users));
		drops_late = cases[i].drops_late;
		process_start_pair(&a, initiator, &b, target, NULL);
		process_expect_success(&a, 40000);
		process_expect_success(&b, PROCESS_PATIENCE_MS);
	}
	import_is_refused();
	return 0;
}
