/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which socket a descriptor stands for. A socket stays while a call uses it. Thread-safe. */
#ifndef VB_RSOCKET_TABLE_H
#define VB_RSOCKET_TABLE_H

#include "rsocket/socket.h"

/* NULL: none. Otherwise vb_rs_put() ends the use. */
struct vb_rsocket *vb_rs_get(int fd);
void vb_rs_put(int fd);

/* A number whose socket the program closed by close(2) is taken over. */
int vb_rs_enter(struct vb_rsocket *rs);
/*
 * Takes the socket of the number out and waits until no other call uses it; `mine`: how many uses
 * are the caller's. Calls that sleep are woken. NULL: another thread was first.
 */
struct vb_rsocket *vb_rs_remove(int fd, unsigned int mine);

/*
 * In a forked child: closes the descriptor of a socket that is the parent's. Whether there was one.
 */
bool vb_rs_forget(int fd);

/* How many forks lie behind this process. Sockets of another number are a parent's. */
uint32_t vb_rs_generation(void);

#endif
