/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names of the abstract namespace (unix(7)) that are themselves what their maker says: every
 * process can read them in /proc/net/unix without help of the maker, also while it stands still,
 * and they vanish with it. Every process of the network namespace can make such names, so what a
 * name says counts only after a connection has shown whose it is.
 */
#ifndef VB_HOST_ABSTRACT_H
#define VB_HOST_ABSTRACT_H

#include <stdbool.h>
#include <sys/socket.h>

#define VB_ABSTRACT_NAME 108u /* with the byte that ends the string */

/*
 * Listens under the name, with a queue for so many connections. Returns an adopted descriptor, or
 * -errno.
 */
int vb_abstract_listen(const char *name, int queue);

/*
 * Connects to the name; never waits, -EAGAIN: its queue is full. *owner: who listens there. Returns
 * an adopted descriptor, or -errno.
 */
int vb_abstract_connect(const char *name, struct ucred *owner);

/*
 * Calls `each` with every abstract name of the network namespace, until it returns false. -errno:
 * the names cannot be read.
 */
int vb_abstract_read(bool (*each)(const char *name, void *arg), void *arg);

#endif
