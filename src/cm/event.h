/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the connection manager tells its user about a connection. */
#ifndef VB_CM_EVENT_H
#define VB_CM_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/path.h"
#include "wire/cm_address.h"

/*
 * Named after the events of rdma_get_cm_event(3) that they become. What a connection can bring:
 *
 * active:  (RESPONSE | REJECTED | UNREACHABLE), after RESPONSE: REJECTED until the RTU was sent,
 *          else DISCONNECTED
 * passive: REQUEST; REJECTED before accept (the peer gave up: no program is told in stock); after
 *          it ESTABLISHED, REJECTED, UNREACHABLE, or DISCONNECTED without ESTABLISHED; after
 *          ESTABLISHED: DISCONNECTED
 * both:    TIMEWAIT_EXIT, late and last, after DISCONNECTED
 * SIDR:    SIDR_REQUEST at the one side, SIDR_RESPONSE or UNREACHABLE at the other
 *
 * DISCONNECTED comes at most once. After vb_cm_release() nothing comes.
 */
enum vb_cm_event_type {
	VB_CM_EVENT_REQUEST,
	VB_CM_EVENT_RESPONSE,
	VB_CM_EVENT_ESTABLISHED,
	VB_CM_EVENT_REJECTED,
	VB_CM_EVENT_UNREACHABLE,
	VB_CM_EVENT_DISCONNECTED,
	VB_CM_EVENT_TIMEWAIT_EXIT,
	VB_CM_EVENT_SIDR_REQUEST,
	VB_CM_EVENT_SIDR_RESPONSE,
	VB_CM_EVENT_COUNT,
};

/*
 * Valid during the call of env->event() only. Members that an event does not have are 0.
 *
 * REQUEST: everything but qkey and status. The depths are from the own side, as rdma_accept() takes
 * them: responder_resources is the REQ's initiator depth, and the other way round. RESPONSE: qp_num,
 * psn, both depths (exchanged likewise), rnr_retry_count, flow_control, srq, ece_*. SIDR_REQUEST:
 * service_id, address, path. SIDR_RESPONSE: qp_num, qkey, ece_*.
 *
 * private_data is padded with zeros to what stock reports: 56 (REQUEST), 180 (SIDR_REQUEST),
 * 196 (RESPONSE), 148 (REJECTED), 136 (SIDR_RESPONSE and refusals of SIDR); else its length is 0.
 */
struct vb_cm_event {
	enum vb_cm_event_type type;
	/*
	 * REJECTED: the reason, positive. UNREACHABLE: -ETIMEDOUT, or the positive status of SIDR.
	 * DISCONNECTED: 0, or -ETIMEDOUT if the peer did not answer the own DREQ. Else 0.
	 */
	int status;
	const uint8_t *private_data;
	uint8_t private_length;

	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count;
	bool flow_control, srq;
	uint8_t service; /* enum vb_cm_service */
	uint32_t qp_num; /* the peer's */
	uint32_t psn;    /* the first one that the peer expects, to be the own sq_psn */
	uint32_t qkey;
	uint32_t ece_vendor, ece_options;

	struct vb_cm_listener *listener; /* REQUEST, SIDR_REQUEST */
	uint64_t service_id;
	struct vb_cm_address address; /* as the peer wrote it: its source is the peer */
	const struct vb_cm_path *path;
};

#endif
