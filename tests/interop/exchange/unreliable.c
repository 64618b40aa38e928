/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * UC and UD: messages that carry their number as immediate, since on a wire that loses packets some
 * do not arrive. What arrives has to be right; where nothing is lost everything has to arrive.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "exchange.h"

enum {
	SLOT = 68 << 10,
	MESSAGES = 48,
	BATCH = 8,
	BATCH_BYTES = 64 << 10,
	QKEY_WRONG = 0x7654321,
	WRONG = 9
};

struct stream {
	struct exchange *x;
	struct end *e;
	struct ibv_ah *ah; /* UD */
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t seed;
	uint32_t lengths[MESSAGES];
	unsigned int got;
};

static bool is_ud(const struct stream *s)
{
	return s->ah != NULL;
}

static void choose_lengths(struct stream *s)
{
	const uint32_t mtu = s->x->mtu;
	const uint32_t edges[] = {0,       1,           2,           3,       4,   5,
				  7,       8,           9,           31,      63,  65,
				  200,     255,         mtu - 2,     mtu - 1, mtu, mtu + 1,
				  2 * mtu, 3 * mtu - 1, 5 * mtu + 3, 65536};
	const unsigned int count = sizeof(edges) / sizeof(edges[0]);
	uint32_t random = s->seed;

	for (unsigned int i = 0; i < MESSAGES; i++) {
		s->lengths[i] = i < count ? edges[i] : random_next(&random) % (4 * mtu);
		if (is_ud(s) && s->lengths[i] > mtu)
			s->lengths[i] = random_next(&random) % (mtu + 1);
	}
}

static void post_receives(struct stream *s)
{
	uint8_t *sink = area_of(s->x, AREA_SINK);

	memset(sink, 0xa5, MESSAGES * SLOT);
	for (unsigned int i = 0; i < MESSAGES; i++) {
		struct ibv_sge sge = {(uintptr_t)sink + i * SLOT, SLOT, s->x->mr->lkey};
		struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

		if (s->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
			wr.num_sge = 0;
		must(ibv_post_recv(s->e->qp, &wr, &bad), "ibv_post_recv");
	}
}

static void post(struct stream *s, unsigned int i, uint32_t qkey)
{
	uint8_t *source = area_of(s->x, AREA_SOURCE) + i * SLOT + i % 8;
	struct ibv_sge sge = {(uintptr_t)source, s->lengths[i], s->x->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = i,
				 .sg_list = &sge,
				 .num_sge = s->lengths[i] ? 1 : 0,
				 .opcode = s->opcode,
				 .imm_data = htonl(i)},
			   *bad;

	pattern_fill(source, s->lengths[i], s->seed, i);
	if (is_ud(s)) {
		wr.wr.ud.ah = s->ah;
		wr.wr.ud.remote_qpn = s->e->peer.qpn;
		wr.wr.ud.remote_qkey = qkey;
	} else {
		wr.wr.rdma.remote_addr = peer_area(s->e, AREA_SINK) + i * SLOT;
		wr.wr.rdma.rkey = s->e->peer.rkey;
	}
	must(ibv_post_send(s->e->qp, &wr, &bad), "ibv_post_send");
}

/*
 * The 40 bytes before a datagram: the addresses at the place that their family gives them (IBA
 * A17.4.5.1).
 */
static void check_grh(const struct stream *s, const struct ibv_wc *wc, const uint8_t *grh)
{
	bool ipv4 = s->x->gid.raw[10] == 0xff && s->x->gid.raw[11] == 0xff;
	const uint8_t *from = grh + (ipv4 ? 32 : 8), *to = grh + (ipv4 ? 36 : 24);
	unsigned int skip = ipv4 ? 12 : 0, size = ipv4 ? 4 : 16;

	if (!(wc->wc_flags & IBV_WC_GRH))
		fail("%s: no IBV_WC_GRH", s->name);
	if ((ipv4 ? grh[20] : grh[0]) >> 4 != (ipv4 ? 4 : 6))
		fail("%s: no IP version where it belongs", s->name);
	if (memcmp(from, s->e->peer.gid.raw + skip, size))
		fail("%s: the header's source is not the sender", s->name);
	if (memcmp(to, s->x->gid.raw + skip, size))
		fail("%s: the header's destination is not this side", s->name);
	if (wc->src_qp != s->e->peer.qpn)
		fail("%s: src_qp 0x%x instead of 0x%x", s->name, wc->src_qp, s->e->peer.qpn);
}

static void check_arrival(struct stream *s, const struct ibv_wc *wc)
{
	uint32_t i = ntohl(wc->imm_data), head = is_ud(s) ? GRH_BYTES : 0, good;
	const uint8_t *slot = area_of(s->x, AREA_SINK) + wc->wr_id * SLOT;

	if (wc->status || !(wc->opcode & IBV_WC_RECV))
		fail("%s: %s, opcode %d", s->name, ibv_wc_status_str(wc->status), wc->opcode);
	if (!(wc->wc_flags & IBV_WC_WITH_IMM) || i >= MESSAGES)
		fail("%s: wc_flags 0x%x, immediate 0x%x", s->name, wc->wc_flags, i);
	if (wc->byte_len != s->lengths[i] + head)
		fail("%s: message %u: byte_len %u instead of %u", s->name, i, wc->byte_len,
		     s->lengths[i] + head);
	if (is_ud(s))
		check_grh(s, wc, slot);
	if (s->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		slot = area_of(s->x, AREA_SINK) + (size_t)i * SLOT;
	good = pattern_check(slot + head, s->lengths[i], s->seed, i);
	if (good != s->lengths[i])
		fail("%s: message %u of %u bytes: byte %u is wrong", s->name, i, s->lengths[i],
		     good);
	/*
	 * A UC message that lost its end leaves its beginning in the receive that the next one
	 * gets.
	 */
	if (!(s->x->lossy && !is_ud(s)) && slot[head + s->lengths[i]] != 0xa5)
		fail("%s: message %u: bytes behind it were written", s->name, i);
	s->got++;
}

static unsigned int batch_end(const struct stream *s, unsigned int from)
{
	uint32_t bytes = 0;
	unsigned int i = from;

	while (i < MESSAGES && i < from + BATCH && (i == from || bytes < BATCH_BYTES))
		bytes += s->lengths[i++];
	return i;
}

static void run_sender(struct stream *s)
{
	for (unsigned int from = 0, to; from < MESSAGES; from = to) {
		to = batch_end(s, from);
		for (unsigned int i = from; i < to; i++)
			post(s, i, UD_QKEY);
		for (unsigned int i = from; i < to; i++) {
			struct ibv_wc wc = completion(s->x, s->name);

			if (wc.status || wc.wr_id != i)
				fail("%s: request %u: %s", s->name, (unsigned int)wc.wr_id,
				     ibv_wc_status_str(wc.status));
		}
		barrier(s->x, "batch sent");
		barrier(s->x, "batch received");
	}
}

/*
 * How many have to arrive. A UC queue pair of rdma_rxe that misses the last packet of a message
 * takes no message from then on; those of one packet come first, and most of them arrive.
 */
static unsigned int least(const struct stream *s)
{
	if (!s->x->lossy)
		return MESSAGES;
	return is_ud(s) || strncmp(s->x->device, "rxe", 3) ? MESSAGES / 2 : 10;
}

static void run_receiver(struct stream *s)
{
	for (unsigned int from = 0, to; from < MESSAGES; from = to) {
		unsigned int before = s->got;
		struct ibv_wc wc;

		to = batch_end(s, from);
		barrier(s->x, "batch sent");
		while (s->got - before < to - from &&
		       completion_within(s->x, &wc, s->x->lossy ? 0.3 : 5))
			check_arrival(s, &wc);
		barrier(s->x, "batch received");
	}
	if (s->got < least(s))
		fail("%s: %u of %d messages arrived", s->name, s->got, MESSAGES);
}

static void run(struct exchange *x, struct end *e, struct ibv_ah *ah, const char *name,
		enum ibv_wr_opcode opcode)
{
	unsigned int got = MESSAGES;

	for (int turn = 0; turn < 2; turn++) {
		struct stream s = {.x = x,
				   .e = e,
				   .ah = ah,
				   .name = name,
				   .opcode = opcode,
				   .seed = x->seed + (uint32_t)turn};
		bool sender = (turn == 0) == (x->server != NULL);

		choose_lengths(&s);
		if (!sender)
			post_receives(&s);
		barrier(x, name);
		if (sender)
			run_sender(&s);
		else
			run_receiver(&s);
		barrier(x, name);
		if (!sender)
			got = s.got;
	}
	say("ok %s: %u of %d messages came here", name, got, MESSAGES);
}

/* Fresh queue pairs each time: receives of messages that were lost are still posted. */
void test_uc(struct exchange *x)
{
	struct end e = end_connect(x, &uc_profile);

	run(x, &e, NULL, "uc send", IBV_WR_SEND_WITH_IMM);
	end_close(x, &e);
	e = end_connect(x, &uc_profile);
	run(x, &e, NULL, "uc write", IBV_WR_RDMA_WRITE_WITH_IMM);
	end_close(x, &e);
}

/* The client asks, the server answers to where the completion says the question came from. */
static void answer_from_completion(struct exchange *x, struct end *e, struct ibv_ah *ah)
{
	struct stream s = {.x = x,
			   .e = e,
			   .ah = ah,
			   .name = "ud answer",
			   .opcode = IBV_WR_SEND_WITH_IMM,
			   .seed = x->seed + 7};
	bool client = x->server != NULL;
	struct ibv_wc wc, arrived = {0};
	unsigned int sent = 0;

	choose_lengths(&s);
	post_receives(&s);
	barrier(x, s.name);
	if (client) {
		post(&s, WRONG, QKEY_WRONG); /* never arrives */
		post(&s, 12, UD_QKEY);
	}
	/*
	 * The client's two sends complete, and to each side one datagram comes, unless it gets
	 * lost.
	 */
	while (sent + s.got < (client ? 3 : 1) && completion_within(x, &wc, x->lossy ? 1 : 5)) {
		if (!(wc.opcode & IBV_WC_RECV) && !wc.status) {
			sent++;
			continue;
		}
		check_arrival(&s, &wc);
		arrived = wc;
	}
	if (sent < (client ? 2 : 0) || (!s.got && !x->lossy))
		fail("%s: %u sent, %u came", s.name, sent, s.got);
	if (!client && s.got) {
		s.ah = ibv_create_ah_from_wc(
			x->pd, &arrived,
			(struct ibv_grh *)(area_of(x, AREA_SINK) + arrived.wr_id * SLOT), 1);
		if (!s.ah)
			fail("ibv_create_ah_from_wc: %s", strerror(errno));
		post(&s, 13, UD_QKEY);
		(void)completion(x, s.name);
	}
	barrier(x, s.name);
	if ((s.got && ntohl(arrived.imm_data) == WRONG) ||
	    (completion_within(x, &wc, 0.2) && ntohl(wc.imm_data) == WRONG))
		fail("%s: the datagram with the wrong Q_Key was accepted", s.name);
	if (s.ah != ah)
		must(ibv_destroy_ah(s.ah), "ibv_destroy_ah");
	say("ok %s: with the address of the completion; a wrong Q_Key is dropped", s.name);
}

void test_ud(struct exchange *x)
{
	struct end e = end_connect(x, &ud_profile);
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_ah *ah;

	attr.grh.dgid = e.peer.gid;
	attr.grh.sgid_index = (uint8_t)x->gid_index;
	attr.grh.hop_limit = 64;
	ah = ibv_create_ah(x->pd, &attr);
	if (!ah)
		fail("ibv_create_ah: %s", strerror(errno));
	run(x, &e, ah, "ud send", IBV_WR_SEND_WITH_IMM);
	end_close(x, &e);
	e = end_connect(x, &ud_profile);
	answer_from_completion(x, &e, ah);
	must(ibv_destroy_ah(ah), "ibv_destroy_ah");
	end_close(x, &e);
}
