/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which of the sockets that share the port gets a packet: a classic BPF program of the whole group (SO_ATTACH_REUSEPORT_CBPF,
 * socket(7)) maps the block of the destination queue pair number to a place in the group.
 *
 * A socket's place is not told by the kernel, and changes: a new socket comes last, and when one closes the last moves to its place. So a
 * process asks for its own: the program sends a probe (a packet of this host for queue pair 0, which no packet of RoCE
 * is for) to the place that stands in it, and whoever gets its own probe of place i has place i. Hence no table of the group has to
 * be kept, and sockets of other programs may be in it.
 */
#ifndef VB_UDP_STEER_H
#define VB_UDP_STEER_H

#include <stdbool.h>
#include <stdint.h>

struct vb_steer_entry {
	uint32_t block; /* upper bits of a queue pair number */
	uint32_t place;
};

#define VB_STEER_BLOCK_BITS 10
/* So many entries fit a program; the packets of others are spread by their flow. */
#define VB_STEER_MOST       800u

/*
 * Sets the program of the group that the socket is in. The entries are sorted by block, each block is there once. What is in none of
 * them goes where the flow's hash says. 0 or -errno.
 */
int vb_steer_attach(int fd, const struct vb_steer_entry *entry, uint32_t count);

/* Sends probes for the places [0, places) of a family. What an earlier call has asked is forgotten. */
void vb_steer_probe(bool ipv4, uint32_t places);
/* The place that the probes have told of; -1: none has arrived yet. */
int vb_steer_place(bool ipv4);

/* True: the packet is a probe, and has been seen to. */
bool vb_steer_probe_in(bool ipv4, const uint8_t *packet, uint32_t bytes);

#endif
