/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer that a test plays by hand, message by message: no node of the library stands behind it. All
 * functions fail the test where they do not succeed.
 */
#ifndef TESTS_UNIT_HOST_PUPPET_H
#define TESTS_UNIT_HOST_PUPPET_H

#include <stdint.h>

#include "host/control.h"
#include "host/page.h"
#include "unit/host/end.h"

/* A socket to the owner of the block, as any program of the machine can make one; or -errno. */
int puppet_dial(uint32_t block);
/* A socket that listens under a name of its own; -1: none. */
int puppet_listen(uint32_t *block);
/*
 * The next message. kept: its first descriptor, or -1; the others are closed, and with NULL all.
 * 1, 0: hung up, -ETIMEDOUT after 3 s, -errno.
 */
int puppet_next(int sock, struct vb_control *msg, int *kept);
/* The next message of the type, after any others. */
struct vb_control puppet_expect(int sock, enum vb_control_type type);
void puppet_send(int sock, enum vb_control_type type, struct vb_control msg, const int *fds, int n);
/* A page as it should be, alive, with one queue pair of one engine. */
struct vb_page *puppet_page(int *fd);
void puppet_hello(int sock, uint64_t nonce, int fd);
void puppet_grant_send(int sock);

/* A peer in our hands that got through the greeting. */
struct puppet {
	struct vb_page *page;
	int page_fd;
	int sock;
	uint32_t qpn;
};

/* Calls, and is greeted. Returns the socket. */
int puppet_call(uint32_t block, const struct puppet *p);
/* Grants, and waits until the node has heard it. */
void puppet_grant(struct end *end, int sock);
/* All of it, with the node that owns the block. */
void puppet_make(struct end *end, uint32_t block, struct puppet *p);
void puppet_drop(struct puppet *p);

#endif
