/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections to other hosts, as their processes publish them: what another process of this user has
 * to know to say their last word when the process is killed. Part of the memory that all members of
 * the table of ports share (gsi/port_table.h).
 *
 * A process claims whole chunks of entries and is the only one that writes to them, so publishing
 * takes no lock. Who takes an entry of a process that has ended sets its id to 0, which one taker
 * can do alone. What stands in an entry is copied and checked before it is used.
 */
#ifndef VB_GSI_PUBLISHED_H
#define VB_GSI_PUBLISHED_H

#include <stdbool.h>
#include <stdint.h>

#include "gsi/gsi.h"

#define VB_PUBLISHED_CHUNKS 512u
#define VB_PUBLISHED_CHUNK  64u /* entries */
#define VB_PUBLISHED_NOBODY UINT32_MAX

struct vb_published_entry {
	uint32_t comm_id; /* 0: empty; stored last */
	uint32_t remote_id, remote_qpn;
	uint32_t pad;
	uint8_t sgid[16], dgid[16];
};

struct vb_published {
	uint32_t owner[VB_PUBLISHED_CHUNKS]; /* its GSI number; 0: nobody's */
	struct vb_published_entry entry[VB_PUBLISHED_CHUNKS][VB_PUBLISHED_CHUNK];
};

/*
 * A chunk becomes that of the process with this number, and is empty. `is_member` tells whether a
 * number is one of the table: the chunks of others are taken where no chunk is free.
 * VB_PUBLISHED_NOBODY: all chunks are members'.
 */
uint32_t vb_published_claim(struct vb_published *p, uint32_t number,
			    bool (*is_member)(const void *arg, uint32_t number), const void *arg);
/* The owner gives the chunk back, with all that it has. */
void vb_published_release(struct vb_published *p, uint32_t number, uint32_t chunk);
/* Of the owner. False: the chunk is another's by now. */
bool vb_published_set(struct vb_published *p, uint32_t number, uint32_t chunk, uint32_t slot,
		      const struct vb_gsi_connection *connection);
void vb_published_clear(struct vb_published *p, uint32_t number, uint32_t chunk, uint32_t slot);

/* Whether any process has connections to other hosts. */
bool vb_published_any(const struct vb_published *p);
/*
 * The process with this number has ended: takes all that it has published, and calls `take` for what
 * makes sense. Its chunks are nobody's then.
 */
void vb_published_take(struct vb_published *p, uint32_t number,
		       void (*take)(void *arg, const struct vb_gsi_connection *connection),
		       void *arg);

#endif
