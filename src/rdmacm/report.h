/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the core reports of a connection becomes an event of an id. */
#ifndef VB_RDMACM_REPORT_H
#define VB_RDMACM_REPORT_H

#include "cm/cm.h"

/* vb_cm_env.event: called with the core's lock, by any thread. */
bool vb_cma_report(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_event *event);

#endif
