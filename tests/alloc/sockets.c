/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: an allocation that fails while rsockets are made, connected and used harms that call or
 * that connection and nothing else. One process listens, the other one connects; some bytes go each
 * way.
 *
 * usage: see loop.h
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include <rdma/rsocket.h>

#include "alloc/loop.h"
#include "cm/cm.h"
#include "cm/rs.h"
#include "support/check.h"
#include "support/clock.h"

enum { PORT = 7246, BYTES = 64 };

struct end {
	int listener, fd;
};

static bool call(struct side *s, const char *step, int answer)
{
	return side_call(s, step, answer < 0 ? errno ? errno : -1 : 0);
}

/* Whether there is what is waited for. */
static bool ready(struct side *s, const char *step, int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};
	uint64_t until = now_ms() + EVENT_MS;

	while (now_ms() < until) {
		int n = rpoll(&p, 1, 20);

		if (n < 0)
			return call(s, "rpoll", n);
		if (n)
			return true;
		if (side_other_failed(s))
			return false;
	}
	return side_event(s, step, -1, 0);
}

static bool open_socket(struct side *s, int *fd)
{
	*fd = rsocket(AF_INET, SOCK_STREAM, 0);
	return call(s, "rsocket", *fd) && call(s, "rfcntl", rfcntl(*fd, F_SETFL, O_NONBLOCK));
}

static bool listen_up(struct side *s, struct end *e)
{
	struct sockaddr *own = cm_address(OWN_V4, PORT);

	return open_socket(s, &e->listener) &&
	       call(s, "rbind", rbind(e->listener, own, rs_length(own))) &&
	       call(s, "rlisten", rlisten(e->listener, 4));
}

static bool accept_one(struct side *s, struct end *e)
{
	if (!ready(s, "wait for a caller", e->listener, POLLIN))
		return false;
	e->fd = raccept(e->listener, NULL, NULL);
	return call(s, "raccept", e->fd) && call(s, "rfcntl", rfcntl(e->fd, F_SETFL, O_NONBLOCK));
}

static bool connect_one(struct side *s, struct end *e)
{
	struct sockaddr *to = cm_address(OWN_V4, PORT);
	socklen_t length = sizeof(int);
	int err = 0;

	if (!open_socket(s, &e->fd))
		return false;
	if (rconnect(e->fd, to, rs_length(to)) && errno != EINPROGRESS)
		return call(s, "rconnect", -1);
	if (!ready(s, "wait for the connection", e->fd, POLLOUT) ||
	    !call(s, "rgetsockopt", rgetsockopt(e->fd, SOL_SOCKET, SO_ERROR, &err, &length)))
		return false;
	return !err || side_event(s, "connection", 0, err);
}

static bool bytes(struct side *s, struct end *e)
{
	char out[BYTES], in[BYTES] = {0};
	ssize_t n;

	memset(out, 'b', sizeof(out));
	n = rsend(e->fd, out, sizeof(out), 0);
	if (!call(s, "rsend", (int)n))
		return false;
	CHECK(n == BYTES);
	if (!ready(s, "wait for bytes", e->fd, POLLIN))
		return false;
	n = rrecv(e->fd, in, sizeof(in), 0);
	if (n <= 0)
		return side_event(s, "rrecv", 0, n ? errno : ECONNRESET);
	CHECK(n == BYTES && !memcmp(in, out, BYTES));
	return true;
}

static bool life(struct side *s)
{
	struct end e = {-1, -1};
	bool ok = s->index ? listen_up(s, &e) : true;

	ok = side_both(s, ok, NULL, NULL, 0);
	ok = ok && (s->index ? accept_one(s, &e) : connect_one(s, &e));
	ok = side_both(s, ok, NULL, NULL, 0);
	ok = ok && bytes(s, &e);
	ok = side_both(s, ok, NULL, NULL, 0);
	if (e.fd >= 0)
		call(s, "rclose", rclose(e.fd));
	if (e.listener >= 0)
		call(s, "rclose, of the listener", rclose(e.listener));
	return side_both(s, side_well(s), NULL, NULL, 0) && ok;
}

static const struct scenario scenarios[] = {
	{"two processes, rsockets", 2, NULL, life, 0, 0, false, true},
	{"acquainted processes, rsockets", 2, NULL, life, 0, 0, true, true},
	{.name = NULL},
};

int main(int argc, char **argv)
{
	cm_network();
	return loop_main(argc, argv, scenarios);
}
