/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: another user's process is in the domain only if its ids open the directory, or are in
 * the group, that VERBATIM_DOMAIN names, by what the kernel says of it when it connects. A
 * directory that everybody may enter, that is a link, or that another user may have put there, is
 * of no use; nor are nobody's numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/abstract.h"
#include "host/descriptor.h"
#include "host/domain.h"

enum { NONE = 0, ALICE = 64001, BOB, MALLORY, TEAM = 64101, OTHERS, NOBODY = 65534 };

struct ids {
	uid_t uid;
	gid_t gid;
	gid_t extra; /* NONE: no supplementary group */
};

static char around[64], dir[96], link_to_dir[112];

static void become(const struct ids *who)
{
	if (setgroups(who->extra != NONE, &who->extra) || setgid(who->gid) || setuid(who->uid))
		_exit(2);
}

static pid_t start(void)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return child;
}

static int end_of(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Connects as `who`, and stays until the other end has judged. */
static pid_t caller_start(const char *name, const struct ids *who, bool drops)
{
	pid_t child = start();
	struct ucred owner;
	char byte;

	if (child)
		return child;
	if (!drops)
		become(who);
	int fd = vb_abstract_connect(name, &owner);

	if (drops) /* what it was when it connected counts */
		become(who);
	fcntl(fd, F_SETFL, 0);
	_exit(fd < 0 || read(fd, &byte, 1) < 0);
}

/* Whether a process with the ids of `judge` finds that one with those of `who` is in the domain. */
static bool has(const char *domain, const struct ids *judge, const struct ids *who)
{
	char name[VB_ABSTRACT_NAME];
	int ready[2];
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	snprintf(name, sizeof(name), "vb-domain-%d", (int)getpid());
	pid_t child = start();

	if (child == 0) {
		become(judge);
		setenv("VERBATIM_DOMAIN", domain, 1);
		prctl(PR_SET_DUMPABLE, 1);
		int listener = vb_abstract_listen(name, SOMAXCONN);

		fcntl(listener, F_SETFL, 0);
		if (listener < 0 || write(ready[1], "r", 1) != 1)
			_exit(2);
		int fd = accept(listener, NULL, NULL);

		_exit(fd < 0 ? 2 : vb_domain_has(fd));
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	pid_t caller = caller_start(name, who, false);
	int answer = end_of(child);

	assert_int_not_equal(answer, 2);
	assert_int_equal(end_of(caller), 0);
	return answer;
}

static void dir_make(uid_t uid, gid_t gid, mode_t mode, mode_t mode_around)
{
	assert_int_equal(chmod(around, mode_around), 0);
	assert_int_equal(chown(dir, uid, gid), 0);
	assert_int_equal(chmod(dir, mode), 0);
}

static const struct ids alice = {ALICE, ALICE, NONE}, alice_in = {ALICE, ALICE, TEAM};
static const struct ids bob = {BOB, BOB, NONE}, bob_in = {BOB, BOB, TEAM};
static const struct ids bob_first = {BOB, TEAM, NONE}, mallory = {MALLORY, OTHERS, NONE};

static void test_directory(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	dir_make(0, TEAM, 0750, 01777);
	assert_true(has(dir, &alice_in, &bob_in));
	assert_true(has(dir, &alice_in, &bob_first));
	assert_false(has(dir, &alice_in, &bob));
	assert_false(has(dir, &alice_in, &mallory));
	assert_false(has(dir, &alice, &bob_in)); /* who may not enter it has no domain */
	dir_make(0, TEAM, 0740, 0755);           /* to read its names is not to enter */
	assert_false(has(dir, &alice_in, &bob_in));
	dir_make(ALICE, TEAM, 0710, 01777);
	assert_true(has(dir, &alice, &bob_in));
	assert_false(has(dir, &alice, &mallory));
	dir_make(ALICE, ALICE, 0700, 0755);
	assert_false(has(dir, &alice, &bob_in));
	dir_make(BOB, TEAM, 0070, 0755); /* the owner's rights are the owner's */
	assert_false(has(dir, &alice_in, &bob_in));
}

static void test_directory_of_no_use(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	dir_make(0, TEAM, 0751, 0755);
	assert_false(has(dir, &alice_in, &bob_in));
	dir_make(0, TEAM, 01777, 0755);
	assert_false(has(dir, &alice_in, &bob_in));
	dir_make(MALLORY, TEAM, 0750, 01777); /* it may have been made by its owner */
	assert_false(has(dir, &alice_in, &bob_in));
	assert_false(has(dir, &alice_in, &mallory));
	dir_make(MALLORY, TEAM, 0750, 0755);
	assert_true(has(dir, &alice_in, &bob_in));
	dir_make(MALLORY, OTHERS, 0750, 0755);
	assert_false(has(dir, &alice_in, &mallory));
	dir_make(0, TEAM, 0750, 0755);
	assert_false(has(link_to_dir, &alice_in, &bob_in));
	assert_false(has("/dev/null", &alice_in, &bob_in));
	assert_false(has("/nonexistent/verbatim", &alice_in, &bob_in));
	dir_make(0, NOBODY, 0750, 0755);
	assert_false(
		has(dir, &(struct ids){ALICE, NOBODY, NONE}, &(struct ids){BOB, NOBODY, NONE}));
}

static void test_group(void **state)
{
	char number[16];

	(void)state;
	if (geteuid())
		skip();
	snprintf(number, sizeof(number), "%d", TEAM);
	assert_true(has(number, &alice_in, &bob_in));
	assert_true(has(number, &alice_in, &bob_first));
	assert_false(has(number, &alice_in, &bob));
	assert_false(has(number, &alice, &bob_in));
	assert_true(has("daemon", &(struct ids){ALICE, 1, NONE}, &(struct ids){BOB, BOB, 1}));
	assert_false(has("daem", &(struct ids){ALICE, 1, NONE}, &(struct ids){BOB, BOB, 1}));
	assert_false(has("", &alice_in, &bob_in));
	assert_false(has("./team", &alice_in, &bob_in));
	assert_false(has("4294967295", &alice_in, &bob_in));
	assert_false(has("99999999999999999999", &alice_in, &bob_in));
	snprintf(number, sizeof(number), "%d", NOBODY);
	assert_false(
		has(number, &(struct ids){ALICE, ALICE, NOBODY}, &(struct ids){BOB, NOBODY, NONE}));
}

/* The ids are those of the connection: membership that was given up before opens nothing. */
static void test_given_up(void **state)
{
	char name[VB_ABSTRACT_NAME], number[16];
	gid_t team = TEAM;

	(void)state;
	if (geteuid())
		skip();
	snprintf(name, sizeof(name), "vb-domain-%d", (int)getpid());
	snprintf(number, sizeof(number), "%d", TEAM);
	setenv("VERBATIM_DOMAIN", number, 1);
	assert_int_equal(setgroups(1, &team), 0);
	int listener = vb_abstract_listen(name, SOMAXCONN);

	for (int dropped = 0; dropped < 2; dropped++) {
		/* The caller inherits the group, and gives it up after or before it connects. */
		pid_t caller = caller_start(name, &bob, !dropped);
		int fd;

		fcntl(listener, F_SETFL, 0);
		fd = accept(listener, NULL, NULL);
		assert_int_equal(vb_domain_has(fd), !dropped);
		close(fd);
		assert_int_equal(end_of(caller), 0);
	}
	vb_descriptor_close(listener);
	unsetenv("VERBATIM_DOMAIN");
	assert_int_equal(setgroups(0, NULL), 0);
}

/* As any user: what is said about a domain of no use names the variable and the cause. */
static void test_defects(void **state)
{
	char text[256];

	(void)state;
	unsetenv("VERBATIM_DOMAIN");
	assert_false(vb_domain_is_named());
	setenv("VERBATIM_DOMAIN", "/nonexistent/verbatim", 1);
	assert_true(vb_domain_is_named());
	assert_non_null(vb_domain_defect(text, sizeof(text)));
	assert_string_equal(text,
			    "VERBATIM_DOMAIN=/nonexistent/verbatim: No such file or directory");
	setenv("VERBATIM_DOMAIN", dir, 1);
	assert_int_equal(chmod(dir, 0755), 0);
	assert_non_null(vb_domain_defect(text, sizeof(text)));
	assert_non_null(strstr(text, "chmod o-rwx"));
	assert_int_equal(chmod(dir, 0750), 0);
	assert_null(vb_domain_defect(text, sizeof(text)));
	unsetenv("VERBATIM_DOMAIN");
}

static int set_up(void **state)
{
	(void)state;
	snprintf(around, sizeof(around), "/tmp/verbatim-domain-XXXXXX");
	assert_non_null(mkdtemp(around));
	snprintf(dir, sizeof(dir), "%s/domain", around);
	snprintf(link_to_dir, sizeof(link_to_dir), "%s/link", around);
	assert_int_equal(symlink(dir, link_to_dir), 0);
	assert_int_equal(chmod(around, 0755), 0);
	return mkdir(dir, 0750);
}

static int tear_down(void **state)
{
	(void)state;
	unlink(link_to_dir);
	rmdir(dir);
	return rmdir(around);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defects),
		cmocka_unit_test(test_directory),
		cmocka_unit_test(test_directory_of_no_use),
		cmocka_unit_test(test_group),
		cmocka_unit_test(test_given_up),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
