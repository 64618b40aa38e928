/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The holder of a port is named by process, program and user; each family by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "udp/holder.h"
#include "unit/udp/net.h"

#define PORT 4791

static const char *holder(bool ipv4)
{
	static char text[160];

	return vb_udp_holder(ipv4, PORT, text, sizeof(text));
}

static const char *process(pid_t pid)
{
	static char text[160];

	snprintf(text, sizeof(text), "process %d (udp-holder) of user %u", (int)pid,
		 (unsigned int)getuid());
	return text;
}

static void test_own(void **state)
{
	(void)state;
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		int fd = net_bound(ipv4, PORT);

		assert_string_equal(holder(ipv4), process(getpid()));
		close(fd);
	}
}

static void test_another_process(void **state)
{
	int ends[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();

	if (!child) {
		net_bound(true, PORT);
		(void)!write(ends[1], "", 1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_string_equal(holder(true), process(child));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ends[0]);
	close(ends[1]);
}

/*
 * A neighbour's port is none of it: neither one that differs, nor 4791 as the remote port of a
 * connection.
 */
static void test_not_the_neighbour(void **state)
{
	int a = net_bound(true, PORT - 1);
	int b = net_bound(false, PORT + 1);

	(void)state;
	assert_null(strstr(holder(true), "process"));
	assert_null(strstr(holder(false), "process"));
	close(a);
	close(b);
}

/* Sockets of the kernel's drivers are in some kernels' tables and not in others'. */
static void test_nobody_is_the_kernel(void **state)
{
	(void)state;
	assert_non_null(strstr(holder(true), "the kernel"));
}

/* The text is cut, never overrun. */
static void test_short_text(void **state)
{
	char text[16];
	int fd = net_bound(true, PORT);

	(void)state;
	memset(text, 'x', sizeof(text));
	vb_udp_holder(true, PORT, text, 8);
	assert_string_equal(text, "process");
	assert_int_equal(text[8], 'x');
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_another_process),
		cmocka_unit_test(test_not_the_neighbour),
		cmocka_unit_test(test_nobody_is_the_kernel),
		cmocka_unit_test(test_short_text),
	};

	net_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
