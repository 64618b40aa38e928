/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The process's one node on its host, started when first needed, and what to do when the process forks. */
#ifndef VB_DEVICE_PROCESS_H
#define VB_DEVICE_PROCESS_H

#include <stdint.h>

#include "host/node.h"

/* The node; started on the first call (page and tables only: no thread, no socket). -errno with the reason recorded. */
int vb_process_node(struct vb_node **node);
/* The node if it was started, else NULL. No lock, for paths where an object proves that it was. */
struct vb_node *vb_process_node_started(void);
/* Starts the progress thread (first queue pair). 0 or -errno. */
int vb_process_start_progress(void);

/*
 * A key or a QP was made invalid in the page: when this returns, no engine of this process and no living peer is still using it.
 * key != 0: the key; else the queue pair. Must be called without an engine lock.
 */
void vb_process_quiesce(uint32_t qpn, uint32_t key);

#endif
