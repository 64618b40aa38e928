/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packet headers, read and written (IBA 9.2 to 9.6). */
#include "wire/packet.h"

#include <stdbool.h>

#include "wire/bytes.h"
#include "wire/opcode.h"

/* The BTH, byte by byte. */
enum {
	AT_OPCODE = 0,
	AT_FLAGS = 1,
	AT_PKEY = 2,
	AT_QPN = 4, /* FECN, BECN and six reserved bits lie in front */
	AT_PSN = 8, /* AckReq and seven reserved bits lie in front */
};

/* The byte at AT_FLAGS. */
#define BTH_SOLICITED 0x80
#define BTH_MIGREQ    0x40
#define BTH_PAD(b)    ((b) >> 4 & 3u)
#define BTH_VERSION   0x0f

#define BTH_ACK_REQ   0x80000000u /* of the word at AT_PSN */
#define MASK_24       0xffffffu

#define QPN_SMI       0u
#define QPN_GSI       1u

/* Whether a packet of the service may name this destination (IBA 9.6.1). */
static enum vb_reason judge_qpn(uint32_t qpn, uint8_t service)
{
	if (qpn == QPN_SMI)
		return VB_REASON_DROP_QPN;
	if (service == VB_SERVICE_UD)
		return VB_REASON_NONE;
	if (qpn == QPN_GSI)
		return VB_REASON_DROP_TYPE;
	return qpn == VB_QPN_MULTICAST ? VB_REASON_DROP_QPN : VB_REASON_NONE;
}

static const uint8_t *get_request(const uint8_t *p, uint16_t headers, struct vb_run *run)
{
	if (headers & VB_HEADER_DETH) {
		run->qkey = vb_get32(p);
		run->src_qpn = vb_get32(p + 4) & MASK_24;
		p += VB_DETH_BYTES;
	}
	if (headers & VB_HEADER_XRCETH) {
		run->srqn = vb_get32(p) & MASK_24;
		p += VB_XRCETH_BYTES;
	}
	if (headers & VB_HEADER_FETH) {
		run->flush = vb_get32(p);
		p += VB_FETH_BYTES;
	}
	if (headers & VB_HEADER_RETH) {
		run->va = vb_get64(p);
		run->rkey = vb_get32(p + 8);
		run->dma_length = vb_get32(p + 12);
		p += VB_RETH_BYTES;
	}
	if (headers & VB_HEADER_ATOMIC) {
		run->va = vb_get64(p);
		run->rkey = vb_get32(p + 8);
		run->swap_add = vb_get64(p + 12);
		run->compare = vb_get64(p + 20);
		p += VB_ATOMIC_BYTES;
	}
	return p;
}

static const uint8_t *get_headers(const uint8_t *p, uint16_t headers, struct vb_run *run)
{
	p = get_request(p, headers, run);
	if (headers & VB_HEADER_AETH) {
		run->syndrome = *p;
		run->msn = vb_get32(p) & MASK_24;
		p += VB_AETH_BYTES;
	}
	if (headers & VB_HEADER_ATOMIC_ACK) {
		run->original = vb_get64(p);
		p += VB_ATOMIC_ACK_BYTES;
	}
	if (headers & VB_HEADER_IMM) /* the program's bytes, not a number */
		memcpy(&run->imm, p, sizeof(run->imm));
	else if (headers & VB_HEADER_INV)
		run->imm = vb_get32(p);
	else
		return p;
	return p + VB_IMM_BYTES;
}

/* Payload and padding lie between the headers and the ICRC. True if their lengths are allowed. */
static bool body_fits(const struct vb_opcode *o, size_t body, uint32_t pad)
{
	if (!o->payload)
		return !body && !pad;
	if (body < pad || body - pad > VB_MTU_MOST)
		return false;
	/* Only the last packet of a message may have a length that needs padding. */
	return !pad || o->flags & VB_RUN_LAST;
}

enum vb_reason vb_packet_decode(const uint8_t *packet, size_t length, struct vb_run *run,
				const uint8_t **payload)
{
	const struct vb_opcode *o;
	enum vb_reason reason;
	uint32_t pad;
	uint32_t word;

	/*
	 * Headers consist of words and payload is padded to words (IBA 9.2), so a packet is a
	 * number of words.
	 */
	if (length < VB_PACKET_LEAST || length % 4)
		return VB_REASON_DROP_MALFORMED;
	if (packet[AT_FLAGS] & BTH_VERSION)
		return VB_REASON_DROP_VERSION;
	o = vb_opcode_find(packet[AT_OPCODE]);
	if (!o)
		return packet[AT_OPCODE] == VB_OPCODE_CNP ? VB_REASON_DROP_CONGESTION
							  : VB_REASON_DROP_OPCODE;
	pad = BTH_PAD(packet[AT_FLAGS]);
	if (length < o->bytes + VB_ICRC_BYTES ||
	    !body_fits(o, length - o->bytes - VB_ICRC_BYTES, pad))
		return VB_REASON_DROP_MALFORMED;
	word = vb_get32(packet + AT_QPN) & MASK_24;
	reason = judge_qpn(word, o->service);
	if (reason)
		return reason;
	memset(run, 0, offsetof(struct vb_run, path));
	run->service = o->service;
	run->op = o->op;
	run->flags = o->flags;
	run->segments = 1;
	run->pkey = vb_get16(packet + AT_PKEY);
	run->dest_qpn = word;
	word = vb_get32(packet + AT_PSN);
	run->psn = word & MASK_24;
	if (word & BTH_ACK_REQ)
		run->flags |= VB_RUN_ACK_REQ;
	if (packet[AT_FLAGS] & BTH_SOLICITED)
		run->flags |= VB_RUN_SOLICITED;
	run->length = (uint32_t)(length - o->bytes - VB_ICRC_BYTES) - pad;
	*payload = get_headers(packet + VB_BTH_BYTES, o->headers, run);
	return VB_REASON_NONE;
}

static uint8_t *put_request(uint8_t *p, uint16_t headers, const struct vb_run *run)
{
	if (headers & VB_HEADER_DETH) {
		vb_put32(p, run->qkey);
		vb_put32(p + 4, run->src_qpn & MASK_24);
		p += VB_DETH_BYTES;
	}
	if (headers & VB_HEADER_XRCETH) {
		vb_put32(p, run->srqn & MASK_24);
		p += VB_XRCETH_BYTES;
	}
	if (headers & VB_HEADER_FETH) {
		vb_put32(p, run->flush);
		p += VB_FETH_BYTES;
	}
	if (headers & VB_HEADER_RETH) {
		vb_put64(p, run->va);
		vb_put32(p + 8, run->rkey);
		vb_put32(p + 12, run->dma_length);
		p += VB_RETH_BYTES;
	}
	if (headers & VB_HEADER_ATOMIC) {
		vb_put64(p, run->va);
		vb_put32(p + 8, run->rkey);
		vb_put64(p + 12, run->swap_add);
		vb_put64(p + 20, run->compare);
		p += VB_ATOMIC_BYTES;
	}
	return p;
}

static void put_headers(uint8_t *p, uint16_t headers, const struct vb_run *run)
{
	p = put_request(p, headers, run);
	if (headers & VB_HEADER_AETH) {
		vb_put32(p, (uint32_t)run->syndrome << 24 | (run->msn & MASK_24));
		p += VB_AETH_BYTES;
	}
	if (headers & VB_HEADER_ATOMIC_ACK) {
		vb_put64(p, run->original);
		p += VB_ATOMIC_ACK_BYTES;
	}
	if (headers & VB_HEADER_IMM)
		memcpy(p, &run->imm, sizeof(run->imm));
	else if (headers & VB_HEADER_INV)
		vb_put32(p, run->imm);
}

/* The flags of packet `segment`. A run's flags describe its first and its last packet. */
static uint8_t packet_flags(const struct vb_run *run, uint32_t segment)
{
	uint8_t flags = run->flags;

	if (segment)
		flags &= (uint8_t)~VB_RUN_FIRST;
	return segment + 1u == run->segments ? flags : flags & VB_RUN_FIRST;
}

static const struct vb_opcode *packet_opcode(const struct vb_run *run, uint8_t flags, uint8_t *code)
{
	int found = vb_opcode_of(run->service, run->op, flags);

	if (found < 0)
		return NULL;
	*code = (uint8_t)found;
	return vb_opcode_find(*code);
}

size_t vb_packet_header(const struct vb_run *run, uint32_t segment, uint32_t mtu, uint8_t *header)
{
	uint8_t flags = packet_flags(run, segment);
	const struct vb_opcode *o = packet_opcode(run, flags, &header[AT_OPCODE]);
	uint32_t pad = vb_packet_pad(vb_packet_payload(run, segment, mtu));

	if (!o)
		return 0;
	header[AT_FLAGS] =
		(uint8_t)((flags & VB_RUN_SOLICITED ? BTH_SOLICITED : 0) | BTH_MIGREQ | pad << 4);
	vb_put16(header + AT_PKEY, run->pkey);
	vb_put32(header + AT_QPN, run->dest_qpn & MASK_24);
	vb_put32(header + AT_PSN,
		 ((run->psn + segment) & MASK_24) | (flags & VB_RUN_ACK_REQ ? BTH_ACK_REQ : 0));
	put_headers(header + VB_BTH_BYTES, o->headers, run);
	return o->bytes;
}

size_t vb_packet_bytes(const struct vb_run *run, uint32_t segment, uint32_t mtu)
{
	uint8_t code;
	const struct vb_opcode *o = packet_opcode(run, packet_flags(run, segment), &code);
	uint32_t payload = vb_packet_payload(run, segment, mtu);

	return o ? o->bytes + payload + vb_packet_pad(payload) + VB_ICRC_BYTES : 0;
}

uint32_t vb_packet_burst(const struct vb_run *run, uint32_t segment, uint32_t mtu, uint32_t most,
			 size_t *size)
{
	uint32_t rest = run->segments - segment;
	uint32_t end = segment + (rest < most ? rest : most);
	uint32_t next = segment + 1;

	*size = vb_packet_bytes(run, segment, mtu);
	while (next < end) {
		size_t bytes = vb_packet_bytes(run, next, mtu);

		if (bytes > *size)
			break;
		next++;
		if (bytes < *size)
			break;
	}
	return next - segment;
}
