/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls of rsockets against their namesakes of the C library: what each refuses, names, options,
 * flags of reading and writing, connections that are refused or made without waiting, mappings,
 * datagrams, what a forked child has, and a descriptor that was closed under its socket.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rs.h"
#include "support/check.h"

static void refused(void)
{
	struct sockaddr *own = cm_address(OWN_V4, 0), *foreign = cm_address("198.51.100.1", 0);
	struct pollfd none = {.fd = 900, .events = POLLIN};
	socklen_t length = sizeof(struct sockaddr_in);
	char byte = 0;
	int fd, one = 1;

	expect_case("descriptors that are no rsockets");
	EXPECT_MINUS1(rbind(900, own, length), EBADF);
	EXPECT_MINUS1(rlisten(900, 1), EBADF);
	EXPECT_MINUS1(raccept(900, NULL, NULL), EBADF);
	EXPECT_MINUS1(rconnect(900, own, length), EBADF);
	EXPECT_MINUS1(rshutdown(900, SHUT_RD), EBADF);
	EXPECT_MINUS1(rclose(900), EBADF);
	EXPECT_MINUS1(rclose(0), EBADF);
	EXPECT_MINUS1(rsend(-1, &byte, 1, 0), EBADF);
	EXPECT_MINUS1(rrecv(1 << 30, &byte, 1, 0), EBADF);
	EXPECT_MINUS1(rgetsockname(900, own, &length), EBADF);
	EXPECT_MINUS1(rsetsockopt(900, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), EBADF);
	EXPECT_MINUS1(rfcntl(900, F_GETFL), EBADF);
	EXPECT_MINUS1(riomap(900, &byte, 1, PROT_WRITE, 0, -1), EBADF);
	EXPECT_MINUS1(repoll_wait(900, (struct epoll_event[1]){{0}}, 1, 0), EBADF);
	EXPECT_EQ(rpoll(&none, 1, 0), 1);
	EXPECT_EQ(none.revents, POLLNVAL);

	expect_case("kinds of sockets that there are not");
	EXPECT_MINUS1(rsocket(AF_UNIX, SOCK_STREAM, 0), ENOTSUP);
	EXPECT_MINUS1(rsocket(AF_INET, SOCK_RAW, 0), ENOTSUP);
	EXPECT_MINUS1(rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), ENOTSUP);

	expect_case("calls that a socket is not ready for");
	fd = rsocket(AF_INET, SOCK_STREAM, 0);
	CHECK(fd >= 0);
	EXPECT_MINUS1(rsend(fd, &byte, 1, 0), ENOTCONN);
	EXPECT_MINUS1(rrecv(fd, &byte, 1, 0), ENOTCONN);
	EXPECT_MINUS1(raccept(fd, NULL, NULL), EINVAL);
	EXPECT_MINUS1(rshutdown(fd, SHUT_RDWR), ENOTCONN);
	EXPECT_MINUS1(rgetpeername(fd, own, &length), ENOTCONN);
	EXPECT_MINUS1(riomap(fd, &byte, 1, PROT_WRITE, 0, -1), ENOTCONN);
	EXPECT_MINUS1(rbind(fd, own, 3), EINVAL);
	EXPECT_MINUS1(rbind(fd, cm_address(OWN_V6, 0), sizeof(struct sockaddr_in6)), EAFNOSUPPORT);
	EXPECT_MINUS1(rbind(fd, foreign, sizeof(struct sockaddr_in)), EADDRNOTAVAIL);
	EXPECT_EQ(rbind(fd, cm_address(OWN_V4, 0), sizeof(struct sockaddr_in)), 0);
	EXPECT_MINUS1(rbind(fd, cm_address(OWN_V4, 0), sizeof(struct sockaddr_in)), EINVAL);
	EXPECT_EQ(rclose(fd), 0);
	EXPECT_MINUS1(rclose(fd), EBADF);
}

static void bound_twice(void)
{
	uint16_t port;
	int a = rs_listener(OWN_V4, &port);
	int b = rsocket(AF_INET, SOCK_STREAM, 0);

	expect_case("an address in use");
	EXPECT_MINUS1(rbind(b, cm_address(OWN_V4, port), sizeof(struct sockaddr_in)), EADDRINUSE);
	rs_pair_close(a, b);
}

static void names(const char *address)
{
	struct sockaddr_in6 own_a, peer_a, own_b, peer_b;
	socklen_t length = sizeof(own_a), shorter = 4;
	socklen_t want = strchr(address, ':') ? sizeof(struct sockaddr_in6)
					      : sizeof(struct sockaddr_in);
	int a, b;

	expect_case("names of both ends, %s", address);
	rs_pair(address, &a, &b);
	memset(&own_a, 0, sizeof(own_a));
	own_b = peer_a = peer_b = own_a;
	EXPECT_EQ(rgetsockname(a, (struct sockaddr *)&own_a, &length), 0);
	EXPECT_EQ(length, want);
	length = sizeof(own_a);
	EXPECT_EQ(rgetpeername(a, (struct sockaddr *)&peer_a, &length), 0);
	length = sizeof(own_a);
	EXPECT_EQ(rgetsockname(b, (struct sockaddr *)&own_b, &length), 0);
	length = sizeof(own_a);
	EXPECT_EQ(rgetpeername(b, (struct sockaddr *)&peer_b, &length), 0);
	EXPECT(!memcmp(&own_a, &peer_b, sizeof(struct sockaddr_in)));
	EXPECT(!memcmp(&own_b, &peer_a, sizeof(struct sockaddr_in)));
	EXPECT(own_a.sin6_port && own_b.sin6_port && own_a.sin6_port != own_b.sin6_port);
	EXPECT_EQ(rgetsockname(a, (struct sockaddr *)&own_a, &shorter), 0);
	EXPECT_EQ(shorter, want);
	rs_pair_close(a, b);
}

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t length = sizeof(value);

	CHECK_ZERO(rgetsockopt(fd, level, name, &value, &length));
	CHECK_EQ(length, sizeof(value));
	return value;
}

static void options(void)
{
	static const struct {
		int level, name, set, get;
	} rows[] = {
		{SOL_SOCKET, SO_REUSEADDR, 1, 1},       {SOL_SOCKET, SO_KEEPALIVE, 1, 1},
		{SOL_SOCKET, SO_OOBINLINE, 1, 1},       {SOL_SOCKET, SO_SNDBUF, 50048, 100096},
		{SOL_SOCKET, SO_RCVBUF, 50048, 100096}, {IPPROTO_TCP, TCP_NODELAY, 1, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, 7, 7},      {IPPROTO_TCP, TCP_KEEPINTVL, 8, 8},
		{IPPROTO_TCP, TCP_KEEPCNT, 9, 9},       {SOL_RDMA, RDMA_SQSIZE, 100, 100},
		{SOL_RDMA, RDMA_RQSIZE, 1, 16},         {SOL_RDMA, RDMA_INLINE, 0, 0},
		{SOL_RDMA, RDMA_IOMAPSIZE, 200, 256},   {IPPROTO_IP, IP_TOS, 16, 16},
	};
	int a, b, fd = rsocket(AF_INET, SOCK_STREAM, 0);
	struct linger linger = {1, 3};
	struct ibv_path_data path;
	socklen_t length = sizeof(linger);
	int value = 1;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		expect_case("option %d of level %d", rows[i].name, rows[i].level);
		EXPECT_EQ(rsetsockopt(fd, rows[i].level, rows[i].name, &rows[i].set, sizeof(int)),
			  0);
		EXPECT_EQ(option(fd, rows[i].level, rows[i].name), rows[i].get);
		EXPECT_MINUS1(rsetsockopt(fd, rows[i].level, rows[i].name, &rows[i].set, 1),
			      EINVAL);
	}
	expect_case("other options");
	EXPECT_EQ(rsetsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	linger.l_linger = 0;
	EXPECT_EQ(rgetsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &length), 0);
	EXPECT_EQ(linger.l_linger, 3);
	EXPECT_EQ(option(fd, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
	EXPECT_EQ(option(fd, SOL_SOCKET, SO_ERROR), 0);
	EXPECT_EQ(option(fd, SOL_SOCKET, SO_ACCEPTCONN), 0);
	EXPECT_MINUS1(rsetsockopt(fd, SOL_SOCKET, SO_ERROR, &value, sizeof(value)), ENOTSUP);
	EXPECT_MINUS1(rsetsockopt(fd, 12345, 1, &value, sizeof(value)), ENOTSUP);
	EXPECT_MINUS1(rsetsockopt(fd, SOL_RDMA, RDMA_ROUTE, &path, 7), EINVAL);
	EXPECT_EQ(rclose(fd), 0);

	expect_case("sizes are fixed once connected; the route can be read");
	rs_pair(OWN_V4, &a, &b);
	EXPECT_MINUS1(rsetsockopt(a, SOL_RDMA, RDMA_SQSIZE, &value, sizeof(value)), EINVAL);
	EXPECT(option(a, IPPROTO_TCP, TCP_MAXSEG) >= 256);
	length = sizeof(path);
	EXPECT_EQ(rgetsockopt(a, SOL_RDMA, RDMA_ROUTE, &path, &length), 0);
	EXPECT_EQ(length, sizeof(path));
	EXPECT_EQ(path.path.dgid.raw[15], 1);

	expect_case("flags");
	EXPECT_EQ(rfcntl(a, F_GETFL), O_RDWR);
	rs_nonblocking(a);
	EXPECT_EQ(rfcntl(a, F_GETFL), O_RDWR | O_NONBLOCK);
	EXPECT_MINUS1(rfcntl(a, F_GETLK, NULL), ENOTSUP);
	rs_pair_close(a, b);
	fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	EXPECT_EQ(rfcntl(fd, F_GETFL), O_RDWR | O_NONBLOCK);
	EXPECT_EQ(rfcntl(fd, F_GETFD), FD_CLOEXEC);
	EXPECT_EQ(rclose(fd), 0);
}

static void reading_and_writing(const char *address)
{
	char all[8] = "", first[3], second[6];
	struct iovec out[] = {{"ab", 2}, {"cdef", 4}}, in[] = {{first, 3}, {second, 6}};
	struct msghdr send_msg = {.msg_iov = out, .msg_iovlen = 2};
	struct msghdr msg = {.msg_iov = in, .msg_iovlen = 2};
	char control[64];
	int a, b;

	expect_case("reading and writing, %s", address);
	rs_pair(address, &a, &b);
	EXPECT_MINUS1(rrecv(b, all, 1, MSG_DONTWAIT), EAGAIN);
	EXPECT_EQ(rwrite(a, "abcd", 4), 4);
	EXPECT_EQ(rrecv(b, all, 8, MSG_PEEK), 4);
	EXPECT_EQ(rrecv(b, all, 2, 0), 2);
	EXPECT_EQ(rread(b, all + 2, 8 - 2), 2);
	EXPECT(!memcmp(all, "abcd", 4));
	EXPECT_EQ(rsend(a, "", 0, 0), 0);
	EXPECT_EQ(rrecv(b, all, 0, 0), 0);
	EXPECT_EQ(rwritev(a, out, 2), 6);
	EXPECT_EQ(rrecv(b, all, 6, MSG_WAITALL), 6);
	EXPECT(!memcmp(all, "abcdef", 6));
	EXPECT_EQ(rsendmsg(a, &send_msg, 0), 6);
	EXPECT_EQ(rrecvmsg(b, &msg, MSG_WAITALL | MSG_PEEK), 6);
	EXPECT_EQ(rreadv(b, in, 2), 6);
	EXPECT(!memcmp(first, "abc", 3) && !memcmp(second, "def", 3));
	msg.msg_control = control;
	msg.msg_controllen = sizeof(control);
	EXPECT_MINUS1(rrecvmsg(b, &msg, 0), ENOTSUP);

	expect_case("the end, %s", address);
	EXPECT_EQ(rsend(a, "last", 4, 0), 4);
	EXPECT_EQ(rshutdown(a, SHUT_WR), 0);
	EXPECT_MINUS1(rsend(a, "x", 1, 0), ECONNRESET);
	EXPECT_EQ(rrecv(b, all, 4, MSG_WAITALL), 4);
	EXPECT_EQ(rrecv(b, all, 4, 0), 0);
	EXPECT_EQ(rsend(b, "on", 2, 0), 2);
	EXPECT_EQ(rrecv(a, all, 2, MSG_WAITALL), 2);
	EXPECT_EQ(rclose(b), 0);
	EXPECT_EQ(rrecv(a, all, 2, 0), 0);
	EXPECT_EQ(rclose(a), 0);
}

static void no_listener(void)
{
	struct sockaddr *to = cm_address(OWN_V4, 9);
	struct pollfd fd = {.events = POLLOUT};
	int a = rsocket(AF_INET, SOCK_STREAM, 0);

	expect_case("nobody listens");
	EXPECT_MINUS1(rconnect(a, to, rs_length(to)), ECONNREFUSED);
	EXPECT_EQ(rclose(a), 0);

	expect_case("nobody listens, without waiting");
	a = rsocket(AF_INET, SOCK_STREAM, 0);
	rs_nonblocking(a);
	EXPECT_EQ(rconnect(a, to, rs_length(to)), -1);
	/* The thread that connects may know already when the call returns. */
	if (errno == EINPROGRESS) {
		fd.fd = a;
		EXPECT_EQ(rpoll(&fd, 1, 20000), 1);
		EXPECT_EQ(fd.revents, POLLOUT | POLLERR | POLLHUP);
		EXPECT_EQ(option(a, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
		EXPECT_EQ(option(a, SOL_SOCKET, SO_ERROR), 0);
	} else {
		EXPECT_EQ(errno, ECONNREFUSED);
	}
	EXPECT_EQ(rclose(a), 0);
}

static void without_waiting(void)
{
	struct pollfd fds[2] = {{.events = POLLIN}, {.events = POLLOUT}};
	struct sockaddr *to;
	uint16_t port;
	int a, b, listener = rs_listener(OWN_V4, &port);

	expect_case("connecting and accepting without waiting");
	to = cm_address(OWN_V4, port);
	rs_nonblocking(listener);
	EXPECT_MINUS1(raccept(listener, NULL, NULL), EAGAIN);
	a = rsocket(AF_INET, SOCK_STREAM, 0);
	rs_nonblocking(a);
	/* The thread that connects may have done so before the call returns. */
	EXPECT(rconnect(a, to, rs_length(to)) == 0 || errno == EINPROGRESS);
	fds[0].fd = listener;
	fds[1].fd = a;
	EXPECT_EQ(rpoll(&fds[1], 1, 20000), 1);
	EXPECT_EQ(fds[1].revents, POLLOUT);
	EXPECT_EQ(option(a, SOL_SOCKET, SO_ERROR), 0);
	EXPECT_MINUS1(rconnect(a, to, rs_length(to)), EISCONN);
	EXPECT_EQ(rpoll(fds, 1, 20000), 1);
	b = raccept(listener, NULL, NULL);
	EXPECT(b >= 0);
	EXPECT_EQ(rfcntl(b, F_GETFL), O_RDWR);

	expect_case("a write that finds no room");
	/* Writes that are done make room for more, until the peer's buffer is full. */
	for (int i = 0; i < 1000 && rpoll(&fds[1], 1, 0) > 0; i++) {
		while (rsend(a, fds, sizeof(fds), 0) > 0)
			;
		EXPECT_EQ(errno, EAGAIN);
	}
	EXPECT_EQ(rpoll(&fds[1], 1, 0), 0);
	rs_pair_close(a, b);
	EXPECT_EQ(rclose(listener), 0);
}

/* The listener ends; those that it has not accepted are told. */
static void not_accepted(void)
{
	uint16_t port;
	int listener = rs_listener(OWN_V4, &port);
	struct sockaddr *to = cm_address(OWN_V4, port);
	int a = rsocket(AF_INET, SOCK_STREAM, 0);
	char byte;

	expect_case("a connection that nobody accepts ends with the listener");
	CHECK_ZERO(rconnect(a, to, rs_length(to)));
	EXPECT_EQ(rclose(listener), 0);
	EXPECT_EQ(rrecv(a, &byte, 1, 0), 0);
	EXPECT_EQ(rclose(a), 0);
}

static void mappings(void)
{
	static char memory[100000], data[100000];
	int a, b, size = 4;
	uint16_t port;
	int listener = rs_listener(OWN_V4, &port);
	struct sockaddr *to = cm_address(OWN_V4, port);

	expect_case("mapped memory is written into");
	CHECK_ZERO(rsetsockopt(listener, SOL_RDMA, RDMA_IOMAPSIZE, &size, sizeof(size)));
	a = rsocket(AF_INET, SOCK_STREAM, 0);
	CHECK_ZERO(rsetsockopt(a, SOL_RDMA, RDMA_IOMAPSIZE, &size, sizeof(size)));
	CHECK_ZERO(rconnect(a, to, rs_length(to)));
	b = raccept(listener, NULL, NULL);
	CHECK(b >= 0);
	EXPECT_MINUS1(riomap(b, memory, sizeof(memory), PROT_READ, 0, -1), EINVAL);
	EXPECT_EQ(riomap(b, memory, sizeof(memory), PROT_WRITE, 0, 1 << 20), 1 << 20);
	EXPECT_EQ(rsend(b, "x", 1, 0), 1);
	EXPECT_EQ(rrecv(a, data, 1, 0), 1);
	memset(data, 'm', sizeof(data));
	EXPECT_EQ(riowrite(a, data, sizeof(data), 1 << 20, 0), sizeof(data));
	EXPECT_EQ(rsend(a, "y", 1, 0), 1);
	EXPECT_EQ(rrecv(b, data, 1, 0), 1);
	EXPECT(memory[0] == 'm' && !memcmp(memory, memory + 1, sizeof(memory) - 1));
	EXPECT_MINUS1((ssize_t)riowrite(a, data, 1, 5, 0), EINVAL);
	EXPECT_EQ(riounmap(b, memory, sizeof(memory)), 0);
	EXPECT_MINUS1(riounmap(b, memory, sizeof(memory)), EINVAL);
	rs_pair_close(a, b);
	EXPECT_EQ(rclose(listener), 0);
}

static void datagrams(const char *address)
{
	struct sockaddr *own = cm_address(address, 0);
	struct sockaddr_in6 name_a = {0}, name_b = {0}, from;
	socklen_t length = sizeof(name_a);
	int a = rsocket(own->sa_family, SOCK_DGRAM, 0), b = rsocket(own->sa_family, SOCK_DGRAM, 0);
	char data[3000] = "";

	expect_case("datagrams, %s", address);
	CHECK(a >= 0 && b >= 0);
	EXPECT_EQ(rbind(a, own, rs_length(own)), 0);
	EXPECT_EQ(rbind(b, own, rs_length(own)), 0);
	EXPECT_EQ(rgetsockname(a, (struct sockaddr *)&name_a, &length), 0);
	length = sizeof(name_b);
	EXPECT_EQ(rgetsockname(b, (struct sockaddr *)&name_b, &length), 0);
	EXPECT_MINUS1(rrecv(a, data, 1, MSG_DONTWAIT), EAGAIN);
	EXPECT_MINUS1(rsend(a, data, 1, 0), EDESTADDRREQ);
	EXPECT_MINUS1(rsendto(a, data, sizeof(data), 0, (struct sockaddr *)&name_b, length),
		      EMSGSIZE);
	for (int i = 0; i < 50; i++) {
		int want = snprintf(data, sizeof(data), "message %d", i);

		CHECK_EQ(rsendto(a, data, (size_t)want, 0, (struct sockaddr *)&name_b, length),
			 want);
		length = sizeof(from);
		CHECK_EQ(rrecvfrom(b, data, sizeof(data), 0, (struct sockaddr *)&from, &length),
			 want);
		CHECK_EQ(atoi(data + 8), i);
		EXPECT(!memcmp(&from, &name_a, sizeof(struct sockaddr_in)));
		CHECK_EQ(rsendto(b, data, (size_t)want, 0, (struct sockaddr *)&from, length), want);
		EXPECT_EQ(rrecv(a, data, 4, MSG_PEEK), 4);
		EXPECT_EQ(rrecv(a, data, sizeof(data), 0), want);
	}
	EXPECT_EQ(rconnect(a, (struct sockaddr *)&name_b, length), 0);
	EXPECT_EQ(rsend(a, data, 1800 % 1000, 0), 800);
	EXPECT_EQ(rrecv(b, data, sizeof(data), 0), 800);
	rs_pair_close(a, b);
}

/* A child has its own sockets. */
static void forked(void)
{
	int status, a, b;
	char byte;
	pid_t child;

	expect_case("a forked child does not touch its parent's sockets");
	rs_pair(OWN_V4, &a, &b);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		bool right = rsend(a, "c", 1, 0) == -1 && errno == EBADF && !rclose(a) &&
			     rclose(a) == -1 && errno == EBADF && !rclose(b);

		_exit(right ? 0 : 1);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(rsend(a, "p", 1, 0), 1);
	EXPECT_EQ(rrecv(b, &byte, 1, 0), 1);
	EXPECT_EQ(byte, 'p');
	rs_pair_close(a, b);
}

int main(void)
{
	cm_network();
	refused();
	bound_twice();
	names(OWN_V4);
	names(OWN_V6);
	options();
	reading_and_writing(OWN_V4);
	reading_and_writing(OWN_V6);
	no_listener();
	without_waiting();
	not_accepted();
	mappings();
	datagrams(OWN_V4);
	datagrams(OWN_V6);
	datagrams("127.0.0.1");
	datagrams("::1");
	forked();
	return expect_done();
}
