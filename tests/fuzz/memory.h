/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The endpoint behind a queue pair of the protocol, for the functions of its environment. */
#ifndef TESTS_FUZZ_MEMORY_H
#define TESTS_FUZZ_MEMORY_H

#include "endpoint.h"
#include "support/protocol_memory.h"

static inline struct endpoint *endpoint_of(struct vb_tqp *qp)
{
	return (struct endpoint *)(void *)qp;
}

#endif
