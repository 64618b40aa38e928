/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The progress thread. */
#ifndef VB_ENGINE_PROGRESS_THREAD_H
#define VB_ENGINE_PROGRESS_THREAD_H

struct vb_node;

/* The whole work of the progress thread; never returns. */
void vb_progress_main(struct vb_node *node);

#endif
