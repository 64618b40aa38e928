/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a claim reads as it was made, also while its process stands still. A process that
 * watches a claim is told its end. Names that are no claims are passed over. A claim of another
 * user is not believed, unless that user agrees to share the port, and then only about the blocks
 * whose names it holds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/claim.h"
#include "host/descriptor.h"
#include "host/names.h"

#define NOBODY 65534

struct wanted {
	uint32_t id;
	struct vb_claim found;
	int times; /* twice where the call of a neighbour waits, whose socket has the name, too */
};

static void note(const struct vb_claim *claim, void *arg)
{
	struct wanted *w = arg;

	if (claim->id != w->id)
		return;
	w->found = *claim;
	w->times++;
}

static struct wanted find(uint32_t id)
{
	struct wanted w = {.id = id};

	assert_int_equal(vb_claim_read(note, &w), 0);
	return w;
}

static struct vb_claim claim_of(uint32_t id, uint32_t blocks)
{
	struct vb_claim c = {.id = id, .serial = 7, .place = {3, -1}, .blocks = blocks};

	for (uint32_t i = 0; i < blocks; i++)
		c.block[i] = i % 2 ? 16383 - i : 1 + 701 * i;
	return c;
}

static void test_reads_as_made(void **state)
{
	(void)state;
	for (uint32_t blocks = 0; blocks <= VB_CLAIM_BLOCKS; blocks += VB_CLAIM_BLOCKS / 2) {
		uint32_t id = (uint32_t)getpid() << 8 | blocks;
		struct vb_claim c = claim_of(id, blocks);
		int fd = vb_claim_publish(&c);

		assert_true(fd >= 0);
		struct wanted w = find(id);

		assert_true(w.times >= 1);
		assert_int_equal(w.found.serial, 7);
		assert_int_equal(w.found.place[0], 3);
		assert_int_equal(w.found.place[1], -1);
		assert_int_equal(w.found.blocks, blocks);
		assert_memory_equal(w.found.block, c.block, blocks * sizeof(*c.block));
		assert_string_equal(w.found.name, c.name);
		assert_int_equal(vb_claim_publish(&c), -EADDRINUSE);
		vb_descriptor_close(fd);
		assert_int_equal(find(id).times, 0);
	}
}

static bool is_over(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};

	return poll(&p, 1, timeout_ms) == 1;
}

/* A child that claims, as that user, and then stands still. */
static pid_t still_claimant(uint32_t id, uid_t uid)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		struct vb_claim c = claim_of(id, 2);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if ((uid != geteuid() && setuid(uid)) || vb_claim_publish(&c) < 0)
			_exit(1);
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	return child;
}

static void test_of_one_who_stands_still(void **state)
{
	uint32_t id = (uint32_t)getpid() << 8 | 0x55;
	pid_t child = still_claimant(id, geteuid());
	struct wanted w = find(id);

	(void)state;
	assert_true(w.times >= 1);
	int fd = vb_claim_watch(&w.found);

	assert_true(fd >= 0);
	assert_false(is_over(fd, 0));
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(is_over(fd, 10000));
	vb_descriptor_close(fd);
	assert_int_equal(find(id).times, 0);
	assert_true(vb_claim_watch(&w.found) < 0);
}

/* It can bear our name; who connects sees whose it is. */
static void test_of_another_user(void **state)
{
	struct vb_claim c = claim_of((uint32_t)getpid() << 8 | 0x66, 2);
	pid_t child;

	(void)state;
	if (geteuid())
		skip();
	child = still_claimant(c.id, NOBODY);
	snprintf(c.name, sizeof(c.name), "verbatim/%d/to/%08x.7/3.-1/", NOBODY, c.id);
	assert_int_equal(find(c.id).times, 0); /* not under our user's name */
	char line[256];
	FILE *table = fopen("/proc/net/unix", "r");

	assert_non_null(table);
	while (fgets(line, sizeof(line), table)) {
		char *at = strstr(line, c.name);

		if (at) {
			at[strcspn(at, "\n")] = '\0';
			strcpy(c.name, at);
		}
	}
	fclose(table);
	assert_int_equal(vb_claim_watch(&c), -EPERM);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/*
 * Another user who agrees is believed about the blocks whose names it holds, and about those that
 * it comes to hold, but not about others.
 */
static void test_of_another_who_agrees(void **state)
{
	enum { GROUP = 64101, USER = 64002, OTHER = 64003 };
	struct vb_claim c = {.id = (uint32_t)getpid() << 8 | 0x77, .serial = 1, .blocks = 3};
	gid_t group = GROUP;
	struct ucred who;
	int told[2], go[2], fds[2], status;
	char text[16];

	(void)state;
	if (geteuid())
		skip();
	/* High blocks of this process's own: other processes of the host have low chances to meet. */
	for (uint32_t i = 0; i < 3; i++)
		c.block[i] = 16000 + 2 * i + 1;
	assert_int_equal(pipe(told) | pipe(go), 0);
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		vb_name_text(c.name, sizeof(c.name), c.block[1]);
		if (seteuid(OTHER) || vb_abstract_listen(c.name, SOMAXCONN) < 0 || seteuid(0) ||
		    setgroups(1, &group) || setgid(USER) || setuid(USER))
			_exit(1);
		setenv("VERBATIM_DOMAIN", "64101", 1);
		vb_name_text(c.name, sizeof(c.name), c.block[0]);
		if (vb_abstract_listen(c.name, SOMAXCONN) < 0 || vb_claim_publish(&c) < 0 ||
		    write(told[1], "c", 1) != 1 || read(go[0], text, 1) != 1)
			_exit(1);
		vb_name_text(c.name, sizeof(c.name), c.block[2]);
		_exit(vb_abstract_listen(c.name, SOMAXCONN) < 0 || write(told[1], "d", 1) != 1 ||
		      read(go[0], text, 1) != 1);
	}
	close(told[1]);
	close(go[0]);
	assert_int_equal(read(told[0], text, 1), 1);
	assert_int_equal(find(c.id).times, 0); /* without a domain it is not even read */
	snprintf(text, sizeof(text), "%d", GROUP);
	setenv("VERBATIM_DOMAIN", text, 1);
	assert_int_equal(setgroups(1, &group), 0);
	struct wanted w = find(c.id);
	struct vb_claim named = w.found;

	assert_true(w.times >= 1);
	assert_int_equal(named.uid, USER);
	assert_int_equal(named.blocks, 3);
	fds[0] = vb_claim_watch(&w.found);
	assert_true(fds[0] >= 0);
	assert_int_equal(w.found.blocks, 1);
	assert_int_equal(w.found.block[0], c.block[0]);
	assert_false(vb_claim_prove(&w.found, &named));
	assert_int_equal(write(go[1], "g", 1), 1);
	assert_int_equal(read(told[0], text, 1), 1);
	assert_true(vb_claim_prove(&w.found, &named));
	assert_int_equal(w.found.blocks, 2);
	assert_int_equal(w.found.block[1], c.block[2]);
	/* Who is not in the group is not believed, whatever its name says. */
	assert_int_equal(setgroups(0, NULL), 0);
	w.found = named;
	assert_int_equal(vb_claim_watch(&w.found), -EPERM);
	vb_descriptor_close(fds[0]);
	fds[1] = vb_abstract_connect(named.name, &who);
	assert_int_equal(who.uid, USER);
	vb_descriptor_close(fds[1]);
	unsetenv("VERBATIM_DOMAIN");
	assert_int_equal(write(go[1], "g", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(told[0]);
	close(go[1]);
}

static void test_no_claims(void **state)
{
	static const char *const names[] = {
		"verbatim/%u/to/",
		"verbatim/%u/to/000000aa.1/0.0",
		"verbatim/%u/to/000000aa.1/0.0/A",
		"verbatim/%u/to/000000aa.1/0.0/AB*",
		"verbatim/%u/to/000000aa.1/0.0/999", /* a block has 14 bits */
		"verbatim/%u/to/000000aa.1/-2.0/AAA",
		"verbatim/%u/to/000000aa.1/0.5000/AAA",
		"verbatim/%u/to/000000aa.1/99999999999.0/AAA",
		"verbatim/%u/to/000000aa.1/0.0/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"verbatim/%u/to/000000aa.1/0.0/AAA BBB",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct sockaddr_un addr = {.sun_family = AF_UNIX};
		int n = snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1, names[i], geteuid());
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

		assert_true(n < (int)sizeof(addr.sun_path) - 1);
		assert_int_equal(
			bind(fd, (struct sockaddr *)&addr,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)),
			0);
		assert_int_equal(listen(fd, 1), 0);
		assert_int_equal(find(0xaa).times, 0);
		close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_as_made),
		cmocka_unit_test(test_of_one_who_stands_still),
		cmocka_unit_test(test_of_another_user),
		cmocka_unit_test(test_of_another_who_agrees),
		cmocka_unit_test(test_no_claims),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
