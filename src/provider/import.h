/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Objects of another context, of this process or another, by the descriptor that names the context
 * (import_device.h). An imported object is a view: ending it, by whichever call, leaves the
 * original to its owner.
 */
#ifndef VB_PROVIDER_IMPORT_H
#define VB_PROVIDER_IMPORT_H

#include <infiniband/verbs.h>

int vb_import_pd(struct ibv_context *ctx, uint32_t handle, struct ibv_pd **pd);
int vb_import_mr(struct ibv_pd *pd, uint32_t handle, struct ibv_mr **mr);
int vb_import_dm(struct ibv_context *ctx, uint32_t handle, struct ibv_dm **dm);

#endif
