/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: the packet decoder. What it accepts lies within the packet, and is encoded again to
 * the same bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "demand.h"
#include "input.h"
#include "wire/bytes.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/packet.h"

/* Bits that do not reach the run: MigReq, congestion and reserved bits (IBA 9.2). */
static void forget(uint8_t *header, const struct vb_run *run)
{
	header[1] &= (uint8_t)~0x40;
	header[4] = 0;
	header[8] &= 0x80;
	if (run->service == VB_SERVICE_UD)
		header[VB_BTH_BYTES + 4] = 0;
	else if (run->service == VB_SERVICE_XRC && run->op != VB_OP_READ_RESPONSE &&
		 run->op != VB_OP_ACK && run->op != VB_OP_ATOMIC_ACK)
		header[VB_BTH_BYTES] = 0;
}

/*
 * verbatim does not send Solicited and AckReq in the middle of a message; when others do, they are
 * kept.
 */
static void check_header(const uint8_t *packet, const struct vb_run *run, size_t bytes)
{
	uint8_t was[VB_PACKET_HEADER_MOST];
	uint8_t again[VB_PACKET_HEADER_MOST];
	size_t header = vb_packet_header(run, 0, VB_MTU_MOST, again);

	DEMAND(header == bytes);
	memcpy(was, packet, header);
	forget(was, run);
	forget(again, run);
	DEMAND(!memcmp(was, again, header));
}

static void check_icrc(uint8_t *packet, size_t size, bool ipv4)
{
	struct vb_flow flow = {
		.source_port = 0xc000, .destination_port = VB_UDP_PORT, .ipv4 = ipv4};
	uint16_t id = 0x1234;
	uint32_t crc;

	vb_icrc_check(&flow, packet, size, &id);
	id = 0x1234;
	crc = vb_icrc_begin(&flow, id, size, packet, VB_BTH_BYTES);
	crc = vb_icrc_add(crc, packet + VB_BTH_BYTES, size - VB_BTH_BYTES - VB_ICRC_BYTES);
	vb_put32_little(packet + size - VB_ICRC_BYTES, crc);
	id = 0;
	DEMAND(vb_icrc_check(&flow, packet, size, &id) == true);
	DEMAND(id == (ipv4 ? 0x1234 : 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *packet = malloc(size ? size : 1);
	const uint8_t *payload = NULL;
	struct vb_run run;

	if (!packet)
		return 0;
	if (size)
		memcpy(packet, data, size);
	if (vb_packet_decode(packet, size, &run, &payload) == VB_REASON_NONE) {
		size_t header = (size_t)(payload - packet);

		DEMAND(payload > packet && header + run.length + VB_ICRC_BYTES <= size);
		DEMAND(size - header - run.length - VB_ICRC_BYTES < 4);
		DEMAND(run.segments == 1 && run.length <= VB_MTU_MOST);
		DEMAND(run.dest_qpn && run.dest_qpn <= VB_QPN_MASK && run.psn <= VB_QPN_MASK);
		DEMAND(run.src_qpn <= VB_QPN_MASK && run.msn <= VB_QPN_MASK);
		check_header(packet, &run, header);
		check_icrc(packet, size, true);
		check_icrc(packet, size, false);
	}
	free(packet);
	return 0;
}
