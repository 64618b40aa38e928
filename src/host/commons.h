/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A table that all processes of a user share who mean the same thing by one name: an exception from "one writer per
 * page".
 *
 * It has no keeper. Every member listens on an abstract socket of its own, one of a fixed number of seats
 * (commons_seat.h), and hands the table's descriptor to whoever asks, so the table exists as long as one member lives
 * and is gone with the last, without a trace. A seat that can be bound is empty: its member has left or died. The lock
 * is robust. What other members wrote is copied, checked, then used.
 *
 * Nobody waits for a member that stands still, or for another user's process that has taken names, longer than
 * VB_COMMONS_JOIN_NS and VB_COMMONS_LOCK_NS say.
 */
#ifndef VB_HOST_COMMONS_H
#define VB_HOST_COMMONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/commons_seat.h"

struct vb_commons;
struct vb_node;

/* Joining looks for a member that answers, and a call waits for the lock, no longer than this. */
#define VB_COMMONS_JOIN_NS 2000000000ll
#define VB_COMMONS_LOCK_NS 1000000000ll

/*
 * *fresh: there was none, the table is zeroed. -ENOENT: there is none and `create` is false; -ETIMEDOUT: its members
 * stand still; -EUSERS: all seats are
 * taken; -EADDRNOTAVAIL: by other users; -EBUSY: members come and go too fast; another -errno.
 */
int vb_commons_join(struct vb_node *node, const char *name, size_t bytes, bool create,
		    struct vb_commons **commons, bool *fresh);
void vb_commons_leave(struct vb_node *node, struct vb_commons *commons);

void *vb_commons_table(const struct vb_commons *commons);
uint32_t vb_commons_seat(const struct vb_commons *commons);
/*
 * Does a living process have this seat? `suspect`: the caller has reason to think that it has not, and the name
 * may be another user's by now.
 */
bool vb_commons_seat_taken(const struct vb_commons *commons, uint32_t seat, bool suspect);

/*
 * try: for engines. lock: for calls, without any other lock held. False: a holder stands still; the caller must
 * do without.
 */
bool vb_commons_try(struct vb_commons *commons);
bool vb_commons_lock(struct vb_commons *commons);
void vb_commons_unlock(struct vb_commons *commons);

/* In a forked child: what was left is the parent's, and the lock may be held by a thread that does not exist here. */
void vb_commons_forked(void);

#endif
