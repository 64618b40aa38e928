/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A table shared by all processes of a user that use the same name: an exception from "one writer
 * per page".
 *
 * It has no keeper. Every member listens on an abstract socket of its own, one of a fixed number of
 * seats (commons_seat.h), and passes the table's descriptor to each process that asks. So the table
 * exists as long as one member lives and is gone with the last, without a trace. A seat that can be
 * bound is empty: its member has left or died. The lock is robust. What other members wrote is
 * copied, checked, then used.
 *
 * No call waits for a member that stands still, or for another user's process that has taken names,
 * longer than VB_COMMONS_JOIN_NS and VB_COMMONS_LOCK_NS say.
 */
#ifndef VB_HOST_COMMONS_H
#define VB_HOST_COMMONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/commons_seat.h"

struct vb_commons;
struct vb_node;

/*
 * The longest time for which joining looks for a member that answers, and for which a call waits
 * for the lock.
 */
#define VB_COMMONS_JOIN_NS 2000000000ll
#define VB_COMMONS_LOCK_NS 1000000000ll

/*
 * *fresh: there was no table; the new one is zeroed. -ENOENT: there is none and `create` is false;
 * -ETIMEDOUT: its members stand still; -EUSERS: all seats are taken; -EADDRNOTAVAIL: by other
 * users; -EBUSY: members come and go too fast; another -errno.
 */
int vb_commons_join(struct vb_node *node, const char *name, size_t bytes, bool create,
		    struct vb_commons **commons, bool *fresh);
void vb_commons_leave(struct vb_node *node, struct vb_commons *commons);

void *vb_commons_table(const struct vb_commons *commons);
uint32_t vb_commons_seat(const struct vb_commons *commons);
/*
 * Whether a living process has this seat. `suspect`: the caller has reason to think that none has;
 * another user may have the name by now.
 */
bool vb_commons_seat_taken(const struct vb_commons *commons, uint32_t seat, bool suspect);

/*
 * A number that changes whenever a process takes the seat, before it counts as taken. So what was
 * written for the seat's former member can be told from what the present one has written.
 */
uint32_t vb_commons_taking(const struct vb_commons *commons, uint32_t seat);

/*
 * vb_commons_try() is for engines. vb_commons_lock() is for calls that hold no other lock. False: a
 * holder stands still; the caller must do without the table.
 */
bool vb_commons_try(struct vb_commons *commons);
bool vb_commons_lock(struct vb_commons *commons);
void vb_commons_unlock(struct vb_commons *commons);

/*
 * In a forked child: tables that were left are the parent's, and the lock may be held by a thread
 * that does not exist there.
 */
void vb_commons_forked(void);

#endif
