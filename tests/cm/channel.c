/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event channels and events: readable as long as an event waits, in order, blocking or not, for one
 * thread or several; acknowledgements that rdma_destroy_id() waits for; events that move with
 * their id.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "cm.h"
#include "support/check.h"

enum { MANY = 64, THREADS = 4, PAUSE_US = 50000 };

static void write_event(struct rdma_cm_id *id, int number)
{
	CHECK_ZERO(rdma_write_cm_event(id, RDMA_CM_EVENT_USER, number, (uint64_t)number << 32));
}

static void test_order(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *a = cm_id(channel, RDMA_PS_TCP), *b = cm_id(channel, RDMA_PS_UDP);

	expect_case("events come in order, over all ids of the channel");
	EXPECT(!cm_waits(channel));
	for (int i = 0; i < MANY; i++)
		write_event(i % 3 ? a : b, i);
	for (int i = 0; i < MANY; i++) {
		struct rdma_cm_event *event = cm_event(channel, RDMA_CM_EVENT_USER);

		EXPECT_EQ(event->status, i);
		EXPECT_EQ(event->param.arg, (uint64_t)i << 32);
		EXPECT(event->id == (i % 3 ? a : b));
		EXPECT_EQ(cm_waits(channel), i < MANY - 1);
		CHECK_ZERO(rdma_ack_cm_event(event));
	}
	CHECK_ZERO(rdma_destroy_id(a));
	CHECK_ZERO(rdma_destroy_id(b));
}

static void test_nonblocking(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;
	int flags = fcntl(channel->fd, F_GETFL);

	expect_case("O_NONBLOCK and close-on-exec");
	EXPECT(fcntl(channel->fd, F_GETFD) & FD_CLOEXEC);
	CHECK_ZERO(fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK));
	EXPECT_MINUS1(rdma_get_cm_event(channel, &event), EAGAIN);
	CHECK_ZERO(fcntl(channel->fd, F_SETFL, flags));
}

static void on_alarm(int signal)
{
	(void)signal;
}

static void test_signal(struct rdma_event_channel *channel)
{
	struct sigaction action = {.sa_handler = on_alarm};
	struct itimerspec soon = {.it_value.tv_nsec = 50000000, .it_interval.tv_nsec = 50000000};
	struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct rdma_cm_event *event;
	timer_t timer;

	expect_case("a signal ends the wait");
	CHECK_ZERO(sigaction(SIGUSR1, &action, NULL));
	CHECK_ZERO(timer_create(CLOCK_MONOTONIC, &how, &timer));
	CHECK_ZERO(timer_settime(timer, 0, &soon, NULL));
	EXPECT_MINUS1(rdma_get_cm_event(channel, &event), EINTR);
	CHECK_ZERO(timer_delete(timer));
}

static void test_edge(struct rdma_event_channel *channel)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	expect_case("epoll, also edge-triggered, tells of each event");
	CHECK_ZERO(epoll_ctl(epoll, EPOLL_CTL_ADD, channel->fd, &event));
	write_event(id, 1);
	EXPECT_EQ(epoll_wait(epoll, &event, 1, 10000), 1);
	EXPECT_EQ(epoll_wait(epoll, &event, 1, 0), 0);
	write_event(id, 2);
	EXPECT_EQ(epoll_wait(epoll, &event, 1, 10000), 1);
	EXPECT_EQ(cm_pass(channel, RDMA_CM_EVENT_USER), 1);
	EXPECT_EQ(cm_pass(channel, RDMA_CM_EVENT_USER), 2);
	close(epoll);
	CHECK_ZERO(rdma_destroy_id(id));
}

static _Atomic int sum;

static void *read_some(void *channel)
{
	for (int i = 0; i < MANY / THREADS; i++) {
		struct rdma_cm_event *event;

		CHECK_ZERO(rdma_get_cm_event(channel, &event));
		atomic_fetch_add(&sum, event->status);
		CHECK_ZERO(rdma_ack_cm_event(event));
	}
	return NULL;
}

static void test_threads(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);
	pthread_t threads[THREADS];
	int wanted = 0;

	expect_case("of several waiting threads each event goes to one");
	for (int i = 0; i < THREADS; i++)
		CHECK_ZERO(pthread_create(&threads[i], NULL, read_some, channel));
	for (int i = 0; i < MANY; i++) {
		write_event(id, i);
		wanted += i;
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_ZERO(pthread_join(threads[i], NULL));
	EXPECT_EQ(sum, wanted);
	EXPECT(!cm_waits(channel));
	CHECK_ZERO(rdma_destroy_id(id));
}

static _Atomic int destroyed;

static void *destroy(void *id)
{
	CHECK_ZERO(rdma_destroy_id(id));
	destroyed = 1;
	return NULL;
}

static void test_destroy_waits(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);
	struct rdma_cm_event *held;
	pthread_t thread;

	expect_case("destroy_id drops what was not read, and waits for what was");
	write_event(id, 1);
	write_event(id, 2);
	held = cm_event(channel, RDMA_CM_EVENT_USER);
	CHECK_ZERO(pthread_create(&thread, NULL, destroy, id));
	while (cm_waits(channel)) /* the second one goes */
		usleep(1000);
	usleep(PAUSE_US);
	EXPECT(!destroyed);
	EXPECT_EQ(held->status, 1);
	CHECK_ZERO(rdma_ack_cm_event(held));
	CHECK_ZERO(pthread_join(thread, NULL));
	EXPECT(destroyed);
	EXPECT(!cm_waits(channel));
}

static void test_migrate(struct rdma_event_channel *from)
{
	struct rdma_event_channel *to = rdma_create_event_channel();
	struct rdma_cm_id *id = cm_id(from, RDMA_PS_TCP), *other = cm_id(from, RDMA_PS_TCP);

	expect_case("migrate_id takes the unread events along, in order");
	CHECK(to);
	for (int i = 0; i < 4; i++) {
		write_event(id, i);
		write_event(other, 10 + i);
	}
	EXPECT_EQ(rdma_migrate_id(id, to), 0);
	EXPECT(id->channel == to);
	for (int i = 0; i < 4; i++) {
		EXPECT_EQ(cm_pass(to, RDMA_CM_EVENT_USER), i);
		EXPECT_EQ(cm_pass(from, RDMA_CM_EVENT_USER), 10 + i);
	}
	EXPECT(!cm_waits(to) && !cm_waits(from));
	EXPECT_EQ(rdma_migrate_id(id, NULL), 0);
	EXPECT(id->channel != to && id->channel);
	EXPECT_MINUS1(rdma_migrate_id(id, NULL), EINVAL);
	EXPECT_EQ(rdma_migrate_id(id, from), 0);
	CHECK_ZERO(rdma_destroy_id(id));
	CHECK_ZERO(rdma_destroy_id(other));
	rdma_destroy_event_channel(to);
}

static void test_channel_first(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	expect_case("a channel may be destroyed before its ids");
	CHECK(channel);
	id = cm_id(channel, RDMA_PS_TCP);
	write_event(id, 1);
	rdma_destroy_event_channel(channel);
	write_event(id, 2);
	EXPECT_EQ(rdma_destroy_id(id), 0);
}

static void test_wrong(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP), *none = NULL;

	expect_case("wrong arguments");
	EXPECT_MINUS1(rdma_get_cm_event(NULL, &event), EINVAL);
	EXPECT_MINUS1(rdma_get_cm_event(channel, NULL), EINVAL);
	EXPECT_MINUS1(rdma_ack_cm_event(NULL), EINVAL);
	EXPECT_MINUS1(rdma_write_cm_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, 0), EINVAL);
	EXPECT_MINUS1(rdma_write_cm_event(NULL, RDMA_CM_EVENT_USER, 0, 0), EINVAL);
	EXPECT_MINUS1(rdma_create_id(channel, NULL, NULL, RDMA_PS_TCP), EINVAL);
	EXPECT_MINUS1(rdma_create_id(channel, &none, NULL, (enum rdma_port_space)0x107), EINVAL);
	EXPECT_MINUS1(rdma_destroy_id(NULL), EINVAL);
	EXPECT_MINUS1(rdma_migrate_id(NULL, channel), EINVAL);
	rdma_destroy_event_channel(NULL);
	CHECK_ZERO(rdma_destroy_id(id));
}

static void test_names(void)
{
	expect_case("event_str gives the enumerators' names");
	EXPECT(!strcmp(rdma_event_str(RDMA_CM_EVENT_ADDR_RESOLVED), "RDMA_CM_EVENT_ADDR_RESOLVED"));
	EXPECT(!strcmp(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT), "RDMA_CM_EVENT_TIMEWAIT_EXIT"));
	EXPECT(!strcmp(rdma_event_str(RDMA_CM_EVENT_INTERNAL), "RDMA_CM_EVENT_INTERNAL"));
	EXPECT(!strcmp(rdma_event_str((enum rdma_cm_event_type)20), "UNKNOWN EVENT"));
	EXPECT(!strcmp(rdma_event_str((enum rdma_cm_event_type) - 1), "UNKNOWN EVENT"));
}

int main(void)
{
	struct rdma_event_channel *channel;

	cm_network();
	channel = rdma_create_event_channel();
	CHECK(channel);
	test_order(channel);
	test_nonblocking(channel);
	test_signal(channel);
	test_edge(channel);
	test_threads(channel);
	test_destroy_waits(channel);
	test_migrate(channel);
	test_channel_first();
	test_wrong(channel);
	test_names();
	rdma_destroy_event_channel(channel);
	return expect_done();
}
