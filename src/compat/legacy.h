/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The functions of IBVERBS_1.0 that do more than refuse. */
#ifndef VB_COMPAT_LEGACY_H
#define VB_COMPAT_LEGACY_H

#include <linux/types.h>

void *vb_legacy_get_device_list(int *num);      /* NULL, and *num 0 */
__be64 vb_legacy_get_device_guid(void *device); /* 0 */

#endif
