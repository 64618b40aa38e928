/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Devices whose interface goes: their ids get DEVICE_REMOVAL. Where it has another hardware address,
 * or an id's address is not on it any more, ADDR_CHANGE.
 */
#ifndef VB_RDMACM_REMOVAL_H
#define VB_RDMACM_REMOVAL_H

#include <stdbool.h>

struct vb_cma_place;

/*
 * Reports DEVICE_REMOVAL to every id that is bound to a device whose interface has gone, once, and
 * ends its part in the core; reports ADDR_CHANGE, once for each change. The progress thread calls it,
 * without a lock.
 */
void vb_cma_removal(void);

/*
 * An id has been bound to the place. That may have changed since it was found, and the ids have been
 * told before this one was bound: they are then told again.
 */
void vb_cma_removal_check(const struct vb_cma_place *place);
/* Whether that is to be done; asked once. */
bool vb_cma_removal_is_due(void);

#endif
