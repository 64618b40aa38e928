/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waiting by rsockets: rpoll and rselect tell of sockets and pipes together and keep their time;
 * repoll_wait is level and edge triggered and fires once where asked; threads that sleep for the same
 * socket are all woken; a reader learns that its socket was closed or shut down elsewhere, and that a
 * peer which says nothing was killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rs.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/process.h"

enum { ROUNDS = 400, LONG_MS = 20000 };

static void polling(void)
{
	struct pollfd fds[3];
	uint64_t start;
	int a, b, p[2];
	char byte;

	rs_pair(OWN_V4, &a, &b);
	CHECK_ZERO(pipe2(p, O_CLOEXEC));
	fds[0] = (struct pollfd){a, POLLIN, 0};
	fds[1] = (struct pollfd){p[0], POLLIN, 0};
	fds[2] = (struct pollfd){-1, POLLIN, 0};

	expect_case("rpoll keeps its time");
	start = now_ms();
	EXPECT_EQ(rpoll(fds, 3, 100), 0);
	EXPECT(now_ms() - start >= 100);
	EXPECT_EQ(rpoll(fds, 3, 0), 0);

	expect_case("rpoll tells of sockets and pipes");
	CHECK_EQ(rsend(b, "x", 1, 0), 1);
	EXPECT_EQ(rpoll(fds, 3, LONG_MS), 1);
	EXPECT_EQ(fds[0].revents, POLLIN);
	EXPECT_EQ(fds[1].revents, 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	EXPECT_EQ(rpoll(fds, 3, LONG_MS), 2);
	CHECK_EQ(rrecv(a, &byte, 1, 0), 1);
	EXPECT_EQ(rpoll(fds, 3, LONG_MS), 1);
	EXPECT_EQ(fds[1].revents, POLLIN);
	CHECK_EQ(read(p[0], &byte, 1), 1);
	EXPECT_EQ(rpoll(fds, 3, 0), 0);

	expect_case("rpoll tells of the end after the last byte");
	CHECK_EQ(rsend(b, "x", 1, 0), 1);
	CHECK_ZERO(rclose(b));
	fds[0].events = POLLIN | POLLRDHUP;
	for (int i = 0; i < LONG_MS && rpoll(fds, 1, LONG_MS) == 1 && !(fds[0].revents & POLLRDHUP);
	     i++)
		sleep_ms(1);
	EXPECT_EQ(fds[0].revents, POLLIN | POLLRDHUP);
	CHECK_EQ(rrecv(a, &byte, 1, 0), 1);
	EXPECT_EQ(rpoll(fds, 1, LONG_MS), 1);
	EXPECT_EQ(fds[0].revents, POLLIN | POLLRDHUP | POLLHUP);
	CHECK_ZERO(rclose(a));
	close(p[0]);
	close(p[1]);
}

static void selecting(void)
{
	struct timeval t = {.tv_sec = LONG_MS / 1000};
	fd_set reads, writes;
	int a, b;

	expect_case("rselect");
	rs_pair(OWN_V4, &a, &b);
	FD_ZERO(&reads);
	FD_ZERO(&writes);
	FD_SET(a, &reads);
	FD_SET(b, &writes);
	EXPECT_EQ(rselect((a > b ? a : b) + 1, &reads, &writes, NULL, &t), 1);
	EXPECT(!FD_ISSET(a, &reads) && FD_ISSET(b, &writes));
	CHECK_EQ(rsend(b, "x", 1, 0), 1);
	FD_SET(a, &reads);
	EXPECT_EQ(rselect(a + 1, &reads, NULL, NULL, &t), 1);
	EXPECT(FD_ISSET(a, &reads));
	EXPECT_MINUS1(rselect(-1, NULL, NULL, NULL, &t), EINVAL);
	rs_pair_close(a, b);
}

static int wait_one(int ep, int ms, uint32_t *events)
{
	struct epoll_event event = {0};
	int n = repoll_wait(ep, &event, 1, ms);

	*events = event.events;
	return n;
}

static void repolling(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	uint32_t got;
	char byte;
	int a, b, p[2], ep = repoll_create(1);

	rs_pair(OWN_V4, &a, &b);
	CHECK_ZERO(pipe2(p, O_CLOEXEC));
	CHECK(ep >= 0);

	expect_case("repoll_ctl refuses");
	EXPECT_MINUS1(repoll_create(0), EINVAL);
	EXPECT_MINUS1(repoll_ctl(ep, EPOLL_CTL_MOD, a, &event), ENOENT);
	EXPECT_MINUS1(repoll_ctl(ep, EPOLL_CTL_DEL, a, NULL), ENOENT);
	EXPECT_EQ(repoll_ctl(ep, EPOLL_CTL_ADD, a, &event), 0);
	EXPECT_MINUS1(repoll_ctl(ep, EPOLL_CTL_ADD, a, &event), EEXIST);
	EXPECT_EQ(repoll_ctl(ep, EPOLL_CTL_ADD, p[0], &event), 0);
	EXPECT_MINUS1(repoll_ctl(ep, EPOLL_CTL_ADD, p[0], &event), EEXIST);
	EXPECT_MINUS1(repoll_wait(ep, &event, 0, 0), EINVAL);

	expect_case("repoll_wait, level triggered");
	EXPECT_EQ(wait_one(ep, 50, &got), 0);
	CHECK_EQ(rsend(b, "x", 1, 0), 1);
	EXPECT_EQ(wait_one(ep, LONG_MS, &got), 1);
	EXPECT_EQ(wait_one(ep, LONG_MS, &got), 1);
	CHECK_EQ(rrecv(a, &byte, 1, 0), 1);
	EXPECT_EQ(wait_one(ep, 0, &got), 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	EXPECT_EQ(wait_one(ep, LONG_MS, &got), 1);
	CHECK_EQ(read(p[0], &byte, 1), 1);

	expect_case("repoll_wait, edge triggered");
	event.events = EPOLLIN | EPOLLOUT | EPOLLET;
	EXPECT_EQ(repoll_ctl(ep, EPOLL_CTL_MOD, a, &event), 0);
	EXPECT_EQ(wait_one(ep, LONG_MS, &got), 1);
	EXPECT_EQ(got, EPOLLOUT);
	EXPECT_EQ(wait_one(ep, 20, &got), 0);
	CHECK_EQ(rsend(b, "x", 1, 0), 1);
	EXPECT_EQ(wait_one(ep, LONG_MS, &got), 1);
	EXPECT_EQ(got, EPOLLIN | EPOLLOUT);
	EXPECT_EQ(wait_one(ep, 20, &got), 0);
	CHECK_EQ(rsend(b, "x", 1, 0), 1);
	EXPECT_EQ(wait_one(ep, LONG_MS, &got), 1);

	expect_case("repoll_wait, one shot");
	event.events = EPOLLIN | EPOLLONESHOT;
	EXPECT_EQ(repoll_ctl(ep, EPOLL_CTL_MOD, a, &event), 0);
	EXPECT_EQ(wait_one(ep, LONG_MS, &got), 1);
	EXPECT_EQ(wait_one(ep, 20, &got), 0);
	EXPECT_EQ(repoll_ctl(ep, EPOLL_CTL_MOD, a, &event), 0);
	EXPECT_EQ(wait_one(ep, LONG_MS, &got), 1);

	expect_case("a number that was closed and given anew can be added");
	CHECK_ZERO(rclose(a));
	CHECK_ZERO(rclose(b));
	rs_pair(OWN_V4, &a, &b);
	event.events = EPOLLIN;
	EXPECT_EQ(repoll_ctl(ep, EPOLL_CTL_ADD, a, &event), 0);
	EXPECT_EQ(repoll_ctl(ep, EPOLL_CTL_DEL, a, NULL), 0);
	rs_pair_close(a, b);
	close(ep);
	close(p[0]);
	close(p[1]);
}

/* As many descriptors as make the tables of an instance grow; each is found again. */
static void repolling_many(void)
{
	enum { MANY = 200 };
	struct epoll_event event = {.events = EPOLLIN}, got[MANY];
	int ep = repoll_create(1), fds[MANY], a, b;

	expect_case("repoll of many descriptors");
	CHECK(ep >= 0);
	rs_pair(OWN_V4, &a, &b);
	event.data.fd = a;
	EXPECT_EQ(repoll_ctl(ep, EPOLL_CTL_ADD, a, &event), 0);
	for (int i = 0; i < MANY; i++) {
		fds[i] = eventfd(i % 2, EFD_CLOEXEC);
		CHECK(fds[i] >= 0);
		event.data.fd = fds[i];
		EXPECT_EQ(repoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &event), 0);
		EXPECT_MINUS1(repoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &event), EEXIST);
	}
	EXPECT_EQ(repoll_wait(ep, got, MANY, 0), MANY / 2);
	for (int i = 1; i < MANY; i += 2) {
		EXPECT_EQ(repoll_ctl(ep, EPOLL_CTL_DEL, fds[i], NULL), 0);
		EXPECT_MINUS1(repoll_ctl(ep, EPOLL_CTL_DEL, fds[i], NULL), ENOENT);
	}
	EXPECT_EQ(repoll_wait(ep, got, MANY, 0), 0);
	CHECK_EQ(rsend(b, "x", 1, 0), 1);
	EXPECT_EQ(repoll_wait(ep, got, MANY, LONG_MS), 1);
	EXPECT_EQ(got[0].data.fd, a);
	for (int i = 0; i < MANY; i += 2) {
		event.data.fd = fds[i];
		EXPECT_EQ(repoll_ctl(ep, EPOLL_CTL_MOD, fds[i], &event), 0);
	}
	for (int i = 0; i < MANY; i++)
		close(fds[i]);
	close(ep);
	rs_pair_close(a, b);
}

/* One end of a conversation: a number comes, the next one goes. */
struct side {
	int fd;
	atomic_int last;
};

static void *writer(void *arg)
{
	struct side *s = arg;

	for (int i = 1; i <= ROUNDS; i++) {
		CHECK_EQ(rsend(s->fd, &i, sizeof(i), 0), sizeof(i));
		/* Long enough for the peer's threads to sleep now and then. */
		if (i % 16 == 0)
			sleep_ms(2);
		for (uint64_t end = now_ms() + LONG_MS; atomic_load(&s->last) < i;) {
			CHECK(now_ms() < end);
			sched_yield();
		}
	}
	return NULL;
}

static void *reader(void *arg)
{
	struct side *s = arg;
	int number = 0;

	while (number < ROUNDS) {
		CHECK_EQ(rrecv(s->fd, &number, sizeof(number), MSG_WAITALL), sizeof(number));
		atomic_store(&s->last, number);
	}
	return NULL;
}

/* Both directions at once, a thread for each direction of each end. */
static void many_threads(void)
{
	pthread_t threads[4];
	struct side a = {0}, b = {0};

	expect_case("a reader and a writer of one socket sleep and are woken, both ways");
	rs_pair(OWN_V4, &a.fd, &b.fd);
	/* What a's writer sends is seen by b's reader; each writer waits for its own reader. */
	CHECK_ZERO(pthread_create(&threads[0], NULL, reader, &a));
	CHECK_ZERO(pthread_create(&threads[1], NULL, reader, &b));
	CHECK_ZERO(pthread_create(&threads[2], NULL, writer, &a));
	CHECK_ZERO(pthread_create(&threads[3], NULL, writer, &b));
	for (int i = 0; i < 4; i++)
		CHECK_ZERO(pthread_join(threads[i], NULL));
	EXPECT_EQ(a.last, ROUNDS);
	EXPECT_EQ(b.last, ROUNDS);
	rs_pair_close(a.fd, b.fd);
}

struct ended {
	int fd;
	ssize_t result;
	int error;
};

static void *read_to_end(void *arg)
{
	struct ended *e = arg;
	char byte;

	e->result = rrecv(e->fd, &byte, 1, 0);
	e->error = errno;
	return NULL;
}

static void ended_elsewhere(void)
{
	struct ended e;
	pthread_t thread;
	int a, b;

	expect_case("a reader learns that its socket is closed by another thread");
	rs_pair(OWN_V4, &a, &b);
	e.fd = a;
	CHECK_ZERO(pthread_create(&thread, NULL, read_to_end, &e));
	sleep_ms(50);
	CHECK_ZERO(rclose(a));
	CHECK_ZERO(pthread_join(thread, NULL));
	/* Closing shuts down first, so the end may be what it finds. */
	EXPECT(e.result == 0 || (e.result == -1 && e.error == EBADF));
	CHECK_ZERO(rclose(b));

	expect_case("a reader learns that its socket is shut down by another thread");
	rs_pair(OWN_V4, &a, &b);
	e.fd = a;
	CHECK_ZERO(pthread_create(&thread, NULL, read_to_end, &e));
	sleep_ms(50);
	CHECK_ZERO(rshutdown(a, SHUT_RDWR));
	CHECK_ZERO(pthread_join(thread, NULL));
	EXPECT_EQ(e.result, 0);
	rs_pair_close(a, b);
}

/* Connects, says so, and stays until it is killed. */
static int stay(int sock, void *argument)
{
	struct sockaddr *to;
	uint16_t port;
	int fd;

	(void)argument;
	message_receive(sock, &port, sizeof(port));
	to = cm_address(OWN_V4, port);
	fd = rsocket(AF_INET, SOCK_STREAM, 0);
	CHECK_ZERO(rconnect(fd, to, rs_length(to)));
	message_send(sock, &port, sizeof(port));
	for (;;)
		pause();
}

static void killed_peer(struct process *peer)
{
	struct pollfd fd = {.events = POLLIN};
	uint16_t port;
	int listener = rs_listener(OWN_V4, &port);
	char byte;

	expect_case("who waits for a silent peer learns that it was killed");
	message_send(peer->sock, &port, sizeof(port));
	fd.fd = raccept(listener, NULL, NULL);
	CHECK(fd.fd >= 0);
	message_receive(peer->sock, &port, sizeof(port));
	process_kill(peer);
	EXPECT_EQ(rpoll(&fd, 1, 60000), 1);
	EXPECT(rrecv(fd.fd, &byte, 1, 0) <= 0);
	rs_pair_close(fd.fd, listener);
}

int main(void)
{
	struct process peer;

	cm_network();
	process_start(&peer, stay, NULL); /* before this process has a device */
	killed_peer(&peer);
	polling();
	selecting();
	repolling();
	repolling_many();
	many_threads();
	ended_elsewhere();
	return expect_done();
}
