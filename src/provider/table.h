/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table that a context is opened with: the operations and the types of objects of this device.
 */
#ifndef VB_PROVIDER_TABLE_H
#define VB_PROVIDER_TABLE_H

#include "object/context.h"

extern const struct vb_context_table vb_context_table;

#endif
