/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the program's descriptors stand for. A descriptor of the program is a placeholder, an open
 * file of its own, whose number the program may duplicate, replace and close; behind it is a socket
 * of the library. Everything else is passed through. Looking up takes no lock and no call.
 */
#ifndef PRELOAD_RSOCKET_FDS_H
#define PRELOAD_RSOCKET_FDS_H

#include <stdbool.h>
#include <stdint.h>

enum fd_kind {
	FD_OTHER,   /* not ours */
	FD_RSOCKET, /* `behind`: the socket */
	FD_FORK,    /* an ordinary socket that becomes one of the library: fork mode */
	FD_FORK_ACCEPTED,
	FD_EPOLL, /* an epoll instance that has sockets; `behind`: that of repoll_create() */
};

struct fd {
	enum fd_kind kind;
	int behind;
};

struct fd fd_get(int fd);
void fd_set_kind(int fd, enum fd_kind kind, int behind);
/* Takes the meaning off a number. What it was. */
struct fd fd_take(int fd);

/* How many placeholders stand for a socket. */
void fd_hold(int behind);
/* Whether that was the last one. */
bool fd_release(int behind);

/* A descriptor that ends with the number behind; -1: none. */
void fd_attach(int behind, int attached);
int fd_attached(int behind);

/* The lowest free number, for a placeholder; -1 with errno. */
int fd_placeholder(bool cloexec);

static inline bool fd_is_rsocket(int fd, int *behind)
{
	struct fd f = fd_get(fd);

	*behind = f.behind;
	return f.kind == FD_RSOCKET;
}

#endif
