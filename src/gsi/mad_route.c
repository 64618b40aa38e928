/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the headers of a MAD, and the first words of its message, say about its receiver. */
#include "gsi/mad_route.h"

#include <string.h>

#include "wire/bytes.h"

/* The common header of MADs (IBA 13.4.2). */
enum {
	AT_BASE_VERSION = 0,
	AT_CLASS = 1,
	AT_CLASS_VERSION = 2,
	AT_METHOD = 3,
	AT_ATTRIBUTE = 16,
	AT_MESSAGE = 24,
};

#define BASE_VERSION  1
#define CLASS_CM      7
#define CLASS_VERSION 2
#define METHOD_SEND   3

/* Messages (IBA 12.6, table 99). */
enum {
	REQ = 0x10,
	MRA,
	REJ,
	REP,
	RTU,
	DREQ,
	DREP,
	SIDR_REQ,
	SIDR_REP,
};

/* In a message. Requests of IP addresses begin their private data with a header (IBA A11). */
enum {
	AT_LOCAL_ID = 0,
	AT_REMOTE_ID = 4,
	AT_SERVICE_ID = 8,
	AT_REJ_REASON = 10,
	AT_REQ_PRIVATE = 140,
	AT_SIDR_PRIVATE = 16,
	AT_IP_MAJOR = 0, /* in the private data */
	AT_IP_VERSION = 1,
	AT_IP_DESTINATION = 20,
};

#define REJ_TIMEOUT 4

static bool is_cm(const uint8_t *mad)
{
	return mad[AT_BASE_VERSION] == BASE_VERSION && mad[AT_CLASS] == CLASS_CM &&
	       mad[AT_CLASS_VERSION] == CLASS_VERSION && mad[AT_METHOD] == METHOD_SEND;
}

static void ip_header(const uint8_t *private_data, struct vb_mad_route *route)
{
	uint8_t version = private_data[AT_IP_VERSION] >> 4;
	const uint8_t *to = private_data + AT_IP_DESTINATION;

	if (private_data[AT_IP_MAJOR] || (version != 4 && version != 6))
		return;
	route->ip_version = version;
	memcpy(route->address, to, sizeof(route->address));
	/* A GID has ffff in front of an IPv4 address; the header has zeros. */
	if (version == 4) {
		memset(route->address, 0, 10);
		memset(route->address + 10, 0xff, 2);
	}
}

static void by_service(const uint8_t *message, const uint8_t *private_data,
		       struct vb_mad_route *route)
{
	uint64_t service = vb_get64(message + AT_SERVICE_ID);

	/* Ids of ports are the port space and the port, with nothing above. */
	route->way = service >> 32 ? VB_MAD_TO_ANY : VB_MAD_BY_PORT;
	route->space = (uint16_t)(service >> 16);
	route->port = (uint16_t)service;
	ip_header(private_data, route);
}

static void by_id(uint32_t id, struct vb_mad_route *route)
{
	route->comm_id = id;
	route->way = id ? VB_MAD_BY_ID : VB_MAD_TO_ANY;
}

void vb_mad_route(const uint8_t data[VB_GSI_MAD_BYTES], struct vb_mad_route *route)
{
	const uint8_t *message = data + AT_MESSAGE;

	memset(route, 0, sizeof(*route));
	if (!is_cm(data))
		return;
	route->sender_id = vb_get32(message + AT_LOCAL_ID);
	switch (vb_get16(data + AT_ATTRIBUTE)) {
	case REQ:
		by_service(message, message + AT_REQ_PRIVATE, route);
		break;
	case SIDR_REQ:
		by_service(message, message + AT_SIDR_PRIVATE, route);
		break;
	case SIDR_REP: /* the request's id is all that it has */
		by_id(route->sender_id, route);
		route->sender_id = 0;
		break;
	case REJ:
		by_id(vb_get32(message + AT_REMOTE_ID), route);
		if (!route->comm_id && vb_get16(message + AT_REJ_REASON) == REJ_TIMEOUT)
			route->way = VB_MAD_TO_ALL;
		break;
	case MRA:
	case REP:
	case RTU:
	case DREQ:
	case DREP:
		by_id(vb_get32(message + AT_REMOTE_ID), route);
		break;
	default:
		route->sender_id = 0;
		break;
	}
}
