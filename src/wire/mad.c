/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The header of MADs, read and written (IBA 13.4.2). */
#include "wire/mad.h"

#include "wire/bytes.h"

enum {
	AT_BASE_VERSION = 0,
	AT_CLASS = 1,
	AT_CLASS_VERSION = 2,
	AT_METHOD = 3,
	AT_STATUS = 4,
	AT_CLASS_SPECIFIC = 6,
	AT_TID = 8,
	AT_ATTRIBUTE = 16, /* two reserved bytes lie behind */
	AT_MODIFIER = 20,
};

enum vb_reason vb_mad_decode(const uint8_t *bytes, size_t length, struct vb_mad *mad)
{
	if (length != VB_MAD_BYTES)
		return VB_REASON_CM_MALFORMED;
	mad->base_version = bytes[AT_BASE_VERSION];
	mad->class = bytes[AT_CLASS];
	mad->class_version = bytes[AT_CLASS_VERSION];
	mad->method = bytes[AT_METHOD];
	mad->status = vb_get16(bytes + AT_STATUS);
	mad->class_specific = vb_get16(bytes + AT_CLASS_SPECIFIC);
	mad->tid = vb_get64(bytes + AT_TID);
	mad->attribute = vb_get16(bytes + AT_ATTRIBUTE);
	mad->modifier = vb_get32(bytes + AT_MODIFIER);
	return VB_REASON_NONE;
}

void vb_mad_encode(const struct vb_mad *mad, uint8_t bytes[VB_MAD_HEADER_BYTES])
{
	bytes[AT_BASE_VERSION] = mad->base_version;
	bytes[AT_CLASS] = mad->class;
	bytes[AT_CLASS_VERSION] = mad->class_version;
	bytes[AT_METHOD] = mad->method;
	vb_put16(bytes + AT_STATUS, mad->status);
	vb_put16(bytes + AT_CLASS_SPECIFIC, mad->class_specific);
	vb_put64(bytes + AT_TID, mad->tid);
	vb_put16(bytes + AT_ATTRIBUTE, mad->attribute);
	vb_put16(bytes + AT_ATTRIBUTE + 2, 0);
	vb_put32(bytes + AT_MODIFIER, mad->modifier);
}
