/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The end of a peer is told once, and within its bound, in whatever way the peer ends: killed,
 * killed while a forked child keeps its sockets open, or by executing another program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "unit/host/end.h"

/*
 * How late the news may be: 100 ms, and what a crowded machine adds. On a machine where one of the
 * processes gets no processor for a while that is more, so one of ROUNDS has to be in time.
 */
#define SOON_NS 250000000ll
#define LATER_NS \
	1000000000ll /* a child keeps copies of the sockets: a look every 200 ms finds out */
#define ROUNDS 8

static uint64_t target_word = 0x1122334455667788ull;
static uint8_t big[65536];
static uint8_t target_area[65536 + 8192]; /* what is written to in the target */

/*
 * A process that comes into contact, then does what it is told: 0 ends, 1 forks without handlers, 2
 * execs, 3 closes its channel.
 */
static int target(int sock, void *arg)
{
	static struct end end; /* its thread outlives this function */

	(void)arg;
	struct vb_channel *ch = end_serve(&end, sock, NULL);

	if (!ch)
		return 1;
	tell(sock, (uintptr_t)target_area);
	for (;;) {
		switch (hear(sock)) {
		case 0:
			return 0;
		case 1: {
			/*
			 * As a program that calls clone(2) itself: no handler closes our sockets in
			 * the child.
			 */
			pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

			if (pid == 0) {
				for (;;)
					pause();
			}
			tell(sock, (uint64_t)pid);
			break;
		}
		case 2:
			execl("/bin/sleep", "sleep", "5", (char *)NULL);
			return 2;
		case 3:
			end_push(ch, 77);
			end_close(&end, ch);
			break;
		default:
			return 3;
		}
	}
}

struct contact {
	struct child child;
	struct vb_channel *ch;
	uint64_t addr;
	uint32_t qpn;
};

static void contact_make(struct end *end, uint32_t engine, struct contact *c)
{
	enum vb_contact why;

	c->qpn = (uint32_t)hear(c->child.sock);
	c->ch = end_find(end, engine, c->qpn, END_PATIENCE_MS, &why);
	assert_int_equal(why, VB_CONTACT_UP);
	assert_non_null(c->ch);
	c->addr = hear(c->child.sock);
	assert_true(vb_peer_alive(c->ch->peer));
}

/* A new end and a new child in contact; the engine of the contact. */
static uint32_t contact_open(struct end *end, struct contact *c)
{
	uint32_t engine;

	child_start(&c->child, target, NULL);
	end_start(end);
	engine = end_engine(end);
	contact_make(end, engine, c);
	return engine;
}

/* Returns how long after `since` the end was told. */
static int64_t expect_death(struct end *end, uint32_t engine, struct contact *c, int64_t since)
{
	struct iovec iov = {&(uint64_t){0}, 8};
	enum vb_contact why;

	assert_true(end_await(&end->deaths, 1, END_PATIENCE_MS));
	assert_ptr_equal(atomic_load(&end->dead_peer), c->ch->peer);
	assert_false(vb_peer_alive(c->ch->peer));
	assert_true(atomic_load(&c->ch->dead));
	/* Its page stays mapped, its memory does not answer. */
	assert_non_null(vb_peer_qp(c->ch->peer, c->qpn));
	assert_int_equal(vb_peer_read(c->ch->peer, c->addr, &iov, 1, 8, NULL), -ESRCH);
	iov = (struct iovec){big, sizeof(big)};
	assert_int_equal(vb_peer_write(c->ch->peer, c->addr, &iov, 1, sizeof(big), true, NULL),
			 -ESRCH);
	assert_null(vb_channel_find(end->node, engine, c->qpn, &why));
	assert_int_equal(why, VB_CONTACT_DEAD);
	vb_channel_wake(c->ch);
	end_close(end, c->ch);
	end_sleep_ms(60);
	assert_int_equal(atomic_load(&end->deaths), 1);
	return atomic_load(&end->death_at) - since;
}

/* Each round tells the end, and one of them within the bound. */
static void expect_within(int64_t (*round)(void), int64_t bound)
{
	int64_t took = INT64_MAX;

	for (int i = 0; i < ROUNDS && took >= bound; i++)
		took = round();
	assert_true(took < bound);
}

static int64_t killed(void)
{
	struct contact c;
	struct end end;
	uint32_t engine = contact_open(&end, &c);

	child_kill(&c.child);
	int64_t took = expect_death(&end, engine, &c, end_clock());

	end_stop(&end);
	return took;
}

static void test_killed(void **state)
{
	(void)state;
	expect_within(killed, SOON_NS);
}

/*
 * Numbers are claimed at random, so a dead owner's number may be another process's a moment later.
 * For a queue pair that was connected after the death, the name is called once more before its
 * owner counts as dead.
 */
static void test_dead_before(void **state)
{
	enum vb_contact why;
	struct contact c;
	struct end end;

	(void)state;
	uint32_t engine = contact_open(&end, &c);

	child_kill(&c.child);
	assert_true(end_await(&end.deaths, 1, END_PATIENCE_MS));
	end_close(&end, c.ch);

	uint64_t since = (uint64_t)end_clock();

	assert_null(vb_channel_find_since(end.node, engine, c.qpn, since, false, &why));
	assert_int_equal(why, VB_CONTACT_PENDING);
	for (int i = 0; i < 2000 && why == VB_CONTACT_PENDING; i++) {
		end_sleep_ms(1);
		assert_null(vb_channel_find_since(end.node, engine, c.qpn, since, false, &why));
	}
	assert_int_equal(why, VB_CONTACT_DEAD);
	end_stop(&end);
}

static int64_t killed_with_child(void)
{
	struct contact c;
	struct end end;
	uint32_t engine = contact_open(&end, &c);

	tell(c.child.sock, 1);
	pid_t grandchild = (pid_t)hear(c.child.sock);

	child_kill(&c.child);
	int64_t took = expect_death(&end, engine, &c, end_clock());

	assert_int_equal(kill(grandchild, SIGKILL), 0);
	end_stop(&end);
	return took;
}

static void test_killed_with_child(void **state)
{
	(void)state;
	expect_within(killed_with_child, LATER_NS);
}

static int64_t exec(void)
{
	struct contact c;
	struct end end;
	uint32_t engine = contact_open(&end, &c);
	int64_t now = end_clock();

	tell(c.child.sock, 2);
	int64_t took = expect_death(&end, engine, &c, now);

	assert_int_equal(kill(c.child.pid, 0), 0);
	child_kill(&c.child);
	end_stop(&end);
	return took;
}

static void test_exec(void **state)
{
	(void)state;
	expect_within(exec, SOON_NS);
}

/*
 * bad-input: a process number outlives the program that it stood for. Writes go on while the target
 * executes another program.
 */
static void test_exec_under_writes(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++) {
		struct iovec iov;
		struct contact c;
		struct end end;
		int err;

		child_start(&c.child, target, NULL);
		end_start(&end);
		contact_make(&end, end_engine(&end), &c);
		memset(big, 0xa5, sizeof(big));
		iov = (struct iovec){big, sizeof(big)};
		assert_int_equal(
			vb_peer_read(c.ch->peer, c.addr + 4096, &iov, 1, sizeof(big), NULL), 0);
		tell(c.child.sock, 2);
		do {
			iov = (struct iovec){big, sizeof(big)};
			err = vb_peer_write(c.ch->peer, c.addr + 4096, &iov, 1, sizeof(big), true,
					    NULL);
		} while (!err);
		assert_int_equal(err, -ESRCH);
		assert_false(vb_peer_alive(c.ch->peer));
		/* The new program sleeps in peace. */
		end_sleep_ms(10);
		assert_int_equal(waitpid(c.child.pid, NULL, WNOHANG), 0);
		child_kill(&c.child);
		end_stop(&end);
	}
}

/* Its sockets are kept open by a child and its pid lives on: nothing tells but the futex word. */
static void test_exec_with_child(void **state)
{
	struct contact c;
	struct end end;

	(void)state;
	contact_open(&end, &c);

	tell(c.child.sock, 1);
	pid_t grandchild = (pid_t)hear(c.child.sock);

	tell(c.child.sock, 2);
	int64_t until = end_clock() + END_PATIENCE_MS * 1000000ll;

	/* From memory at once... */
	while (vb_peer_alive(c.ch->peer) && end_clock() < until)
		end_sleep_ms(1);
	assert_false(vb_peer_alive(c.ch->peer));
	/* ...and told at the next look. */
	vb_node_kick(end.node);
	assert_true(end_await(&end.deaths, 1, END_PATIENCE_MS));
	assert_int_equal(kill(grandchild, SIGKILL), 0);
	child_kill(&c.child);
	end_close(&end, c.ch);
	end_stop(&end);
}

/* Others go on; the dead one is the only one told. */
static void test_one_of_two(void **state)
{
	struct contact a, b;
	struct end end;
	uint64_t n;

	(void)state;
	child_start(&a.child, target, NULL);
	child_start(&b.child, target, NULL);
	end_start(&end);
	uint32_t engine = end_engine(&end);

	contact_make(&end, engine, &a);
	contact_make(&end, engine, &b);
	child_kill(&a.child);
	assert_true(end_await(&end.deaths, 1, END_PATIENCE_MS));
	assert_ptr_equal(atomic_load(&end.dead_peer), a.ch->peer);
	assert_true(vb_peer_alive(b.ch->peer));
	assert_false(atomic_load(&b.ch->dead));
	end_close(&end, a.ch);
	/* What was sent before a close is still there after the news of it. */
	tell(b.child.sock, 3);
	assert_true(end_await(&end.downs, 1, END_PATIENCE_MS));
	assert_ptr_equal(atomic_load(&end.down), b.ch);
	assert_true(end_take(b.ch, &n));
	assert_int_equal(n, 77);
	end_close(&end, b.ch);
	tell(b.child.sock, 0);
	child_join(&b.child);
	assert_true(end_await(&end.deaths, 2, END_PATIENCE_MS));
	end_stop(&end);
}

static int silent(int sock, void *arg)
{
	static struct end end; /* its thread outlives this function */

	(void)arg;
	end_start(&end);
	tell(sock, end_qp(&end, end_engine(&end), NULL));
	while (pause() < 0)
		;
	return 0;
}

/* Returns when every thread stands still, which takes a while on a crowded machine. */
static void stop(pid_t pid)
{
	int status;

	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
}

/*
 * A stopped process: contact stays pending, blocks no thread, and goes on afterwards. When it is
 * killed instead, it is absent.
 */
static void test_stopped(void **state)
{
	enum vb_contact why;
	struct child child, later;
	struct end end;

	(void)state;
	child_start(&child, silent, NULL);
	child_start(&later, silent, NULL);
	end_start(&end);
	uint32_t engine = end_engine(&end);
	uint32_t qpn = (uint32_t)hear(child.sock);

	stop(child.pid);
	assert_null(end_find(&end, engine, qpn, 300, &why));
	assert_int_equal(why, VB_CONTACT_PENDING);
	kill(child.pid, SIGCONT);
	struct vb_channel *ch = end_find(&end, engine, qpn, END_PATIENCE_MS, &why);

	assert_non_null(ch);
	/* Stopped again, now in contact: it counts as alive, its memory can be reached. */
	stop(child.pid);
	struct iovec iov = {&(uint64_t){0}, 8};

	end_sleep_ms(150);
	assert_true(vb_peer_alive(ch->peer));
	assert_int_equal(vb_peer_read(ch->peer, (uintptr_t)&target_word, &iov, 1, 8, NULL), 0);
	assert_memory_equal(iov.iov_base, &target_word, 8);
	child_kill(&child);
	assert_true(end_await(&end.deaths, 1, END_PATIENCE_MS));
	end_close(&end, ch);

	qpn = (uint32_t)hear(later.sock);
	stop(later.pid);
	assert_null(end_find(&end, engine, qpn, 100, &why));
	child_kill(&later);
	assert_null(end_find(&end, engine, qpn, END_PATIENCE_MS, &why));
	assert_int_not_equal(why, VB_CONTACT_PENDING);
	end_stop(&end);
}

static int count_lines(const char *command)
{
	FILE *f = popen(command, "r");
	int n = -1;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &n), 1);
	pclose(f);
	return n;
}

static int open_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/*
 * The dead take everything with them: no descriptor and no mapping of theirs is left once their
 * channels are closed.
 */
static void test_nothing_left(void **state)
{
	struct contact c[12];
	char maps[96];
	struct end end;

	(void)state;
	snprintf(maps, sizeof(maps), "grep -c memfd:verbatim /proc/%d/maps", (int)getpid());
	for (int i = 0; i < 12; i++)
		child_start(&c[i].child, target, NULL);
	end_start(&end);
	uint32_t engine = end_engine(&end);
	int fds = open_descriptors(), mappings = count_lines(maps);

	for (int i = 0; i < 12; i++)
		contact_make(&end, engine, &c[i]);
	assert_true(open_descriptors() > fds + 12);
	assert_true(count_lines(maps) > mappings + 12);
	for (int i = 0; i < 12; i++) {
		child_kill(&c[i].child);
		fds--; /* the test's own socket to it */
	}
	assert_true(end_await(&end.deaths, 12, END_PATIENCE_MS));
	for (int i = 0; i < 12; i++)
		end_close(&end, c[i].ch);
	vb_node_kick(end.node);
	for (int i = 0; i < END_PATIENCE_MS / 10 && open_descriptors() != fds; i++)
		end_sleep_ms(10);
	assert_int_equal(open_descriptors(), fds);
	assert_int_equal(count_lines(maps), mappings);
	end_stop(&end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_dead_before),
		cmocka_unit_test(test_killed_with_child),
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_exec_under_writes),
		cmocka_unit_test(test_exec_with_child),
		cmocka_unit_test(test_one_of_two),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_nothing_left),
	};

	return cmocka_run_group_tests_name("host/death", tests, NULL, NULL);
}
