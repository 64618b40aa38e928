/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The addresses in front of private data, read and written (IBA A11.4.3). */
#include "wire/cm_address.h"

#include <string.h>

#include "wire/bytes.h"

enum {
	AT_FORMAT = 0,  /* major and minor version: 0 */
	AT_VERSION = 1, /* of IP, in the upper half */
	AT_PORT = 2,
	AT_SOURCE = 4,
	AT_DESTINATION = 20,
};

static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

static void get_address(uint8_t gid[16], const uint8_t *from, uint8_t version)
{
	memcpy(gid, from, 16);
	if (version == 4)
		memcpy(gid, v4_prefix, sizeof(v4_prefix));
}

bool vb_cm_address_decode(const uint8_t bytes[VB_CM_ADDRESS_BYTES], struct vb_cm_address *address)
{
	uint8_t version = bytes[AT_VERSION] >> 4;

	if (bytes[AT_FORMAT] || (version != 4 && version != 6))
		return false;
	address->version = version;
	address->port = vb_get16(bytes + AT_PORT);
	get_address(address->source, bytes + AT_SOURCE, version);
	get_address(address->destination, bytes + AT_DESTINATION, version);
	return true;
}

static void put_address(uint8_t *to, const uint8_t gid[16], uint8_t version)
{
	memcpy(to, gid, 16);
	if (version == 4)
		memset(to, 0, sizeof(v4_prefix));
}

void vb_cm_address_encode(const struct vb_cm_address *address, uint8_t bytes[VB_CM_ADDRESS_BYTES])
{
	bytes[AT_FORMAT] = 0;
	bytes[AT_VERSION] = (uint8_t)(address->version << 4);
	vb_put16(bytes + AT_PORT, address->port);
	put_address(bytes + AT_SOURCE, address->source, address->version);
	put_address(bytes + AT_DESTINATION, address->destination, address->version);
}
