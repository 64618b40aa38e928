/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What differs between the services, one row each: how a request is sent, and which function takes
 * arriving runs.
 */
#ifndef VB_TRANSPORT_SERVICE_H
#define VB_TRANSPORT_SERVICE_H

#include <stdbool.h>

#include "transport/operation.h"
#include "transport/requester.h"
#include "transport/run.h"
#include "transport/tqp.h"
#include "transport/wqe.h"

struct vb_service_rules {
	/* Sends the next run of a started entry that has packets. */
	enum vb_step (*emit)(struct vb_tqp *qp, struct vb_send_wqe *w,
			     const struct vb_operation *op);
	/* Takes a request of the peer. */
	void (*request)(struct vb_tqp *qp, const struct vb_run *run, const void *payload);
	/* Takes an answer of the peer. NULL: requests of the service are not answered. */
	void (*answer)(struct vb_tqp *qp, const struct vb_run *run, const void *payload);
	bool connected; /* one peer: its first request tells that it is connected (COMM_EST) */
};

extern const struct vb_service_rules vb_services[];

#endif
