/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event queues as descriptors: poll, epoll in both modes, O_NONBLOCK, signals, dropping, several
 * readers.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "object/event_queue.h"

static int setup(void **state)
{
	static struct vb_event_queue q;

	*state = &q;
	return vb_event_queue_init(&q);
}

static int teardown(void **state)
{
	vb_event_queue_fini(*state);
	return 0;
}

static void set_nonblocking(const struct vb_event_queue *q)
{
	fcntl(q->fd, F_SETFL, fcntl(q->fd, F_GETFL) | O_NONBLOCK);
}

static int readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

static void empty_says_again(void **state)
{
	struct vb_event_queue *q = *state;
	struct vb_event_node copy;

	assert_true(fcntl(q->fd, F_GETFD) & FD_CLOEXEC);
	set_nonblocking(q);
	assert_false(readable(q->fd));
	assert_int_equal(vb_event_queue_take(q, &copy), -EAGAIN);
}

static void in_order_and_counted(void **state)
{
	struct vb_event_queue *q = *state;
	uint32_t got = 0;
	int a, b;
	struct vb_event_node first = {.type = 1, .object = &a, .got = &got};
	struct vb_event_node second = {.type = 2, .object = &b, .got = &got};
	struct vb_event_node copy;

	set_nonblocking(q);
	vb_event_queue_raise(q, &first);
	vb_event_queue_raise(q, &second);
	vb_event_queue_raise(q, &first);
	assert_true(readable(q->fd));
	assert_int_equal(vb_event_queue_take(q, &copy), 0);
	assert_ptr_equal(copy.object, &a);
	assert_int_equal(copy.type, 1);
	assert_int_equal(vb_event_queue_take(q, &copy), 0);
	assert_ptr_equal(copy.object, &b);
	assert_int_equal(got, 2);
	assert_int_equal(vb_event_queue_take(q, &copy), 0);
	assert_ptr_equal(copy.object, &a);
	assert_int_equal(got, 3);
	assert_false(readable(q->fd));
	assert_int_equal(vb_event_queue_take(q, &copy), -EAGAIN);
}

static void drop_leaves_the_others(void **state)
{
	struct vb_event_queue *q = *state;
	uint32_t got = 0;
	int a, b;
	struct vb_event_node gone = {.object = &a, .got = &got};
	struct vb_event_node stays = {.object = &b};
	struct vb_event_node copy;

	vb_event_queue_raise(q, &gone);
	vb_event_queue_raise(q, &stays);
	vb_event_queue_raise(q, &gone);
	vb_event_queue_drop(q, &gone);
	vb_event_queue_drop(q, &gone);
	assert_int_equal(gone.pending, 0);
	assert_true(readable(q->fd));
	assert_int_equal(vb_event_queue_take(q, &copy), 0);
	assert_ptr_equal(copy.object, &b);
	assert_int_equal(got, 0);
	assert_false(readable(q->fd));
	vb_event_queue_raise(q, &gone);
	vb_event_queue_drop(q, &gone);
	assert_false(readable(q->fd));
}

static void epoll_both_modes(void **state)
{
	struct vb_event_queue *q = *state;
	struct vb_event_node node = {0}, copy;
	struct epoll_event e;
	int level = epoll_create1(EPOLL_CLOEXEC);
	int edge = epoll_create1(EPOLL_CLOEXEC);

	e = (struct epoll_event){.events = EPOLLIN};
	assert_int_equal(epoll_ctl(level, EPOLL_CTL_ADD, q->fd, &e), 0);
	e = (struct epoll_event){.events = EPOLLIN | EPOLLET};
	assert_int_equal(epoll_ctl(edge, EPOLL_CTL_ADD, q->fd, &e), 0);
	assert_int_equal(epoll_wait(level, &e, 1, 0), 0);
	assert_int_equal(epoll_wait(edge, &e, 1, 0), 0);
	vb_event_queue_raise(q, &node);
	assert_int_equal(epoll_wait(level, &e, 1, 0), 1);
	assert_int_equal(epoll_wait(level, &e, 1, 0), 1);
	assert_int_equal(epoll_wait(edge, &e, 1, 0), 1);
	assert_int_equal(epoll_wait(edge, &e, 1, 0), 0);
	vb_event_queue_raise(q, &node); /* a second edge while the first is unread */
	assert_int_equal(epoll_wait(edge, &e, 1, 0), 1);
	assert_int_equal(vb_event_queue_take(q, &copy), 0);
	assert_int_equal(epoll_wait(level, &e, 1, 0), 1);
	assert_int_equal(vb_event_queue_take(q, &copy), 0);
	assert_int_equal(epoll_wait(level, &e, 1, 0), 0);
	close(level);
	close(edge);
}

static void survives_dup(void **state)
{
	struct vb_event_queue *q = *state;
	struct vb_event_node node = {0}, copy;
	int fd = dup(q->fd);

	vb_event_queue_raise(q, &node);
	assert_true(readable(fd));
	assert_int_equal(vb_event_queue_take(q, &copy), 0);
	assert_false(readable(fd));
	close(fd);
}

struct reader {
	struct vb_event_queue *q;
	int result;
	pthread_t thread;
};

static void *read_one(void *arg)
{
	struct reader *r = arg;
	struct vb_event_node copy;

	r->result = vb_event_queue_take(r->q, &copy);
	return NULL;
}

static void start(struct reader *r, struct vb_event_queue *q)
{
	*r = (struct reader){.q = q, .result = 1};
	assert_int_equal(pthread_create(&r->thread, NULL, read_one, r), 0);
	usleep(50000); /* into read(2) */
}

static void on_signal(int sig)
{
	(void)sig;
}

static void handle(int flags)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = flags};

	sigaction(SIGUSR1, &sa, NULL);
}

static void signal_interrupts(void **state)
{
	struct reader r;

	handle(0);
	start(&r, *state);
	/*
	 * On a crowded machine the reader may not be in read(2) yet: a signal that comes before it
	 * interrupts nothing.
	 */
	do {
		pthread_kill(r.thread, SIGUSR1);
		usleep(1000);
	} while (pthread_tryjoin_np(r.thread, NULL));
	assert_int_equal(r.result, -EINTR);
}

static void restarting_signal_does_not(void **state)
{
	struct vb_event_node node = {0};
	struct reader r;

	handle(SA_RESTART);
	start(&r, *state);
	for (int i = 0; i < 20; i++) {
		pthread_kill(r.thread, SIGUSR1);
		usleep(1000);
	}
	vb_event_queue_raise(*state, &node);
	pthread_join(r.thread, NULL);
	assert_int_equal(r.result, 0);
}

/*
 * A reader that was woken for an event which is then dropped goes back to waiting and gets the next
 * one.
 */
static void dropped_under_a_reader(void **state)
{
	struct vb_event_queue *q = *state;

	for (int i = 0; i < 300; i++) {
		struct vb_event_node gone = {0}, next = {0};
		struct reader r = {.q = q, .result = 1};

		assert_int_equal(pthread_create(&r.thread, NULL, read_one, &r), 0);
		vb_event_queue_raise(q, &gone);
		vb_event_queue_drop(q, &gone);
		vb_event_queue_raise(q, &next);
		pthread_join(r.thread, NULL);
		assert_int_equal(r.result, 0);
		vb_event_queue_drop(q, &next); /* the reader may have had the first event */
		assert_false(readable(q->fd));
	}
}

#define READERS 4
#define EVENTS  2000

static void *read_many(void *arg)
{
	struct reader *r = arg;
	struct vb_event_node copy;

	while (!vb_event_queue_take(r->q, &copy) && copy.type != 9)
		r->result++;
	return NULL;
}

static void each_event_to_one_reader(void **state)
{
	struct vb_event_queue *q = *state;
	struct vb_event_node node[10] = {0}, last = {.type = 9};
	struct reader r[READERS];
	uint32_t got = 0;
	int sum = 0;

	for (int i = 0; i < 10; i++)
		node[i].got = &got;
	for (int i = 0; i < READERS; i++) {
		r[i] = (struct reader){.q = q};
		assert_int_equal(pthread_create(&r[i].thread, NULL, read_many, &r[i]), 0);
	}
	for (int i = 0; i < EVENTS; i++)
		vb_event_queue_raise(q, &node[i % 10]);
	while (readable(q->fd))
		usleep(1000);
	for (int i = 0; i < READERS; i++)
		vb_event_queue_raise(q, &last);
	for (int i = 0; i < READERS; i++) {
		pthread_join(r[i].thread, NULL);
		sum += r[i].result;
	}
	assert_int_equal(sum, EVENTS);
	assert_int_equal(got, EVENTS);
}

/* A thread that waits comes back when the queue is closed. */
static void close_wakes_readers(void **state)
{
	struct vb_event_queue *q = *state;
	struct reader a, b;

	start(&a, q);
	start(&b, q);
	vb_event_queue_close(q);
	pthread_join(a.thread, NULL);
	pthread_join(b.thread, NULL);
	assert_int_equal(a.result, -EBADF);
	assert_int_equal(b.result, -EBADF);
}

/* A cancelled reader leaves nothing that close would wait for. */
static void cancelled_reader(void **state)
{
	struct vb_event_queue *q = *state;
	struct vb_event_node node = {0}, copy;
	struct reader r;

	start(&r, q);
	pthread_cancel(r.thread);
	pthread_join(r.thread, NULL);
	vb_event_queue_raise(q, &node);
	assert_int_equal(vb_event_queue_take(q, &copy), 0);
	vb_event_queue_close(q);
}

static void closed_queue_swallows(void **state)
{
	struct vb_event_queue *q = *state;
	struct vb_event_node node = {0}, copy;

	vb_event_queue_close(q);
	vb_event_queue_raise(q, &node);
	assert_int_equal(node.pending, 0);
	vb_event_queue_drop(q, &node);
	assert_int_equal(vb_event_queue_take(q, &copy), -EBADF);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(empty_says_again),
		TEST(in_order_and_counted),
		TEST(drop_leaves_the_others),
		TEST(epoll_both_modes),
		TEST(survives_dup),
		TEST(signal_interrupts),
		TEST(restarting_signal_does_not),
		TEST(dropped_under_a_reader),
		TEST(each_event_to_one_reader),
		TEST(close_wakes_readers),
		TEST(cancelled_reader),
		TEST(closed_queue_swallows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
