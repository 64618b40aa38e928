/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The verbs interface at the level of IBVERBS_1.18: types, exported functions, inlines.
 *
 * This file only puts the parts together. A program compiled against it runs with any
 * libibverbs.so.1 that has the functions it calls, and a program compiled against another
 * libibverbs' headers runs with ours: names, values and layouts are the same.
 */
#ifndef INFINIBAND_VERBS_H
#define INFINIBAND_VERBS_H

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include <linux/types.h>

#include <infiniband/verbs_api.h>

#ifdef __cplusplus
#include <limits>
#endif

#ifdef __GNUC__
#define __attribute_const __attribute__((const))
#else
#define __attribute_const
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_ah;
struct ibv_context;
struct ibv_counters;
struct ibv_cq;
struct ibv_device;
struct ibv_flow_action;
struct ibv_mw;
struct ibv_qp;
struct ibv_recv_wr;
struct ibv_srq;
struct ibv_wq;

#include <infiniband/verbs/gid.h>
#include <infiniband/verbs/device.h>
#include <infiniband/verbs/port.h>
#include <infiniband/verbs/event.h>
#include <infiniband/verbs/completion.h>
#include <infiniband/verbs/memory.h>
#include <infiniband/verbs/address.h>
#include <infiniband/verbs/shared_receive.h>
#include <infiniband/verbs/receive_wq.h>
#include <infiniband/verbs/work_request.h>
#include <infiniband/verbs/queue_pair.h>
#include <infiniband/verbs/flow.h>
#include <infiniband/verbs/counters.h>
#include <infiniband/verbs/context.h>
#include <infiniband/verbs/functions.h>
#include <infiniband/verbs/fastpath.h>
#include <infiniband/verbs/control.h>

#ifdef __cplusplus
}
#endif

#undef __attribute_const

#endif
