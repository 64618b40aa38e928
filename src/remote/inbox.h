/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A bounded queue of packets (copies): packets that one engine's drive read from the socket for
 * another engine, and packets that wait for contact with another process.
 *
 * One producer and one consumer at a time, each under a lock of its own.
 */
#ifndef VB_REMOTE_INBOX_H
#define VB_REMOTE_INBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/run.h"

struct vb_udp_inbox;

struct vb_udp_inbox *vb_udp_inbox_create(void); /* NULL: no memory */
void vb_udp_inbox_destroy(struct vb_udp_inbox *box);

/* The producer: bytes that are free. A packet takes 150 more than its payload. */
uint32_t vb_udp_inbox_room(struct vb_udp_inbox *box);
/* False: the queue is full. */
bool vb_udp_inbox_push(struct vb_udp_inbox *box, const struct vb_run *run, const uint8_t *payload);
/* The oldest packet, in place. NULL: the queue is empty. */
const struct vb_run *vb_udp_inbox_peek(struct vb_udp_inbox *box, const uint8_t **payload);
void vb_udp_inbox_pop(struct vb_udp_inbox *box);

#endif
