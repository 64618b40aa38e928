/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rs.h"

#include <arpa/inet.h>
#include <fcntl.h>

#include "support/check.h"

socklen_t rs_length(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					  : sizeof(struct sockaddr_in6);
}

int rs_listener(const char *address, uint16_t *port)
{
	struct sockaddr *own = cm_address(address, 0);
	int fd = rsocket(own->sa_family, SOCK_STREAM, 0);
	struct sockaddr_in6 name;
	socklen_t length = sizeof(name);

	CHECK(fd >= 0);
	CHECK_ZERO(rbind(fd, own, rs_length(own)));
	CHECK_ZERO(rlisten(fd, 10));
	CHECK_ZERO(rgetsockname(fd, (struct sockaddr *)&name, &length));
	*port = ntohs(name.sin6_port);
	CHECK(*port);
	return fd;
}

void rs_pair(const char *address, int *a, int *b)
{
	struct sockaddr *to;
	uint16_t port;
	int listener = rs_listener(address, &port);

	to = cm_address(address, port);
	*a = rsocket(to->sa_family, SOCK_STREAM, 0);
	CHECK(*a >= 0);
	CHECK_ZERO(rconnect(*a, to, rs_length(to)));
	*b = raccept(listener, NULL, NULL);
	CHECK(*b >= 0);
	CHECK_ZERO(rclose(listener));
}

void rs_pair_close(int a, int b)
{
	CHECK_ZERO(rclose(a));
	CHECK_ZERO(rclose(b));
}

void rs_nonblocking(int fd)
{
	CHECK_ZERO(rfcntl(fd, F_SETFL, O_NONBLOCK));
}
