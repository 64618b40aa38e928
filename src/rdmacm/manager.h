/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connection manager of the process: the pure core (cm/cm.h), its lock, and its carrier
 * (gsi/gsi.h). The carrier's thread brings messages and deadlines in; the functions of the program
 * call the core under the lock; what the core reports goes to rdmacm/report.h, under the lock too.
 */
#ifndef VB_RDMACM_MANAGER_H
#define VB_RDMACM_MANAGER_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/cm.h"

/* Opens the carrier, once. Waits; no lock is held. */
int vb_cma_manager_open(void);

bool vb_cma_manager_is_open(void);

/* The core, with its lock; between the two nothing waits. */
struct vb_cm *vb_cma_manager_take(void);
void vb_cma_manager_release(void);

/* As vb_gsi_reach(): an address, or NULL for all that a listener needs. */
int vb_cma_manager_reach(const uint8_t gid[16]);

/* In a forked child: the connections are the parent's. */
void vb_cma_manager_forget(void);

#endif
