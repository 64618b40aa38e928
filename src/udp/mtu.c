/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Path MTUs by interface MTUs. */
#include "udp/mtu.h"

#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>

#include "wire/packet.h"

#define MTU_LEAST 256u

uint32_t vb_udp_overhead(bool ipv4)
{
	size_t ip = ipv4 ? sizeof(struct iphdr) : sizeof(struct ip6_hdr);

	return (uint32_t)(ip + sizeof(struct udphdr)) + VB_PACKET_DATA_HEADER_MOST + VB_ICRC_BYTES;
}

uint32_t vb_udp_path_mtu(bool ipv4, uint32_t interface_mtu)
{
	for (uint32_t mtu = VB_MTU_MOST; mtu >= MTU_LEAST; mtu /= 2) {
		if (interface_mtu >= mtu + vb_udp_overhead(ipv4))
			return mtu;
	}
	return 0;
}
