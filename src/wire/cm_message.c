/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages of the connection manager: which MADs they are, and for whom. */
#include "wire/cm_message.h"

#include "wire/bytes.h"
#include "wire/cm_layout.h"

static const struct layout {
	uint8_t private_at, private_room;
} layouts[] = {
	[VB_CM_REQ] = {AT_REQ_PRIVATE, VB_CM_PRIVATE_REQ},
	[VB_CM_MRA] = {AT_MRA_PRIVATE, VB_CM_PRIVATE_MRA},
	[VB_CM_REJ] = {AT_REJ_PRIVATE, VB_CM_PRIVATE_REJ},
	[VB_CM_REP] = {AT_REP_PRIVATE, VB_CM_PRIVATE_REP},
	[VB_CM_RTU] = {AT_RTU_PRIVATE, VB_CM_PRIVATE_RTU},
	[VB_CM_DREQ] = {AT_DREQ_PRIVATE, VB_CM_PRIVATE_DREQ},
	[VB_CM_DREP] = {AT_DREP_PRIVATE, VB_CM_PRIVATE_DREP},
	[VB_CM_SIDR_REQ] = {AT_SIDR_REQ_PRIVATE, VB_CM_PRIVATE_SIDR_REQ},
	[VB_CM_SIDR_REP] = {AT_SIDR_REP_PRIVATE, VB_CM_PRIVATE_SIDR_REP},
};

static const struct layout *layout_of(uint16_t attribute)
{
	static const struct layout none = {0, 0};

	return attribute < sizeof(layouts) / sizeof(layouts[0]) ? &layouts[attribute] : &none;
}

unsigned int vb_cm_private_at(uint16_t attribute)
{
	return layout_of(attribute)->private_at;
}

unsigned int vb_cm_private_room(uint16_t attribute)
{
	return layout_of(attribute)->private_room;
}

enum vb_reason vb_cm_message_judge(const uint8_t *mad, size_t length)
{
	struct vb_mad header;
	enum vb_reason reason = vb_mad_decode(mad, length, &header);

	if (reason)
		return reason;
	if (header.base_version != VB_MAD_BASE_VERSION || header.class != VB_MAD_CLASS_CM ||
	    header.class_version != VB_MAD_VERSION_CM || header.method != VB_MAD_METHOD_SEND)
		return VB_REASON_CM_OTHER;
	return vb_cm_private_room(header.attribute) ? VB_REASON_NONE : VB_REASON_CM_OTHER;
}

/* In the header of a MAD. */
#define AT_ATTRIBUTE 16

uint16_t vb_cm_message_attribute(const uint8_t mad[VB_MAD_BYTES])
{
	return vb_get16(mad + AT_ATTRIBUTE);
}

uint32_t vb_cm_message_receiver(const uint8_t mad[VB_MAD_BYTES])
{
	switch (vb_cm_message_attribute(mad)) {
	case VB_CM_REQ:
	case VB_CM_SIDR_REQ:
		return 0;
	case VB_CM_SIDR_REP:
		return vb_get32(mad + VB_MAD_HEADER_BYTES + AT_LOCAL_ID);
	default:
		return vb_get32(mad + VB_MAD_HEADER_BYTES + AT_REMOTE_ID);
	}
}

uint32_t vb_cm_message_sender(const uint8_t mad[VB_MAD_BYTES])
{
	if (vb_cm_message_attribute(mad) == VB_CM_SIDR_REP)
		return 0;
	return vb_get32(mad + VB_MAD_HEADER_BYTES + AT_LOCAL_ID);
}

bool vb_cm_message_service(const uint8_t mad[VB_MAD_BYTES], uint64_t *service_id)
{
	switch (vb_cm_message_attribute(mad)) {
	case VB_CM_REQ:
		*service_id = vb_get64(mad + VB_MAD_HEADER_BYTES + AT_REQ_SERVICE_ID);
		return true;
	case VB_CM_SIDR_REQ:
		*service_id = vb_get64(mad + VB_MAD_HEADER_BYTES + AT_SIDR_REQ_SERVICE_ID);
		return true;
	default:
		return false;
	}
}
