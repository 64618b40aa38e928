/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All ids of the process, from vb_cma_id_create() until their owner lets go of them. What concerns
 * every id (the loss of a device) finds them here. Thread-safe; the lock of the list stands between
 * the core's and an id's.
 */
#ifndef VB_RDMACM_ID_LIST_H
#define VB_RDMACM_ID_LIST_H

struct vb_cma_id;

void vb_cma_id_list_add(struct vb_cma_id *id);
/* Nothing, if it was removed before. */
void vb_cma_id_list_remove(struct vb_cma_id *id);

/* Calls the function for each id, with the list's lock. It may take the id's lock. */
void vb_cma_id_list_each(void (*visit)(struct vb_cma_id *id, void *arg), void *arg);

/* In a forked child: the ids are the parent's. */
void vb_cma_id_list_forget(void);

#endif
