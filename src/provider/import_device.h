/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A context of another context's objects, by the descriptor that names that context (ibv_import_device(3)). */
#ifndef VB_PROVIDER_IMPORT_DEVICE_H
#define VB_PROVIDER_IMPORT_DEVICE_H

struct ibv_context;

/* Owns cmd_fd when it succeeds. */
int vb_import_device(int cmd_fd, struct ibv_context **ctx);

#endif
