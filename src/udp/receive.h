/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets on their way in: read in batches, merged bursts (UDP_GRO) split again, decoded, and their
 * ICRC checked. Packets that pass are handed on as runs with the path filled in; packets of a burst
 * that belong together form one run. Every other packet is dropped and counted under its reason.
 */
#ifndef VB_UDP_RECEIVE_H
#define VB_UDP_RECEIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/run.h"

struct vb_copy_source;
struct vb_udp_receiver;

/*
 * run->path: sgid = source, dgid = destination, traffic class, hop limit, flow label (0 where the
 * socket does not tell it). `ifindex`: the interface on which the packet came.
 */
typedef void (*vb_udp_sink)(void *arg, const struct vb_run *run, const uint8_t *payload,
			    uint32_t ifindex);

/* Buffers for one batch; one thread at a time may use them. NULL: no memory. */
struct vb_udp_receiver *vb_udp_receiver_create(void);
void vb_udp_receiver_destroy(struct vb_udp_receiver *receiver);

/* Packets that were dropped since the last call, and those of them whose ICRC was wrong. */
struct vb_udp_faults {
	uint32_t packets, icrc;
};
struct vb_udp_faults vb_udp_receiver_faults(struct vb_udp_receiver *receiver);

/*
 * Reads at most one batch from a socket of vb_udp_open_receiver(). Returns the number of datagrams
 * (merged ones count once), 0 if there was none, -errno if the socket is broken.
 */
int vb_udp_receive(struct vb_udp_receiver *receiver, int fd, bool ipv4, vb_udp_sink sink,
		   void *arg);

/*
 * For a thread that waits for the next datagram and comes again at once: hands on what is in the
 * datagram, and leaves it in the queue, owed. So the program has it one system call earlier. Other
 * returns as above. Harmless for a socket, or any other file, that is not the library's: nothing is
 * taken from it before the next call.
 */
int vb_udp_look(struct vb_udp_receiver *receiver, int fd, bool ipv4, vb_udp_sink sink, void *arg);
/* Whether datagrams come one by one, so that vb_udp_look() is of use. */
bool vb_udp_is_calm(const struct vb_udp_receiver *receiver);
/* Whether a datagram of the family is owed. vb_udp_receive() and vb_udp_look() take it out first. */
bool vb_udp_owed(const struct vb_udp_receiver *receiver, bool ipv4);
/* The family has another socket: nothing is owed. */
void vb_udp_forgive(struct vb_udp_receiver *receiver, bool ipv4);

/*
 * The packets that vb_udp_receive() hands on, as a source of copies (base/copy_source.h), while it
 * does.
 */
struct vb_copy_source *vb_udp_receiver_source(struct vb_udp_receiver *receiver);

#endif
