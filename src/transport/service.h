/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the services do differently, one row each: how a request goes out, and who takes what arrives. */
#ifndef VB_TRANSPORT_SERVICE_H
#define VB_TRANSPORT_SERVICE_H

#include <stdbool.h>

#include "transport/operation.h"
#include "transport/requester.h"
#include "transport/run.h"
#include "transport/tqp.h"
#include "transport/wqe.h"

struct vb_service_rules {
	/* The next run of a started entry that has packets. */
	enum vb_step (*emit)(struct vb_tqp *qp, struct vb_send_wqe *w,
			     const struct vb_operation *op);
	/* A request of the peer. */
	void (*request)(struct vb_tqp *qp, const struct vb_run *run, const void *payload);
	/* An answer of the peer; NULL: its requests are not answered. */
	void (*answer)(struct vb_tqp *qp, const struct vb_run *run, const void *payload);
	bool connected; /* one peer: its first request tells that it is there (COMM_EST) */
};

extern const struct vb_service_rules vb_services[];

#endif
