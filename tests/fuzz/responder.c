/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: a queue pair, fed with sequences of packets through the decoder, while it works on
 * requests of its own.
 */
#include <string.h>

#include "endpoint.h"
#include "input.h"
#include "transport/psn.h"
#include "wire/packet.h"

#define RUNS_MOST 4096u /* more than one step can cause */

static bool is_answer(const struct vb_run *run)
{
	return run->op == VB_OP_READ_RESPONSE || run->op == VB_OP_ACK ||
	       run->op == VB_OP_ATOMIC_ACK;
}

static void deliver(struct endpoint *e, uint8_t control, uint8_t arg, const uint8_t *data,
		    uint32_t length)
{
	uint8_t *packet = malloc(length);
	const uint8_t *payload;
	struct vb_run run;

	DEMAND(packet);
	memcpy(packet, data, length);
	if (vb_packet_decode(packet, length, &run, &payload) == VB_REASON_NONE) {
		uint32_t next = is_answer(&run) ? e->qp.req.una : e->qp.resp.epsn;

		if (e->runs) /* as a link without packets delivers it */
			run.segments = (uint16_t)vb_psn_count(run.length, e->qp.mtu);
		if (control & DO_PSN)
			run.psn = vb_psn_add(next, (uint32_t)(int8_t)arg);
		if (control & DO_KEY) {
			run.rkey = END_KEY;
			run.va = END_IOVA + (run.va & 0x1fff);
		}
		/*
		 * No capture has XRC, which is RC with one header more: mostly a queue that exists.
		 */
		if (e->qp.service == VB_SERVICE_XRC && run.service == VB_SERVICE_RC) {
			run.service = VB_SERVICE_XRC;
			run.srqn = (control & DO_KEY ? 2u : arg);
		}
		memset(&run.path, 0, sizeof(run.path));
		vb_tqp_receive(&e->qp, &run, payload);
	}
	free(packet);
}

static void step(struct endpoint *e, uint8_t control, uint8_t arg)
{
	if (control & DO_EVENT)
		endpoint_event(e, arg);
	if (control & DO_RECV)
		endpoint_post_recv(e, arg * 32u);
	if (control & DO_SEND)
		endpoint_post_send(e, arg);
	if (control & DO_TIMER)
		vb_tqp_timer(&e->qp);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct endpoint e;
	size_t at = INPUT_HEAD;

	if (size < INPUT_HEAD || size > INPUT_MOST)
		return 0;
	endpoint_start(&e, data);
	endpoint_run(&e, RUNS_MOST);
	while (size - at >= INPUT_RECORD) {
		uint8_t control = data[at];
		uint8_t arg = data[at + 1];
		uint32_t length = data[at + 2] | (uint32_t)data[at + 3] << 8;

		at += INPUT_RECORD;
		if (length > size - at)
			length = (uint32_t)(size - at);
		step(&e, control, arg);
		/* A receive may cause an answer that is owed to be sent, if there is room. */
		e.runs_left = control & DO_FULL ? arg % 4 : RUNS_MOST;
		if (length)
			deliver(&e, control, arg, data + at, length);
		if (control & DO_RUN)
			endpoint_run(&e, control & DO_FULL ? arg % 4 : RUNS_MOST);
		at += length;
	}
	e.runs_left = RUNS_MOST;
	endpoint_stop(&e);
	return 0;
}
