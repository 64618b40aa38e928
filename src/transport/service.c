/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of services. */
#include "transport/service.h"

#include "transport/responder.h"

const struct vb_service_rules vb_services[] = {
	[VB_SERVICE_RC] = {vb_request_connected, vb_responder_rc, vb_completer_receive, true},
	[VB_SERVICE_UC] = {vb_request_connected, vb_responder_uc, NULL, true},
	[VB_SERVICE_UD] = {vb_request_datagram, vb_responder_ud, NULL, false},
	[VB_SERVICE_XRC] = {vb_request_connected, vb_responder_rc, vb_completer_receive, true},
};
