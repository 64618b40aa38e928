/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The parts of a raw packet queue pair, for raw/qp.c and raw/receive.c. */
#ifndef VB_RAW_PRIVATE_H
#define VB_RAW_PRIVATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/hook.h"
#include "qp/qp.h"
#include "transport/env.h"
#include "wire/frame.h"

struct vb_rwq_table;

#define VB_RAW_FRAME 65600u /* the loopback interface carries 65536 bytes behind the header */

struct vb_raw {
	struct vb_qp *qp;
	int rx, tx;
	int ifindex;
	uint32_t mtu;
	uint8_t mac[6];
	bool loopback;
	bool strip;        /* IBV_QP_CREATE_CVLAN_STRIPPING */
	uint8_t *out, *in; /* one frame each way */
	uint32_t stuck;    /* length of a frame in `out` for which the socket had no room */
	_Atomic uint32_t rules;
	uint64_t held_since; /* since when frames wait in the socket for a receive; 0: none do */
	/* They have waited too long: frames are dropped until a receive is posted. */
	bool held_enough;
	struct vb_rwq_table *table; /* the indirection table that it spreads frames over, or NULL */
	uint64_t fields;
	uint8_t key[VB_TOEPLITZ_KEY];
	struct vb_engine_hook hook; /* the engine's, under its lock */
	struct vb_raw *next;        /* list of all that receive, under the list's lock */
};

static inline struct vb_raw *vb_raw_of(const struct vb_qp *qp)
{
	return qp->own;
}

#endif
