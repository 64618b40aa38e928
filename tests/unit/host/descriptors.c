/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Programs that close all their descriptors, that have none left, and that fork: messages go on,
 * and the library touches no descriptor of the program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/reason.h"
#include "host/control.h"
#include "unit/host/end.h"

static uint64_t word = 42;

enum { END, ECHO, CLOSE_ALL, FORK, SLEEP, RINGS, READ_BACK };

static void close_all_but(int keep)
{
	for (int fd = 3; fd < 4096; fd++) {
		if (fd != keep)
			close(fd);
	}
}

/* A child that does everything a child does with what it inherited; its parent must not notice. */
static int fork_and_meddle(struct end *end)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		vb_node_forked(end->node);
		vb_node_kick(end->node);
		vb_node_qpn_free(end->node,
				 vb_node_page(end->node)->header.block[0] << VB_QPN_BLOCK_BITS);
		vb_node_key_free(end->node, 0x100);
		vb_node_engine_free(end->node, 0);
		memset(vb_node_page(end->node), 0xff, 4096 * 64);
		/* No descriptor of the node's is left. */
		for (int fd = 3; fd < 2048; fd++) {
			char link[64], path[64];

			snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
			ssize_t n = readlink(path, link, sizeof(link) - 1);

			if (n <= 0)
				continue;
			link[n] = '\0';
			if (strstr(link, "memfd:verbatim") || strstr(link, "eventfd") ||
			    strstr(link, "eventpoll") || strstr(link, "pidfd") ||
			    strstr(link, "/mem"))
				_exit(2);
		}
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid && status == 0;
}

static int target(int sock, void *arg)
{
	struct vb_page_engine *e;
	static struct end end; /* its thread outlives this function */
	uint32_t engine;
	uint64_t n;

	(void)arg;
	struct vb_channel *ch = end_serve(&end, sock, &engine);

	if (!ch)
		return 1;
	e = &vb_node_page(end.node)->engine[engine];
	for (;;) {
		switch (hear(sock)) {
		case END:
			return 0;
		case ECHO:
			if (!end_take(ch, &n) || !end_push(ch, n + 1))
				return 2;
			vb_channel_wake(ch);
			break;
		case CLOSE_ALL:
			close_all_but(sock);
			break;
		case FORK:
			tell(sock, (uint64_t)fork_and_meddle(&end));
			break;
		case SLEEP:
			__atomic_store_n(&e->asleep, 1, __ATOMIC_SEQ_CST);
			break;
		case RINGS:
			tell(sock, (uint64_t)atomic_load(&end.rings));
			break;
		case READ_BACK: {
			struct iovec iov = {&n, 8};

			tell(sock,
			     (uint64_t)-vb_peer_read(ch->peer, (uintptr_t)&word, &iov, 1, 8, NULL));
			break;
		}
		default:
			return 3;
		}
	}
}

struct fixture {
	struct end end;
	struct child child;
	struct vb_channel *ch;
	uint32_t engine;
	uint32_t qpn;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	enum vb_contact why;

	f->engine = end_start_beside(&f->end, &f->child, target, &f->qpn);
	f->ch = end_find(&f->end, f->engine, f->qpn, END_PATIENCE_MS, &why);
	*state = f;
	return f->ch ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	tell(f->child.sock, END);
	child_join(&f->child);
	assert_true(end_await(&f->end.deaths, 1, END_PATIENCE_MS));
	assert_int_equal(atomic_load(&f->end.deaths), 1);
	end_close(&f->end, f->ch);
	end_stop(&f->end);
	free(f);
	return 0;
}

static uint64_t order(struct fixture *f, uint64_t what)
{
	tell(f->child.sock, what);
	return hear(f->child.sock);
}

static void echo(struct fixture *f, uint64_t i)
{
	uint64_t n;

	tell(f->child.sock, ECHO);
	assert_true(end_push(f->ch, i));
	assert_true(end_take(f->ch, &n));
	assert_int_equal(n, i + 1);
}

/*
 * Descriptors lie high, so that a program's own numbers do not change, and are not handed to
 * programs that it runs.
 */
static void test_numbers(void **state)
{
	(void)state;
	for (int fd = 0; fd < 65536; fd++) {
		char link[64], path[64];

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ssize_t n = readlink(path, link, sizeof(link) - 1);

		if (n <= 0)
			continue;
		link[n] = '\0';
		if (!strstr(link, "memfd:verbatim") && !strstr(link, "eventfd") &&
		    !strstr(link, "eventpoll"))
			continue;
		assert_in_range(fd, 100, 1023);
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	}
}

/*
 * The peer closes everything: it is not dead, it still reads messages, and its own messages still
 * come.
 */
static void test_peer_closes_all(void **state)
{
	struct fixture *f = *state;
	struct iovec iov = {&(uint64_t){0}, 8};
	enum vb_contact why;

	echo(f, 1);
	tell(f->child.sock, CLOSE_ALL);
	echo(f, 2);
	end_sleep_ms(200);
	assert_true(vb_peer_alive(f->ch->peer));
	assert_int_equal(atomic_load(&f->end.deaths), 0);
	/* Asleep and without a doorbell it looks by itself. */
	tell(f->child.sock, SLEEP);
	uint64_t rings = order(f, RINGS);

	vb_channel_wake(f->ch);
	for (int i = 0; i < END_PATIENCE_MS / 10 && order(f, RINGS) <= rings + 1; i++)
		end_sleep_ms(10);
	assert_true(order(f, RINGS) > rings + 1);
	/* It cannot ring; it knocks. */
	int before = atomic_load(&f->end.rings);

	end_qp(&f->end, f->engine, NULL); /* it knocks at the name of our first block */
	__atomic_store_n(&vb_node_page(f->end.node)->engine[f->engine].asleep, 1, __ATOMIC_SEQ_CST);
	echo(f, 3);
	assert_true(end_await(&f->end.rings, before + 1, END_PATIENCE_MS));
	/* We still reach its memory; it does not reach ours. */
	assert_int_equal(vb_peer_read(f->ch->peer, (uintptr_t)&word, &iov, 1, 8, NULL), 0);
	assert_int_equal(order(f, READ_BACK), EOPNOTSUPP);
	assert_ptr_equal(vb_channel_find(f->end.node, f->engine, f->qpn, &why), f->ch);
}

static int closer(int sock, void *arg)
{
	static struct fixture f; /* its thread outlives this function */
	enum vb_contact why;
	uint64_t n;

	(void)arg;
	end_start(&f.end);
	f.engine = end_engine(&f.end);
	f.qpn = (uint32_t)hear(sock);
	f.ch = end_find(&f.end, f.engine, f.qpn, END_PATIENCE_MS, &why);
	if (!f.ch)
		return 1;
	close_all_but(sock);
	/* The program's next files: nothing of ours must be written to any of them. */
	int low = open("/dev/shm", O_RDWR | O_TMPFILE, 0600);
	int files[1200];

	for (int i = 0; i < 1000; i++)
		files[i] = dup(low);
	__atomic_store_n(&vb_node_page(f.end.node)->engine[f.engine].asleep, 1, __ATOMIC_SEQ_CST);
	for (uint64_t i = 0; i < 100; i++) {
		vb_node_kick(f.end.node);
		vb_channel_wake(f.ch);
		if (!end_push(f.ch, i) || !end_take(f.ch, &n) || n != i + 1)
			return 2;
	}
	if (vb_reason_count(VB_REASON_DESCRIPTORS_GONE) == 0)
		return 3;
	/*
	 * Another owner is absent, not pending for ever. The thread that looks may first have to
	 * end a wait of half a second.
	 */
	if (end_find(&f.end, f.engine, f.qpn ^ 0x800000, END_PATIENCE_MS, &why) ||
	    why == VB_CONTACT_PENDING)
		return 4;
	struct stat st;

	if (fstat(low, &st) || st.st_size)
		return 5;
	for (int i = 0; i < 1000; i++) {
		if (files[i] >= 0 && fcntl(files[i], F_GETFD) < 0)
			return 6;
	}
	end_close(&f.end, f.ch);
	return 0;
}

static int echo_forever(int sock, void *arg)
{
	static struct end end; /* its thread outlives this function */
	uint64_t n;

	(void)arg;
	struct vb_channel *ch = end_serve(&end, sock, NULL);

	if (!ch)
		return 1;
	while (end_take(ch, &n) && n < 99) {
		if (!end_push(ch, n + 1))
			return 2;
	}
	end_push(ch, n + 1);
	hear(sock);
	return 0;
}

static void test_we_close_all(void **state)
{
	struct child a, b;

	(void)state;
	child_start(&a, echo_forever, NULL);
	child_start(&b, closer, NULL);
	tell(b.sock, hear(a.sock));
	child_join(&b);
	tell(a.sock, 0);
	child_join(&a);
}

static void test_fork(void **state)
{
	struct fixture *f = *state;

	for (uint64_t i = 0; i < 20; i++) {
		echo(f, i);
		assert_int_equal(order(f, FORK), 1);
		echo(f, i);
	}
	tell(f->child.sock, SLEEP);
	uint64_t rings = order(f, RINGS);

	vb_channel_wake(f->ch);
	for (int i = 0; i < END_PATIENCE_MS / 10 && order(f, RINGS) == rings; i++)
		end_sleep_ms(10);
	/*
	 * It woke. Twice is well: it may have read the note of the ring before the eight bytes of
	 * the doorbell came.
	 */
	assert_true(order(f, RINGS) > rings);
	assert_int_equal(atomic_load(&f->end.deaths), 0);
}

/* A caller who finds no descriptor left waits, and is served when there is one again. */
static int crowded(int sock, void *arg)
{
	struct rlimit limit = {128, 128};
	int files[128], n = 0;
	static struct end end; /* its thread outlives this function */

	(void)arg;
	setrlimit(RLIMIT_NOFILE, &limit);
	end_start(&end);
	tell(sock, end_qp(&end, end_engine(&end), NULL));
	do {
		files[n] = dup(sock);
	} while (files[n++] >= 0);
	tell(sock, 0);
	hear(sock);
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	tell(sock, (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1000);
	while (n)
		close(files[--n]);
	hear(sock);
	return 0;
}

static void test_no_descriptor_left(void **state)
{
	enum vb_contact why;
	struct child child;
	struct end end;

	(void)state;
	uint32_t qpn, engine = end_start_beside(&end, &child, crowded, &qpn);

	hear(child.sock);
	assert_null(end_find(&end, engine, qpn, 300, &why));
	tell(child.sock, 0);
	/* Waiting for a descriptor does not keep it busy. */
	uint64_t ms = hear(child.sock);

	assert_in_range(ms, 0, 50);
	struct vb_channel *ch = NULL;

	for (int i = 0; i < END_PATIENCE_MS / 100 && !ch; i++) {
		ch = end_find(&end, engine, qpn, 100, &why);
		end_sleep_ms(2);
	}
	assert_non_null(ch);
	end_close(&end, ch);
	tell(child.sock, 0);
	child_join(&child);
	end_stop(&end);
}

/*
 * Closed with our message unread: the socket tells an error first. What was said before is not lost
 * for it.
 */
static void test_said_before_reset(void **state)
{
	struct vb_control msg;
	int pair[2], fds[VB_CONTROL_FDS], num_fds;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(vb_control_send(pair[0], &vb_control_short, NULL, 0), 0);
	assert_int_equal(vb_control_send(pair[1], &vb_control_short, NULL, 0), 0);
	close(pair[1]);
	assert_int_equal(vb_control_receive(pair[0], &msg, NULL, fds, &num_fds), 1);
	assert_int_equal(msg.type, VB_CONTROL_SHORT);
	assert_int_equal(vb_control_receive(pair[0], &msg, NULL, fds, &num_fds), 0);
	close(pair[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_numbers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_peer_closes_all, set_up, tear_down),
		cmocka_unit_test(test_we_close_all),
		cmocka_unit_test_setup_teardown(test_fork, set_up, tear_down),
		cmocka_unit_test(test_no_descriptor_left),
		cmocka_unit_test(test_said_before_reset),
	};

	return cmocka_run_group_tests_name("host/descriptors", tests, NULL, NULL);
}
