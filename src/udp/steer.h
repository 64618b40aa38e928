/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which of the sockets that share the port gets a packet. A classic BPF program of the whole group
 * (SO_ATTACH_REUSEPORT_CBPF, socket(7)) maps the block of the destination queue pair number to a
 * place in the group. Of datagrams for queue pair 1 it takes the block of the communication id that
 * they name; those that name none go to the places in turn.
 *
 * The kernel does not tell a socket its place, and places change: a new socket comes last, and when
 * a socket is closed the last one takes its place. A process therefore asks for its own place by
 * probes. A probe is a packet of this host for queue pair 0, which no RoCE packet is for, and names
 * a place; the program sends it to that place. The process that gets its own probe of place i has
 * place i. So no table of the group is kept, and sockets of other programs may be in the group.
 */
#ifndef VB_UDP_STEER_H
#define VB_UDP_STEER_H

#include <stdbool.h>
#include <stdint.h>

struct vb_steer_entry {
	uint32_t block; /* the upper bits of a queue pair number */
	uint32_t place;
};

#define VB_STEER_BLOCK_BITS 10
/* This many entries fit a program. Packets for other blocks are spread by their flow. */
#define VB_STEER_MOST       800u

/*
 * Sets the program of the group that the socket is in. The entries are sorted by block, and each
 * block occurs once. Packets for other blocks go to the socket that the flow's hash chooses.
 * Returns 0 or -errno.
 */
int vb_steer_attach(int fd, const struct vb_steer_entry *entry, uint32_t count);

/*
 * Sends probes for the places [0, places) of a family. The answer to an earlier call is forgotten.
 */
void vb_steer_probe(bool ipv4, uint32_t places);
/* The place of this process's socket; -1: no probe has arrived yet. */
int vb_steer_place(bool ipv4);

/* True: the packet is a probe, and needs nothing more. */
bool vb_steer_probe_in(bool ipv4, const uint8_t *packet, uint32_t bytes);

#endif
