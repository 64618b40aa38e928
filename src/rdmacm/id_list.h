/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All ids of the process. When it ends, peers of those that are still connected are told, as a
 * kernel does it for a process that goes.
 */
#ifndef VB_RDMACM_ID_LIST_H
#define VB_RDMACM_ID_LIST_H

struct vb_cma_id;

void vb_cma_id_list_add(struct vb_cma_id *id);
void vb_cma_id_list_remove(struct vb_cma_id *id);

/* In a forked child: the ids are the parent's. */
void vb_cma_id_list_forget(void);

#endif
