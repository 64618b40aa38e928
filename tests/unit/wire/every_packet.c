/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * usage: every_packet FILE: writes a capture with one packet of every opcode, as the library builds
 * them, and prints on standard output what a decoder should find in each.
 */
#include <stdio.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/packet.h"

#define PAYLOAD 61u /* and three bytes of padding */

static FILE *out;

static void put(const void *data, size_t length)
{
	fwrite(data, 1, length, out);
}

/* Ethernet, IPv6, UDP; fields that are not read are 0. */
static void put_frame(const struct vb_flow *flow, const uint8_t *packet, size_t bytes)
{
	uint8_t head[14 + 40 + 8] = {[12] = 0x86, [13] = 0xdd, [14] = 0x60, [20] = 17, [21] = 64};
	uint32_t record[4] = {1, 0, (uint32_t)(sizeof(head) + bytes),
			      (uint32_t)(sizeof(head) + bytes)};

	vb_put16(head + 18, (uint16_t)(8 + bytes));
	memcpy(head + 22, flow->source, 16);
	memcpy(head + 38, flow->destination, 16);
	vb_put16(head + 54, flow->source_port);
	vb_put16(head + 56, flow->destination_port);
	vb_put16(head + 58, (uint16_t)(8 + bytes));
	put(record, sizeof(record));
	put(head, sizeof(head));
	put(packet, bytes);
}

static struct vb_run sample(const struct vb_opcode *o, uint32_t psn)
{
	struct vb_run run;

	memset(&run, 0, sizeof(run));
	run.service = o->service;
	run.op = o->op;
	run.flags = o->flags;
	run.segments = 1;
	run.pkey = 0x8765;
	run.dest_qpn = 0x123456;
	run.psn = psn;
	run.length = !o->payload ? 0 : o->flags & VB_RUN_LAST ? PAYLOAD : 64;
	run.syndrome = VB_AETH_NAK_ACCESS;
	run.msn = 0x0a0b0c;
	run.imm = 0xdeadbeef;
	run.va = 0x0123456789abcdef;
	run.rkey = 0x99887766;
	run.dma_length = 0x7ffffffe;
	run.swap_add = 0x1112131415161718;
	run.compare = 0x2122232425262728;
	run.original = 0x3132333435363738;
	run.qkey = 0x11223344;
	run.src_qpn = 0x654321;
	if (o->flags & VB_RUN_LAST)
		run.flags |= VB_RUN_ACK_REQ | (psn % 2 ? VB_RUN_SOLICITED : 0);
	return run;
}

static void say(const struct vb_opcode *o, uint8_t code, const struct vb_run *run,
		const uint8_t *packet, size_t bytes)
{
	printf("bth.opcode=%u bth.se=%d bth.m=1 bth.padcnt=%u bth.tver=0 bth.p_key=%u bth.destqp=%u bth.a=%d bth.psn=%u",
	       code, !!(run->flags & VB_RUN_SOLICITED), vb_packet_pad(run->length), run->pkey,
	       run->dest_qpn, !!(run->flags & VB_RUN_ACK_REQ), run->psn);
	if (o->headers & VB_HEADER_DETH)
		printf(" deth.q_key=%u deth.srcqp=%u", run->qkey, run->src_qpn);
	if (o->headers & (VB_HEADER_RETH | VB_HEADER_ATOMIC)) /* tshark has one name for both */
		printf(" reth.va=%lu reth.r_key=%u", run->va, run->rkey);
	if (o->headers & VB_HEADER_RETH)
		printf(" reth.dmalen=%u", run->dma_length);
	if (o->headers & VB_HEADER_ATOMIC)
		printf(" atomiceth.swapdt=%lu atomiceth.cmpdt=%lu", run->swap_add, run->compare);
	if (o->headers & VB_HEADER_AETH)
		printf(" aeth.syndrome=%u aeth.msn=%u", run->syndrome, run->msn);
	if (o->headers & VB_HEADER_ATOMIC_ACK)
		printf(" atomicacketh.origremdt=%lu", run->original);
	if (o->headers & VB_HEADER_IMM)
		printf(" immdt=efbeadde");
	if (o->headers & VB_HEADER_INV)
		printf(" ieth=deadbeef");
	printf(" invariant.crc=%u\n", vb_get32(packet + bytes - VB_ICRC_BYTES));
}

static void one(uint8_t code, const struct vb_opcode *o)
{
	const struct vb_flow flow = {.source = {0xfd, [15] = 1},
				     .destination = {0xfd, [15] = 2},
				     .source_port = 0xc001,
				     .destination_port = VB_UDP_PORT};
	static uint8_t packet[VB_PACKET_MOST];
	struct vb_run run = sample(o, 0xabcd00u + code);
	size_t bytes = vb_packet_bytes(&run, 0, 1024);
	size_t header = vb_packet_header(&run, 0, 1024, packet);
	uint32_t crc = vb_icrc_begin(&flow, 0, bytes, packet, header);

	memset(packet + header, 0xff, run.length);
	crc = vb_icrc_add(crc, packet + header, run.length);
	vb_icrc_end(crc, vb_packet_pad(run.length), packet + header + run.length);
	put_frame(&flow, packet, bytes);
	say(o, code, &run, packet, bytes);
}

int main(int argc, char **argv)
{
	const uint32_t head[6] = {0xa1b2c3d4, 0x00040002, 0, 0, 65535, 1};

	if (argc != 2 || !(out = fopen(argv[1], "wb"))) {
		fprintf(stderr, "usage: every_packet FILE\n");
		return 2;
	}
	put(head, sizeof(head));
	for (unsigned int code = 0; code < 256; code++) {
		const struct vb_opcode *o = vb_opcode_find((uint8_t)code);

		if (o && o->service != VB_SERVICE_XRC) /* which tshark does not know */
			one((uint8_t)code, o);
	}
	return fclose(out) ? 1 : 0;
}
