/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The runtime directory: the order of the places, and that a place which others could have prepared
 * or may enter is refused.
 */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/runtime_dir.h"

#define OTHER_USER 65533u

static char scratch[] = "/tmp/verbatim-test-XXXXXX";

static const char *below(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	return path;
}

static int make_scratch(void **state)
{
	(void)state;
	strcpy(scratch + sizeof(scratch) - 7, "XXXXXX");
	unsetenv("VERBATIM_RUNTIME_DIR");
	unsetenv("XDG_RUNTIME_DIR");
	unsetenv("TMPDIR");
	return mkdtemp(scratch) ? 0 : -1;
}

static int remove_scratch(void **state)
{
	char command[PATH_MAX];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", scratch);
	return system(command);
}

static void assert_place(const char *want)
{
	char path[PATH_MAX];
	struct stat st;

	for (int again = 0; again < 2; again++) { /* made, then found */
		assert_int_equal(vb_runtime_dir(path, sizeof(path)), 0);
		assert_string_equal(path, want);
		assert_int_equal(stat(path, &st), 0);
		assert_true(S_ISDIR(st.st_mode));
		assert_int_equal(st.st_mode & 07777, 0700);
	}
}

static void chosen(void **state)
{
	char path[PATH_MAX];

	(void)state;
	setenv("VERBATIM_RUNTIME_DIR", below("mine"), 1);
	setenv("XDG_RUNTIME_DIR", scratch, 1);
	assert_place(below("mine"));
	setenv("VERBATIM_RUNTIME_DIR", "mine", 1);
	assert_int_equal(vb_runtime_dir(path, sizeof(path)), -EINVAL);
	setenv("VERBATIM_RUNTIME_DIR", below("a/b"), 1);
	assert_int_equal(vb_runtime_dir(path, sizeof(path)), -ENOENT);
	setenv("VERBATIM_RUNTIME_DIR", below("mine"), 1);
	assert_int_equal(vb_runtime_dir(path, 8), -ENAMETOOLONG);
}

/* A strict umask does not leave the owner without rights. */
static void session(void **state)
{
	mode_t mask = umask(0777);

	(void)state;
	setenv("XDG_RUNTIME_DIR", scratch, 1);
	assert_place(below("verbatim"));
	umask(mask);
}

/* `sudo -E` leaves the directory of another user in the environment; the next place serves. */
static void strange_session(void **state)
{
	char path[PATH_MAX], name[64];

	(void)state;
	snprintf(name, sizeof(name), "/run/user/%u", geteuid());
	if (access(name, F_OK) == 0)
		skip(); /* this test would leave a directory in it */
	setenv("TMPDIR", scratch, 1);
	snprintf(name, sizeof(name), "verbatim-%u", geteuid());
	if (geteuid() == 0) {
		snprintf(path, sizeof(path), "%s", below("theirs"));
		assert_int_equal(mkdir(path, 0700), 0);
		assert_int_equal(chown(path, OTHER_USER, OTHER_USER), 0);
		setenv("XDG_RUNTIME_DIR", path, 1);
	} else {
		setenv("XDG_RUNTIME_DIR", "/", 1);
	}
	assert_place(below(name));
	setenv("XDG_RUNTIME_DIR", "relative", 1);
	assert_place(below(name));
	setenv("XDG_RUNTIME_DIR", below("absent"), 1);
	assert_place(below(name));
}

static void assert_refused(void)
{
	char path[PATH_MAX];

	assert_int_equal(vb_runtime_dir(path, sizeof(path)), -EPERM);
}

static void refused(void **state)
{
	const char *place;

	(void)state;
	setenv("XDG_RUNTIME_DIR", scratch, 1);
	place = below("verbatim");
	assert_int_equal(symlink("/tmp", place), 0);
	assert_refused();
	unlink(place);
	assert_int_equal(symlink(scratch, place), 0); /* a link to a directory of our own */
	assert_refused();
	unlink(place);
	assert_int_equal(mkdir(place, 0700), 0);
	assert_int_equal(chmod(place, 0750), 0);
	assert_refused();
	assert_int_equal(chmod(place, 0701), 0);
	assert_refused();
	assert_int_equal(rmdir(place), 0);
	fclose(fopen(place, "w"));
	assert_refused();
	unlink(place);
	if (geteuid())
		return;
	assert_int_equal(mkdir(place, 0700), 0);
	assert_int_equal(chown(place, OTHER_USER, OTHER_USER), 0);
	assert_refused();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(chosen, make_scratch, remove_scratch),
		cmocka_unit_test_setup_teardown(session, make_scratch, remove_scratch),
		cmocka_unit_test_setup_teardown(strange_session, make_scratch, remove_scratch),
		cmocka_unit_test_setup_teardown(refused, make_scratch, remove_scratch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
