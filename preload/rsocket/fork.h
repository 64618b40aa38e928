/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fork mode: a server accepts over TCP, and forks; the child serves. A queue pair cannot go with it.
 * So both sides connect over TCP, and make a connection of the library at the first use of data.
 */
#ifndef PRELOAD_RSOCKET_FORK_H
#define PRELOAD_RSOCKET_FORK_H

#include <stdbool.h>

/* Makes the connection. If that fails the socket stays an ordinary one. */
void fork_change(int fd, bool accepted);

#endif
