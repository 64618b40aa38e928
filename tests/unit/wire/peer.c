/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A peer that sends any packet it likes. */
#include "peer.h"

#include <string.h>

#include "fuzz/input.h"
#include "wire/packet.h"

#define PLENTY 1000u /* of room in the link */

void peer_start(struct endpoint *e, uint8_t service, uint8_t receives)
{
	const uint8_t head[INPUT_HEAD] = {
		[HEAD_SERVICE] = service,
		[HEAD_MTU] = 2,
		[HEAD_RD_ATOMIC] = 2,
		[HEAD_DEST_RD_ATOMIC] = 2,
		[HEAD_RETRY] = 7 | 7 << 3,
		[HEAD_RECEIVES] = receives,
		[HEAD_RQ_PSN] = PEER_PSN >> 16,
		[HEAD_RQ_PSN + 1] = PEER_PSN >> 8 & 0xff,
		[HEAD_RQ_PSN + 2] = PEER_PSN & 0xff,
		[HEAD_SQ_PSN + 1] = OWN_PSN >> 8,
	};

	endpoint_start(e, head);
	memset(e->region, 0x5a, END_REGION);
	endpoint_run(e, PLENTY);
}

struct vb_run peer_packet(uint8_t service, uint8_t op, uint8_t flags, uint32_t psn, uint32_t length)
{
	struct vb_run run;

	memset(&run, 0, sizeof(run));
	run.service = service;
	run.op = op;
	run.flags = flags | VB_RUN_ACK_REQ;
	run.segments = 1;
	run.pkey = 0xffff;
	run.dest_qpn = END_QPN;
	run.psn = (PEER_PSN + psn) & 0xffffff;
	run.length = length;
	run.rkey = END_KEY;
	run.va = END_IOVA;
	run.dma_length = length;
	run.qkey = 0x11111111;
	run.src_qpn = 0x222;
	return run;
}

enum vb_reason peer_send(struct endpoint *e, const struct vb_run *run)
{
	size_t bytes = vb_packet_bytes(run, 0, VB_MTU_MOST);
	uint8_t *packet = malloc(bytes);
	const uint8_t *payload;
	struct vb_run got;
	enum vb_reason reason;

	DEMAND(packet && bytes);
	memset(packet, 0xc3, bytes);
	vb_packet_header(run, 0, VB_MTU_MOST, packet);
	reason = vb_packet_decode(packet, bytes, &got, &payload);
	if (!reason) {
		memset(&got.path, 0, sizeof(got.path));
		e->said = VB_REASON_NONE;
		e->runs_left = PLENTY;
		vb_tqp_receive(&e->qp, &got, payload);
	}
	free(packet);
	endpoint_run(e, PLENTY);
	return reason;
}

bool peer_untouched(const struct endpoint *e, uint32_t from, uint32_t length)
{
	for (uint32_t i = 0; i < END_REGION; i++) {
		bool inside = i >= from && i - from < length;

		if (!inside && e->region[i] != 0x5a)
			return false;
	}
	return true;
}
