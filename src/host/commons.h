/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A table that all processes of a user share who mean the same thing by one name: an exception from "one writer per page".
 *
 * It has no keeper. Every member listens on the abstract socket "\0verbatim/<uid>/<name>/<seat>" and hands the table's
 * descriptors to whoever asks, so the table exists as long as one member lives and is gone with the last, without a trace. A seat
 * that can be bound is empty: its member has left or died. The lock is robust. What other members wrote is copied, checked, then used.
 */
#ifndef VB_HOST_COMMONS_H
#define VB_HOST_COMMONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vb_commons;
struct vb_node;

#define VB_COMMONS_SEATS 64u

/* *fresh: there was none, the table is zeroed. -ENOENT: there is none and `create` is false; -EBUSY: all seats are taken, or no member answers. */
int vb_commons_join(struct vb_node *node, const char *name, size_t bytes, bool create,
		    struct vb_commons **commons, bool *fresh);
void vb_commons_leave(struct vb_node *node, struct vb_commons *commons);

void *vb_commons_table(const struct vb_commons *commons);
uint32_t vb_commons_seat(const struct vb_commons *commons);
/* Does a living process have this seat? */
bool vb_commons_seat_taken(const struct vb_commons *commons, uint32_t seat);

/* False: a holder was stopped for long; the caller must do without. */
bool vb_commons_lock(struct vb_commons *commons);
void vb_commons_unlock(struct vb_commons *commons);

/* In a forked child: what was left is the parent's, and the lock may be held by a thread that does not exist here. */
void vb_commons_forked(void);

#endif
