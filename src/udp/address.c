/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* GIDs and socket addresses. */
#include "udp/address.h"

#include <string.h>

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

bool vb_udp_is_ipv4(const uint8_t gid[16])
{
	return !memcmp(gid, mapped, sizeof(mapped));
}

bool vb_udp_is_multicast(const uint8_t gid[16])
{
	return vb_udp_is_ipv4(gid) ? (gid[12] & 0xf0) == 0xe0 : gid[0] == 0xff;
}

bool vb_udp_is_group(const uint8_t gid[16])
{
	return gid[0] == 0xff || (vb_udp_is_ipv4(gid) && gid[12] >> 4 == 0xe);
}

bool vb_udp_is_link_scope(const uint8_t gid[16])
{
	if (gid[0] == 0xff)
		return (gid[1] & 0xf) <= 2;
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

void vb_udp_gid_on_wire(uint8_t wire[16], const uint8_t gid[16])
{
	memmove(wire, gid, 16);
	if (wire[0] == 0xff && (wire[1] & 0xf) == 1)
		wire[1] = (uint8_t)((wire[1] & 0xf0) | 2);
}

socklen_t vb_udp_address_of(union vb_udp_address *address, const uint8_t gid[16], uint16_t port,
			    uint32_t scope)
{
	memset(address, 0, sizeof(*address));
	if (vb_udp_is_ipv4(gid)) {
		address->v4.sin_family = AF_INET;
		address->v4.sin_port = htons(port);
		memcpy(&address->v4.sin_addr, gid + 12, 4);
		return sizeof(address->v4);
	}
	address->v6.sin6_family = AF_INET6;
	address->v6.sin6_port = htons(port);
	memcpy(&address->v6.sin6_addr, gid, 16);
	if (vb_udp_is_link_scope(gid))
		address->v6.sin6_scope_id = scope;
	return sizeof(address->v6);
}

void vb_udp_gid_of_ipv4(struct in_addr address, uint8_t gid[16])
{
	memcpy(gid, mapped, sizeof(mapped));
	memcpy(gid + 12, &address, 4);
}

void vb_udp_gid_of(const union vb_udp_address *address, uint8_t gid[16])
{
	if (address->any.sa_family == AF_INET)
		vb_udp_gid_of_ipv4(address->v4.sin_addr, gid);
	else
		memcpy(gid, &address->v6.sin6_addr, 16);
}
