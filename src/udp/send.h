/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A run on its way out: headers, payload slices, padding and ICRC form one list of pieces, sent in
 * as few system calls as the kernel allows: UDP_SEGMENT for packets of equal size, sendmmsg(2)
 * where that is refused.
 */
#ifndef VB_UDP_SEND_H
#define VB_UDP_SEND_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/run.h"

/*
 * A sending socket. Several threads may send on it at the same time, except for a bound one: it
 * belongs to one engine, and has the source, hop limit and traffic class of one path.
 */
struct vb_udp_sender {
	int fd;
	uint16_t port;
	bool ipv4;
	bool bound;
	bool gso_refused; /* remembered, because each new attempt costs two system calls */
	/*
	 * Of a bound one: the UDP_SEGMENT size that the socket has (0: none), and how many pairs of
	 * packets in a row had another one, and which.
	 */
	uint16_t gso, other_gso;
	uint8_t others;
};

/* UDP_SEGMENT limits of the kernel (udp(7)): packets and bytes of one burst. */
#define VB_UDP_BURST_PACKETS 64u
#define VB_UDP_BURST_BYTES   65000u

/* Payload of a run that fits one burst: a multiple of the path MTU, at most `most` bytes. */
uint32_t vb_udp_run_bytes(uint32_t mtu, uint32_t most);

/*
 * Sends the packets of `run`, with the payload `payload`, from path->sgid to path->dgid. `ifindex`:
 * the interface of link-scope and group addresses. Returns 0, or -errno of the first packet that
 * could not be sent; the rest of the run was not tried then. Never blocks: a full send buffer
 * (EAGAIN, ENOBUFS) is a loss like one on the wire. Every failure is noted.
 */
int vb_udp_send(struct vb_udp_sender *sender, const struct vb_path *path, uint32_t ifindex,
		const struct vb_run *run, uint32_t mtu, const uint8_t *payload);

/*
 * The same for a run of one packet and an acknowledgement behind it: one burst, if the
 * acknowledgement is not longer than the packet.
 */
int vb_udp_send_pair(struct vb_udp_sender *sender, const struct vb_path *path, uint32_t ifindex,
		     const struct vb_run *run, uint32_t mtu, const uint8_t *payload,
		     const struct vb_run *ack);

#endif
