/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The operations of the device, made of the one list. */
#include "provider/ops.h"

#include "object/ah.h"
#include "object/async.h"
#include "memory/buf.h"
#include "object/comp_channel.h"
#include "raw/counters.h"
#include "engine/cq.h"
#include "memory/dm.h"
#include "memory/dmah.h"
#include "raw/flow.h"
#include "provider/import.h"
#include "provider/kinds.h"
#include "remote/mcast.h"
#include "memory/mr.h"
#include "memory/mw.h"
#include "object/pd.h"
#include "provider/ops_list.h"
#include "qp/comp_cntr.h"
#include "object/query.h"
#include "qp/mw_post.h"
#include "qp/qp.h"
#include "engine/srq.h"
#include "tag/srq.h"
#include "object/td.h"
#include "raw/wq.h"
#include "xrc/xrc.h"

#define COUNT(...) +1
_Static_assert(0 VB_OPS(COUNT) == sizeof(struct vb_ops) / sizeof(void (*)(void)),
	       "an operation is missing in ops_list.h");

#define DEVICE(op, device, forked) .op = (device),

const struct vb_ops vb_device_ops = {VB_OPS(DEVICE)};
