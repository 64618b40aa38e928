/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The process's one node on its host, started when first needed. */
#ifndef VB_PROCESS_PROCESS_H
#define VB_PROCESS_PROCESS_H

#include <stdint.h>

#include "engine/engines.h"
#include "host/node.h"

/* The node; started on the first call (page and tables only: no thread, no socket). -errno with the reason recorded. */
int vb_process_node(struct vb_node **node);
/* The node if it was started, else NULL. No lock, for paths where an object proves that it was. */
struct vb_node *vb_process_node_started(void);
/* Starts the progress thread (first queue pair). 0 or -errno. */
int vb_process_start_progress(void);
/*
 * What the program has may be imported by others (ibv_import_device(3)) before it has a queue pair: the process gets a
 * name and a thread that answers. When they cannot be had, importing is refused, and nothing else.
 */
void vb_process_be_reachable(void);

/*
 * A key or a QP was made invalid in the page: when this returns, no engine of this process and no living peer is
 * still using it.
 * key != 0: the key; else the queue pair. Must be called without an engine lock.
 */
void vb_process_quiesce(uint32_t qpn, uint32_t key);

/* Grows when contact with some process was made, failed or ended: who waits for a channel asks again. */
uint64_t vb_process_contact_epoch(void);

/* The progress thread (progress.c). */
void *vb_progress_main(void *node);
/*
 * A timer or sleeping engine was armed for `at` (CLOCK_MONOTONIC ns): make the progress thread look if it would
 * sleep longer.
 */
void vb_progress_expect(uint64_t at);
/* A queue pair of an engine that nobody polls waits for room or for contact: looked at soon, and then less and less often. */
void vb_progress_wait_for_room(void);

#endif
