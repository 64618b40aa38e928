/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The names of events: rdma_event_str(3). Programs compare them and print them: they are the enumerators. */
#include <stddef.h>

#include <rdma/rdma_cma.h>

#include "rdmacm/face.h"

VB_EXPORT const char *rdma_event_str(enum rdma_cm_event_type event)
{
#define NAME(event) [event] = #event
	static const char *const names[] = {
		NAME(RDMA_CM_EVENT_ADDR_RESOLVED),
		NAME(RDMA_CM_EVENT_ADDR_ERROR),
		NAME(RDMA_CM_EVENT_ROUTE_RESOLVED),
		NAME(RDMA_CM_EVENT_ROUTE_ERROR),
		NAME(RDMA_CM_EVENT_CONNECT_REQUEST),
		NAME(RDMA_CM_EVENT_CONNECT_RESPONSE),
		NAME(RDMA_CM_EVENT_CONNECT_ERROR),
		NAME(RDMA_CM_EVENT_UNREACHABLE),
		NAME(RDMA_CM_EVENT_REJECTED),
		NAME(RDMA_CM_EVENT_ESTABLISHED),
		NAME(RDMA_CM_EVENT_DISCONNECTED),
		NAME(RDMA_CM_EVENT_DEVICE_REMOVAL),
		NAME(RDMA_CM_EVENT_MULTICAST_JOIN),
		NAME(RDMA_CM_EVENT_MULTICAST_ERROR),
		NAME(RDMA_CM_EVENT_ADDR_CHANGE),
		NAME(RDMA_CM_EVENT_TIMEWAIT_EXIT),
		NAME(RDMA_CM_EVENT_ADDRINFO_RESOLVED),
		NAME(RDMA_CM_EVENT_ADDRINFO_ERROR),
		NAME(RDMA_CM_EVENT_USER),
		NAME(RDMA_CM_EVENT_INTERNAL),
	};
#undef NAME

	return (size_t)event < sizeof(names) / sizeof(names[0]) ? names[event] : "UNKNOWN EVENT";
}
