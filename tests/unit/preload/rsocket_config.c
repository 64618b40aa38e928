/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which sockets librspreload takes: the lines of its file, valid and not, against the name of the
 * program and what it asks for; and the environment. A process reads both once, so that each
 * question is asked in a child of its own.
 */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "config.h"

enum { RULES_KEPT = 256 };

static char path[] = "/tmp/verbatim-test-XXXXXX";

static int make_file(void **state)
{
	int fd;

	(void)state;
	strcpy(path + sizeof(path) - 7, "XXXXXX");
	fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static void write_file(const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

struct asked {
	int domain, type, protocol;
};

static bool takes(const char *file, const char *program, struct asked asked)
{
	char name[128];
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		snprintf(name, sizeof(name), "%s", program);
		program_invocation_short_name = name;
		config_use_file(file);
		_exit(config_takes(asked.domain, asked.type, asked.protocol));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
	return WEXITSTATUS(status);
}

static const struct asked tcp = {AF_INET, SOCK_STREAM, 0};
static const struct asked tcp_named = {AF_INET, SOCK_STREAM, IPPROTO_TCP};
static const struct asked tcp_flags = {AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0};
static const struct asked tcp_six = {AF_INET6, SOCK_STREAM, 0};
static const struct asked udp = {AF_INET, SOCK_DGRAM, 0};

static void assert_takes(const char *text, const char *program, struct asked asked, bool want)
{
	write_file(text);
	if (takes(path, program, asked) != want)
		fail_msg("%s: socket(%d, %d, %d) is %s with\n%s", program, asked.domain, asked.type,
			 asked.protocol, want ? "not taken" : "taken", text);
}

/* Without a valid line every socket is taken. */
static void test_no_rule(void **state)
{
	static const char *const none[] = {
		"",
		"\n\n",
		"# client INET STREAM TCP\n",
		"client INET STREAM\n",
		"client INET STREAM # TCP\n",
		"client IPX STREAM TCP\n",
		"client INET RAW TCP\n",
		"client INET STREAM SCTP\n",
		"client AF_ STREAM TCP\n",
		"client SOCK_INET STREAM TCP\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_takes(none[i], "client", tcp, true);
		assert_takes(none[i], "other", udp, true);
	}
	assert_true(takes("/proc/none/preload_config", "client", tcp));
	assert_true(takes("/", "client", tcp));
}

/* Once there is one, what is not named is not taken. */
static void test_words(void **state)
{
	static const char *const exactly[] = {
		"client INET STREAM TCP\n",
		"client AF_INET SOCK_STREAM IPPROTO_TCP\n",
		"  client\tinet  stream tcp # and more\n",
		"client af_inet Sock_Stream ipproto_tcp",
		"client INET STREAM TCP and more\n",
		"\n# first\nnobody * * nonsense\nclient INET STREAM TCP\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(exactly) / sizeof(exactly[0]); i++) {
		assert_takes(exactly[i], "client", tcp, true);
		assert_takes(exactly[i], "client", tcp_named, true);
		assert_takes(exactly[i], "client", tcp_flags, true);
		assert_takes(exactly[i], "client", tcp_six, false);
		assert_takes(exactly[i], "client", udp, false);
		assert_takes(exactly[i], "other", tcp, false);
	}
}

static void test_wildcards(void **state)
{
	(void)state;
	assert_takes("* INET STREAM TCP\n", "whatever", tcp, true);
	assert_takes("* INET STREAM TCP\n", "whatever", tcp_six, false);
	assert_takes("client * STREAM TCP\n", "client", tcp_six, true);
	assert_takes("client * STREAM TCP\n", "client", udp, false);
	assert_takes("client INET * UDP\n", "client", udp, true);
	assert_takes("client INET * UDP\n", "client", tcp, false);
	assert_takes("client INET STREAM *\n", "client", tcp_named, true);
	assert_takes("client IB * *\n", "client", tcp, false);
	assert_takes("client * * *\n", "client", udp, true);
}

/* The word is the front of the program's name. */
static void test_program_name(void **state)
{
	char line[128];

	(void)state;
	assert_takes("cli * * *\n", "client", tcp, true);
	assert_takes("CLIENT * * *\n", "client", tcp, true);
	assert_takes("client2 * * *\n", "client", tcp, false);
	assert_takes("lient * * *\n", "client", tcp, false);
	assert_takes("one * * *\ntwo INET STREAM TCP\n", "two", tcp, true);
	assert_takes("one * * *\ntwo INET STREAM TCP\n", "two", udp, false);
	/* A name that is too long stands for those that begin as it does. */
	memset(line, 'n', 100);
	strcpy(line + 100, " * * *\n");
	assert_takes(line, "nnnn", tcp, false);
	write_file(line);
	line[70] = '\0';
	assert_true(takes(path, line, tcp));
}

/* What follows a comment's or a line's room is no line of its own. */
static void test_long_lines(void **state)
{
	char text[2048];

	(void)state;
	text[0] = '#';
	memset(text + 1, ' ', sizeof(text) - 1);
	strcpy(text + 1500, "client INET STREAM TCP\n");
	assert_takes(text, "other", tcp, true);
	strcpy(text + 1500, "text\nclient INET STREAM TCP\n");
	assert_takes(text, "other", tcp, false);
	assert_takes(text, "client", tcp, true);
	for (int at = 500; at < 520; at++) { /* around the reader's own limit */
		memset(text, ' ', sizeof(text));
		text[0] = '#';
		strcpy(text + at, "client INET STREAM TCP\nlast INET STREAM TCP\n");
		assert_takes(text, "client", tcp, false);
		assert_takes(text, "last", tcp, true);
	}
}

static void test_many_lines(void **state)
{
	static char text[(RULES_KEPT + 50) * 32];
	size_t length = 0;

	(void)state;
	for (int i = 0; i < RULES_KEPT + 50; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length,
					   "p%03d INET STREAM TCP\n", i);
	assert_takes(text, "p000", tcp, true);
	assert_takes(text, "p255", tcp, true);
	assert_takes(text, "p256", tcp, false);
}

static void set(const char *name, const char *value)
{
	if (value)
		assert_int_equal(setenv(name, value, 1), 0);
	else
		assert_int_equal(unsetenv(name), 0);
}

/* In a child: whether the environment was read as this. */
static void assert_environment(const char *queues, const char *fork_safe, int size, bool fork_mode)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		const struct config *c;

		set("RS_SQ_SIZE", queues);
		set("RS_RQ_SIZE", queues);
		set("RS_INLINE", queues);
		set("RDMAV_FORK_SAFE", fork_safe);
		config_use_file("/proc/none/preload_config");
		errno = EXDEV;
		c = config_get();
		_exit(c->send_queue == size && c->receive_queue == size &&
		      c->inline_bytes == size && c->fork_mode == fork_mode && errno == EXDEV);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

static void test_environment(void **state)
{
	(void)state;
	assert_environment(NULL, NULL, 0, false);
	assert_environment("64", "1", 64, true);
	assert_environment("0", "", 0, true);
	assert_environment("-5", NULL, 0, false);
	assert_environment("many", "0", 0, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_rule),     cmocka_unit_test(test_words),
		cmocka_unit_test(test_wildcards),   cmocka_unit_test(test_program_name),
		cmocka_unit_test(test_long_lines),  cmocka_unit_test(test_many_lines),
		cmocka_unit_test(test_environment),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
