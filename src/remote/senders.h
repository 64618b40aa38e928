/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sockets that send. Most are one for each source port in use, for all threads, and last as long
 * as their family is held (remote/link.h). A connected queue pair has a bound one, which it shares
 * with others of its engine on a path like its own, as long as there are not too many. Thread-safe;
 * engine locks are taken before this file's.
 */
#ifndef VB_REMOTE_SENDERS_H
#define VB_REMOTE_SENDERS_H

#include <stdint.h>

#include "udp/send.h"

struct vb_engine;

/*
 * While the family is held: a sender on that source port, or on another port when there are too
 * many senders or the port is taken. If none could be opened: NULL, and -errno with the reason
 * recorded.
 */
int vb_udp_sender(unsigned int family, uint16_t port, struct vb_udp_sender **sender);
/*
 * While the family is held: a bound sender for the path. NULL: there are too many, or none could be
 * opened. Until vb_udp_sender_put(), which takes any sender and NULL.
 */
struct vb_udp_sender *vb_udp_sender_bound(const struct vb_engine *engine, uint16_t port,
					  const struct vb_path *path, uint32_t ifindex);
void vb_udp_sender_put(struct vb_udp_sender *sender);
/* The program has closed the sender's socket: opens another one. -EBADF: none could be opened. */
int vb_udp_sender_mend(struct vb_udp_sender *sender);
/* The family is held no more. */
void vb_udp_senders_close(unsigned int family);

#endif
