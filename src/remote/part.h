/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What queue pairs and engines have for the link between hosts. Allocated when first needed, so
 * that others have a pointer alone.
 */
#ifndef VB_REMOTE_PART_H
#define VB_REMOTE_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/run.h"

struct vb_engine;
struct vb_qp;
struct vb_strays;
struct vb_udp_inbox;
struct vb_udp_sender;

/* Part of a queue pair, from connect or listen to release. Under its engine's lock. */
struct vb_remote_qp {
	uint8_t families; /* families whose sockets it holds (VB_UDP_IPV4 ...) */
	uint8_t refused;  /* families that could not be opened just now */
	uint32_t ifindex;
	struct vb_udp_sender *sender[2]; /* by family */
	enum { VB_PAIRING_OFF, VB_PAIRING_NEXT, VB_PAIRING_HELD } pairing;
	struct vb_run held; /* its payload is in the engine's staging buffer */
};

/* Part of an engine, from its first queue pair on this link, or its first stray, to its end. */
struct vb_remote_engine {
	uint32_t idle;            /* reads in a row that found nothing */
	struct vb_strays *strays; /* packets for other processes (stray.h); NULL until the first */
	void *staging_memory;
	uint8_t *staging;           /* payload of the run that is being sent; part.c */
	struct vb_udp_inbox *inbox; /* packets that another engine's drive read; set once */
};

/*
 * Under the engine's lock: the part. The first call makes it and joins the link. NULL: no memory.
 */
struct vb_remote_qp *vb_remote_qp(struct vb_qp *qp);
struct vb_remote_engine *vb_remote_engine(struct vb_engine *engine);

/*
 * vb_udp_engine_init(): an engine gets its first queue pair on this link; -ENOMEM.
 * vb_udp_engine_fini(): frees the part; the engine is in no list any more, and has no strays.
 */
int vb_udp_engine_init(struct vb_engine *engine);
void vb_udp_engine_fini(struct vb_engine *engine);

#endif
