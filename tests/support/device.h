/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device that tests use. */
#ifndef TESTS_SUPPORT_DEVICE_H
#define TESTS_SUPPORT_DEVICE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/* The one that VB_TEST_DEVICE names, or the first whose name begins with vb_. Never NULL. */
struct ibv_context *device_open(void);

#endif
