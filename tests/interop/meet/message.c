/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One message each way over a connection, or one datagram. */
#include <poll.h>
#include <time.h>

#include "meet.h"

enum { GRH = 40, SLICE_MS = 1 };

static uint8_t byte_of(uint8_t seed, unsigned int i)
{
	return (uint8_t)(seed * 31 + i * 5 + (i >> 8));
}

void post_receive(struct end *end)
{
	struct ibv_sge piece = {.addr = (uintptr_t)(end->memory + MESSAGE_BYTES),
				.length = MESSAGE_BYTES + GRH,
				.lkey = end->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &piece, .num_sge = 1}, *bad;

	check(!ibv_post_recv(end->id->qp, &wr, &bad), "ibv_post_recv");
}

void send_message(struct end *end, uint8_t seed)
{
	struct ibv_sge piece = {
		.addr = (uintptr_t)end->memory, .length = MESSAGE_BYTES, .lkey = end->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	for (unsigned int i = 0; i < MESSAGE_BYTES; i++)
		end->memory[i] = byte_of(seed, i);
	if (end->ah) {
		wr.wr.ud.ah = end->ah;
		wr.wr.ud.remote_qpn = end->remote_qpn;
		wr.wr.ud.remote_qkey = end->remote_qkey;
	}
	check(!ibv_post_send(end->id->qp, &wr, &bad), "ibv_post_send");
}

enum ibv_wc_status completion(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	for (int waited = 0; waited < PATIENCE_MS; waited += SLICE_MS) {
		int found = ibv_poll_cq(cq, 1, &wc);

		check(found >= 0, "ibv_poll_cq");
		if (found)
			return wc.status;
		poll(NULL, 0, SLICE_MS);
	}
	fail("no completion");
}

void check_message(struct end *end, uint8_t seed)
{
	const bool datagram = end->id->qp_type == IBV_QPT_UD;
	const uint8_t *bytes = end->memory + MESSAGE_BYTES + (datagram ? GRH : 0);
	enum ibv_wc_status status = completion(end->id->recv_cq);

	if (status != IBV_WC_SUCCESS)
		fail("the receive: %s", ibv_wc_status_str(status));
	for (unsigned int i = 0; i < MESSAGE_BYTES; i++) {
		if (bytes[i] != byte_of(seed, i))
			fail("byte %u of the message is wrong", i);
	}
}
