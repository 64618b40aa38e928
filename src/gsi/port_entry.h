/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Entries of the table of ports, for the files that make the table: port_bind.c, port_find.c,
 * port_seat.c. "Under the lock" is the table's.
 */
#ifndef VB_GSI_PORT_ENTRY_H
#define VB_GSI_PORT_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/port_rule.h"
#include "gsi/port_table.h"

static inline uint32_t vb_port_load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void vb_port_store(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* The bits of entries that are in use, and of ports of a space that have a binding. */
static inline struct vb_port_bits vb_port_used(struct vb_port_table *t)
{
	return (struct vb_port_bits){t->used, t->used_full};
}

static inline struct vb_port_bits vb_port_busy(struct vb_port_table *t, int space)
{
	return (struct vb_port_bits){t->busy[space], t->busy_full[space]};
}

/* The index of the port space. -1: there is no such space. */
int vb_port_space_index(uint16_t space);

/*
 * A copy of what the entry says, and its link as it was then: an entry that is used anew has
 * another version before it has another link. False: it is being changed.
 */
bool vb_port_body_read(const struct vb_port_entry *e, struct vb_port_body *body, uint32_t *next);
/* Under the lock. A process that was killed in here leaves an odd version; the next one repairs. */
void vb_port_body_write(struct vb_port_entry *e, const struct vb_port_body *body);
/* Under the lock, which the last writer may have left by dying: what was written whole counts. */
void vb_port_body_get(const struct vb_port_entry *e, struct vb_port_body *body);

void vb_port_binding_of(const struct vb_port_body *body, struct vb_port_binding *b);

/* Under the lock. NULL: it is not the seat's, or not any more. */
struct vb_port_entry *vb_port_entry_of(struct vb_port_table *t, uint32_t seat, uint64_t handle,
				       struct vb_port_body *body);
/* Under the lock: the entry, whose body is written, becomes one of its port. */
void vb_port_entry_use(struct vb_port_table *t, uint32_t index, const struct vb_port_body *body);
/* Under the lock: it leaves its port, and is free. */
void vb_port_entry_free(struct vb_port_table *t, uint32_t index, const struct vb_port_body *body);

/* Under the lock: a process has stopped to listen on the port (port_find.c). */
void vb_port_left(struct vb_port_table *t, uint16_t port, uint64_t now);

#endif
