/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The side channel between the two instances. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "exchange.h"

static int listen_once(const struct addrinfo *ai)
{
	int one = 1;
	int fd = socket(ai->ai_family, ai->ai_socktype, ai->ai_protocol);
	int got;

	if (fd < 0)
		fail("socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, 1))
		fail("listening: %s", strerror(errno));
	got = accept(fd, NULL, NULL);
	if (got < 0)
		fail("accept: %s", strerror(errno));
	close(fd);
	return got;
}

void tcp_connect(struct exchange *x)
{
	struct addrinfo hints = {.ai_family = x->server ? AF_UNSPEC : AF_INET6,
				 .ai_socktype = SOCK_STREAM,
				 .ai_flags = x->server ? 0 : AI_PASSIVE};
	struct addrinfo *ai;
	int one = 1;
	int err = getaddrinfo(x->server, x->port, &hints, &ai);

	if (err)
		fail("%s port %s: %s", x->server ? x->server : "any", x->port, gai_strerror(err));
	if (!x->server) {
		x->sock = listen_once(ai);
	} else {
		x->sock = socket(ai->ai_family, ai->ai_socktype, ai->ai_protocol);
		if (x->sock < 0 || connect(x->sock, ai->ai_addr, ai->ai_addrlen))
			fail("connecting to %s port %s: %s", x->server, x->port, strerror(errno));
	}
	setsockopt(x->sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	freeaddrinfo(ai);
}

void tcp_swap(struct exchange *x, const void *mine, void *theirs, uint32_t size)
{
	uint8_t *to = theirs;
	ssize_t n = send(x->sock, mine, size, MSG_NOSIGNAL);

	if (n != (ssize_t)size)
		fail("the other side is gone");
	while (size) {
		n = recv(x->sock, to, size, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			fail("the other side gave up");
		to += n;
		size -= (uint32_t)n;
	}
}

void barrier(struct exchange *x, const char *where)
{
	uint32_t mine = ++x->step, theirs = 0;

	tcp_swap(x, &mine, &theirs, sizeof(mine));
	if (mine != theirs)
		fail("%s: out of step: %u here, %u there", where, mine, theirs);
}
