/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The MADs of real exchanges of the connection manager: Linux 6.1 with rdma_rxe at both ends, two
 * devices in one kernel (10.1.0.1 and 10.1.0.2, fd00:1::1 and fd00:1::2), programs of rdma-core.
 */
#ifndef TESTS_WIRE_CAPTURED_MADS_H
#define TESTS_WIRE_CAPTURED_MADS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/mad.h"

struct captured_mad {
	const char *name; /* IP version, program, number of the frame */
	const char *hex;  /* without the zeros at the end */
};

extern const struct captured_mad captured_mads[];
extern const unsigned int captured_mads_count;

void captured_mad_bytes(const struct captured_mad *captured, uint8_t mad[VB_MAD_BYTES]);
/* False: there is none of that name. */
bool captured_mad_find(const char *name, uint8_t mad[VB_MAD_BYTES]);

#endif
