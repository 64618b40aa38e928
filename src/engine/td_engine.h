/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engine that the queue pairs of a thread domain share. */
#ifndef VB_ENGINE_TD_ENGINE_H
#define VB_ENGINE_TD_ENGINE_H

struct vb_engine;
struct vb_td;

/* Made when first needed. 0 or -errno with the reason recorded. */
int vb_td_engine(struct vb_td *td, struct vb_engine **engine);

#endif
