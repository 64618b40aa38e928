/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Synchronous ids: a call that has an event waits for it, and leaves it in id->event. */
#ifndef VB_RDMACM_SYNC_H
#define VB_RDMACM_SYNC_H

struct vb_cma_id;

/* Acknowledges id->event, if there is one. */
void vb_cma_sync_ack(struct vb_cma_id *id);

/*
 * For an id with a channel of the program: 0. For a synchronous one: acknowledges the event of the
 * call before, waits for the next one, and tells by it how the call ended: 0, -ECONNREFUSED for
 * REJECTED, else the negative errno of the event.
 */
int vb_cma_sync_wait(struct vb_cma_id *id);

#endif
