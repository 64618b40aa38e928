/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a MAD says about its receiver. */
#include "gsi/mad_route.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/cm_address.h"
#include "wire/cm_message.h"

_Static_assert(VB_MAD_BYTES == VB_GSI_MAD_BYTES, "a MAD is a MAD");

/* In the bodies of messages (IBA 12.6.5, 12.6.7, 12.11.1). */
#define AT_REQ_PRIVATE  140u
#define AT_SIDR_PRIVATE 16u
#define AT_REJ_REASON   10u

static void by_port(const uint8_t *data, uint16_t attribute, uint64_t service,
		    struct vb_mad_route *route)
{
	const uint8_t *body = data + VB_MAD_HEADER_BYTES;
	struct vb_cm_address address;

	/* Ids of ports are the port space and the port, with nothing above. */
	route->way = service >> 32 ? VB_MAD_TO_ANY : VB_MAD_BY_PORT;
	route->space = (uint16_t)(service >> 16);
	route->port = (uint16_t)service;
	route->ip = vb_cm_address_decode(
		body + (attribute == VB_CM_REQ ? AT_REQ_PRIVATE : AT_SIDR_PRIVATE), &address);
	if (route->ip)
		memcpy(route->address, address.destination, sizeof(route->address));
}

void vb_mad_route(const uint8_t data[VB_GSI_MAD_BYTES], struct vb_mad_route *route)
{
	uint16_t attribute;
	uint64_t service;

	memset(route, 0, sizeof(*route));
	if (vb_cm_message_judge(data, VB_GSI_MAD_BYTES))
		return;
	attribute = vb_cm_message_attribute(data);
	route->sender_id = vb_cm_message_sender(data);
	if (vb_cm_message_service(data, &service)) {
		by_port(data, attribute, service, route);
		return;
	}
	route->comm_id = vb_cm_message_receiver(data);
	if (route->comm_id)
		route->way = VB_MAD_BY_ID;
	else if (attribute == VB_CM_REJ &&
		 vb_get16(data + VB_MAD_HEADER_BYTES + AT_REJ_REASON) == VB_CM_REJ_TIMEOUT)
		route->way = VB_MAD_TO_ALL;
	else
		route->way = VB_MAD_TO_ANY;
}
