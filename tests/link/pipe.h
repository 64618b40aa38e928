/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A link for tests: packets through a pair of sockets. A relay between the two ends sees packets of
 * this form.
 */
#ifndef TESTS_LINK_PIPE_H
#define TESTS_LINK_PIPE_H

#include "engine/link.h"
#include "transport/run.h"

#define VB_PIPE_BYTES 16384u /* payload of a packet: a multiple of every path MTU */

struct vb_pipe_packet {
	struct vb_run run;
	uint8_t payload[VB_PIPE_BYTES];
};

extern const struct vb_link vb_pipe_link;

#endif
