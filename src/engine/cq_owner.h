/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Whose completions they are, as completion queues know it. */
#ifndef VB_ENGINE_CQ_OWNER_H
#define VB_ENGINE_CQ_OWNER_H

#include <stdatomic.h>
#include <stdint.h>

/* The owner of completions: part of a queue pair, or of a work queue. */
struct vb_cq_owner {
	_Atomic uint32_t released; /* entries of its send queue that the program may use again */
};

#endif
