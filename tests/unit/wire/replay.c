/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The captures as a scripted peer: a queue pair takes the place of either end, gets what that end
 * was sent, posts what it posted, and must send the same packets, byte for byte, in the same order
 * of requests and in the same order of answers.
 *
 * What may differ, and why: MigReq (see captures.c); AckReq of READs and ATOMICs, which are
 * answered anyway (IBA 9.7.5.1.2; rdma_rxe sets it, we don't); and what `differences` below lists.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "capture.h"
#include "fuzz/endpoint.h"
#include "fuzz/input.h"
#include "wire/opcode.h"
#include "wire/packet.h"

#define REGION  65536u
#define MOST    256u /* packets of an end in one file */
#define PLENTY  10000u
#define MIGREQ  0x40
#define ACK_REQ 0x80

/* A line of ends.txt. */
struct side {
	uint32_t qpn, psn, rkey;
	uint64_t va;
};

struct row {
	char file[128];
	char service[4];
	uint32_t mtu;
	struct side side[2];
};

struct list {
	uint8_t data[MOST][VB_PACKET_MOST]; /* without ICRC */
	size_t size[MOST];
	unsigned int count;
};

/*
 * Of one end: what it sent in the capture, what the queue pair sent. Requests and answers apart:
 * between them time decides.
 */
struct script {
	const struct row *row;
	const struct capture *capture;
	bool is_b;
	struct endpoint end;
	uint8_t region[REGION];
	uint32_t window_key;
	struct list was[2], is[2]; /* [0] requests, [1] answers */
	unsigned int compared;
	unsigned int faults;
};

static const char *folder;
static struct script s;

enum skip { SKIP_REQUESTS = 1, SKIP_ANSWERS = 2, SKIP_END = 4 };

static const struct {
	const char *file; /* part of its name */
	bool is_b;
	enum skip skip;
	const char *why;
} differences[] = {
	{"loss", false, SKIP_END, "which packets got lost behind the capture is not in it"},
	{"loss", true, SKIP_END, "likewise"},
	{"timeout", true, SKIP_END, "this end is a queue pair that was destroyed"},
	{"ud_mcast", true, SKIP_END, "it only receives, at a number that is no queue pair's"},
	{"rc_rnr.", false, SKIP_REQUESTS,
	 "after an RNR NAK we ask with one packet, and AckReq, before we send the rest"},
};

static unsigned int skipped(void)
{
	for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++) {
		if (strstr(s.row->file, differences[i].file) && differences[i].is_b == s.is_b)
			return differences[i].skip;
	}
	return 0;
}

static bool is_answer(const struct vb_run *run)
{
	return run->op == VB_OP_READ_RESPONSE || run->op == VB_OP_ACK ||
	       run->op == VB_OP_ATOMIC_ACK;
}

static bool takes_receive(const struct vb_run *run)
{
	return run->op == VB_OP_SEND ? run->flags & VB_RUN_FIRST : run->flags & VB_RUN_IMM;
}

static void append(struct list *l, const uint8_t *header, size_t bytes, const uint8_t *payload,
		   uint32_t length)
{
	uint8_t *p = l->data[l->count];

	assert_true(l->count < MOST);
	memcpy(p, header, bytes);
	p[1] &= (uint8_t)~MIGREQ;
	if (p[0] == 0x0c || p[0] == 0x13 || p[0] == 0x14)
		p[8] &= (uint8_t)~ACK_REQ;
	memcpy(p + bytes, payload, length);
	memset(p + bytes + length, 0, vb_packet_pad(length));
	l->size[l->count++] = bytes + length + vb_packet_pad(length);
}

static void watch(struct endpoint *e, const struct vb_run *run, const uint8_t *payload)
{
	uint8_t header[VB_PACKET_HEADER_MOST];

	for (uint32_t i = 0; i < run->segments; i++) {
		size_t bytes = vb_packet_header(run, i, e->qp.mtu, header);

		append(&s.is[is_answer(run)], header, bytes, payload + (size_t)i * e->qp.mtu,
		       vb_packet_payload(run, i, e->qp.mtu));
	}
}

/* Decodes packet i; whose is it? -1: of another queue pair. */
static int decode(unsigned int i, struct vb_run *run, const uint8_t **payload)
{
	const struct capture_packet *p = &s.capture->packet[i];
	bool from_b = p->flow.source[15] == 2;

	assert_int_equal(vb_packet_decode(p->data, p->length, run, payload), VB_REASON_NONE);
	if (run->dest_qpn != s.row->side[!from_b].qpn && run->dest_qpn != VB_QPN_MULTICAST)
		return -1;
	return from_b == s.is_b;
}

/*
 * Goes on from packet i: the next one that this end sent (or, `own` 0, was sent) for which match()
 * holds; -1 if there is none.
 */
static int next(unsigned int i, int own, uint8_t op, struct vb_run *run, const uint8_t **payload)
{
	for (i++; i < s.capture->packets; i++) {
		if (decode(i, run, payload) == own && run->op == op)
			return (int)i;
	}
	return -1;
}

/* The memory that a READ or an ATOMIC is to find, as the captured answer shows it. */
static void prepare_memory(unsigned int i, const struct vb_run *request)
{
	uint64_t offset = request->va - s.row->side[s.is_b].va;
	bool reads = request->op == VB_OP_READ_REQUEST;
	struct vb_run run;
	const uint8_t *payload;
	uint32_t done = 0;
	int at = (int)i;

	do {
		at = next((unsigned int)at, 1, reads ? VB_OP_READ_RESPONSE : VB_OP_ATOMIC_ACK, &run,
			  &payload);
		if (at < 0 || offset + done + run.length > REGION)
			return;
		if (!reads)
			memcpy(s.region + offset, &run.original, sizeof(run.original));
		else
			memcpy(s.region + offset + done, payload, run.length);
		done += run.length;
	} while (reads && !(run.flags & VB_RUN_LAST));
}

/* The program posted a receive in time if the capture holds no RNR NAK for this packet. */
static void prepare_receive(unsigned int i, const struct vb_run *request)
{
	struct vb_run run;
	const uint8_t *payload;
	int at = next(i, 1, VB_OP_ACK, &run, &payload);

	if (at >= 0 && run.psn == request->psn && VB_AETH_CLASS(run.syndrome) == VB_AETH_RNR)
		return;
	endpoint_post_recv(&s.end, strstr(s.row->file, "nak_inv") ? 16 : END_LOCAL);
}

/* A window that the peer writes through was bound for it. */
static void prepare_window(const struct vb_run *request)
{
	struct vb_key *window = &s.end.keys[1];

	if (!strstr(s.row->file, "send_inv") || request->op != VB_OP_WRITE ||
	    request->rkey == s.window_key)
		return;
	*window = s.end.keys[0];
	window->key = s.window_key = request->rkey;
}

static void incoming(unsigned int i, struct vb_run *run, const uint8_t *payload)
{
	if (takes_receive(run))
		prepare_receive(i, run);
	if (run->op == VB_OP_READ_REQUEST || run->op == VB_OP_COMPARE_SWAP ||
	    run->op == VB_OP_FETCH_ADD)
		prepare_memory(i, run);
	prepare_window(run);
	memset(&run->path, 0, sizeof(run->path));
	s.end.runs_left = PLENTY;
	vb_tqp_receive(&s.end.qp, run, payload);
	endpoint_run(&s.end, PLENTY);
}

static uint8_t opcode_of(const struct vb_run *first, uint8_t flags)
{
	switch (first->op) {
	case VB_OP_WRITE:
		return flags & VB_RUN_IMM ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
	case VB_OP_READ_REQUEST:
		return IBV_WR_RDMA_READ;
	case VB_OP_COMPARE_SWAP:
		return IBV_WR_ATOMIC_CMP_AND_SWP;
	case VB_OP_FETCH_ADD:
		return IBV_WR_ATOMIC_FETCH_AND_ADD;
	default:
		return flags & VB_RUN_INV   ? IBV_WR_SEND_WITH_INV
		       : flags & VB_RUN_IMM ? IBV_WR_SEND_WITH_IMM
					    : IBV_WR_SEND;
	}
}

/*
 * The work request that made the message which begins with packet i; its data goes to the
 * endpoint's memory.
 */
static void post(unsigned int i, const struct vb_run *first, const uint8_t *payload)
{
	struct vb_tqp *qp = &s.end.qp;
	struct vb_send_wqe *w = vb_tqp_wqe(qp, qp->sq_posted);
	struct vb_run run = *first;
	uint32_t length = 0;
	int at = (int)i;

	assert_true(vb_tqp_outstanding(qp) < END_SQ);
	for (;;) {
		memcpy(s.end.local + length, payload, run.length);
		length += run.length;
		if (run.flags & VB_RUN_LAST)
			break;
		at = next((unsigned int)at, 1, first->op, &run, &payload);
		assert_true(at >= 0);
	}
	memset(w, 0, sizeof(*w));
	w->wr_id = qp->sq_posted;
	w->opcode = opcode_of(first, run.flags);
	w->length = first->op == VB_OP_READ_REQUEST ? first->dma_length : length;
	if (first->op == VB_OP_FETCH_ADD || first->op == VB_OP_COMPARE_SWAP)
		w->length = 8;
	w->num_sge = 1;
	w->imm = run.imm;
	w->solicited = run.flags & VB_RUN_SOLICITED ? 1 : 0;
	w->remote_addr = first->va;
	w->rkey = first->rkey;
	w->swap = first->swap_add;
	w->compare_add = first->op == VB_OP_FETCH_ADD ? first->swap_add : first->compare;
	w->remote_qpn = first->dest_qpn;
	w->remote_qkey = first->qkey;
	qp->sq_posted++;
	endpoint_run(&s.end, PLENTY);
}

static void outgoing(unsigned int i, const struct vb_run *run, const uint8_t *payload)
{
	const struct capture_packet *p = &s.capture->packet[i];
	struct list *was = &s.was[is_answer(run)];

	/*
	 * One complaint at a time (IBA 9.7.5.2.6): rdma_rxe adds a sequence NAK to the RNR NAK for
	 * the packets behind.
	 */
	if (strstr(s.row->file, "rc_rnr.") && run->syndrome == VB_AETH_NAK_SEQUENCE)
		return;
	append(was, p->data, (size_t)(payload - p->data), payload, run->length);
	/*
	 * A message longer than its receive is an invalid request (IBA 9.9.3), for rdma_rxe an
	 * operational error.
	 */
	if (strstr(s.row->file, "nak_inv") && run->syndrome == VB_AETH_NAK_OPERATION)
		was->data[was->count - 1][VB_BTH_BYTES] = VB_AETH_NAK_INVALID;
	if (is_answer(run) || s.is[0].count >= was->count)
		return;
	if (run->flags & VB_RUN_FIRST && run->psn == vb_tqp_sq_psn(&s.end.qp)) {
		post(i, run, payload);
		return;
	}
	/*
	 * Sent again: the timer expired. Its first turn may only find that something was sent since
	 * it was armed.
	 */
	for (int turn = 0; turn < 2 && s.is[0].count < was->count; turn++) {
		vb_tqp_timer(&s.end.qp);
		endpoint_run(&s.end, PLENTY);
	}
}

static void start(void)
{
	const struct side *own = &s.row->side[s.is_b];
	const struct side *peer = &s.row->side[!s.is_b];
	uint8_t head[INPUT_HEAD] = {
		[HEAD_SERVICE] = s.row->service[0] == 'R'   ? 0
				 : s.row->service[1] == 'C' ? 1
							    : 2,
		[HEAD_MTU] = (uint8_t)(5 * 15 + __builtin_ctz(s.row->mtu) - 8),
		[HEAD_RD_ATOMIC] = 16,
		[HEAD_DEST_RD_ATOMIC] = 16,
		[HEAD_RETRY] = 7 | 7 << 3,
	};
	struct vb_tqp *qp = &s.end.qp;

	memset(s.region, 0, sizeof(s.region));
	s.was[0].count = s.was[1].count = s.is[0].count = s.is[1].count = 0;
	s.window_key = 0;
	endpoint_start(&s.end, head);
	s.end.watch = watch;
	s.end.keys[0].key = own->rkey;
	s.end.keys[0].start = own->va;
	s.end.keys[0].length = REGION;
	s.end.keys[0].base = (uintptr_t)s.region;
	qp->qpn = own->qpn;
	qp->dest_qpn = peer->qpn;
	if (strstr(s.row->file, "rc_rnr."))
		qp->min_rnr_timer = 20;
	if (strstr(s.row->file, "rnr_exc")) {
		qp->min_rnr_timer = 14;
		qp->rnr_retry = 2;
	}
	if (strstr(s.row->file, "timeout"))
		qp->retry_cnt = 2;
	vb_tqp_start_responder(qp, peer->psn);
	vb_tqp_start_requester(qp, own->psn);
}

static void show(const char *what, const struct list *l, unsigned int i)
{
	fprintf(stderr, "%s %u:", what, i);
	for (size_t k = 0; i < l->count && k < l->size[i] && k < 48; k++)
		fprintf(stderr, " %02x", l->data[i][k]);
	fprintf(stderr, "\n");
}

static void compare(unsigned int kind)
{
	const struct list *was = &s.was[kind];
	const struct list *is = &s.is[kind];
	unsigned int most = was->count > is->count ? was->count : is->count;

	for (unsigned int i = 0; i < most; i++) {
		if (i < was->count && i < is->count && was->size[i] == is->size[i] &&
		    memcmp(was->data[i], is->data[i], was->size[i]) == 0)
			continue;
		fprintf(stderr, "%s, end %c, %s\n", s.row->file, 'A' + s.is_b,
			kind ? "answers" : "requests");
		show("captured", was, i);
		show("ours    ", is, i);
		s.faults++;
		break;
	}
	s.compared += most;
}

static void play(void)
{
	unsigned int skip = skipped();

	if (skip & SKIP_END)
		return;
	start();
	for (unsigned int i = 0; i < s.capture->packets; i++) {
		const uint8_t *payload;
		struct vb_run run;
		int own = decode(i, &run, &payload);

		if (own > 0)
			outgoing(i, &run, payload);
		else if (own == 0)
			incoming(i, &run, payload);
	}
	if (!(skip & SKIP_REQUESTS))
		compare(0);
	if (!(skip & SKIP_ANSWERS))
		compare(1);
	endpoint_stop(&s.end);
}

static bool read_row(FILE *f, struct row *row)
{
	char line[256];
	struct side *a = &row->side[0];
	struct side *b = &row->side[1];

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%127s %3s %u %x %x %x %lx %x %x %x %lx", row->file, row->service,
			   &row->mtu, &a->qpn, &a->psn, &a->rkey, &a->va, &b->qpn, &b->psn,
			   &b->rkey, &b->va) == 11)
			return true;
	}
	return false;
}

static void every_end(void **state)
{
	char path[4096];
	struct row row;
	unsigned int rows = 0;
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/ends.txt", folder);
	f = fopen(path, "r");
	assert_non_null(f);
	while (read_row(f, &row)) {
		struct capture c;

		snprintf(path, sizeof(path), "%s/%s", folder, row.file);
		assert_int_equal(capture_load(&c, path), 0);
		s.row = &row;
		s.capture = &c;
		for (s.is_b = false;; s.is_b = true) {
			play();
			if (s.is_b)
				break;
		}
		capture_free(&c);
		rows++;
	}
	fclose(f);
	assert_int_equal(rows, 68);
	assert_int_equal(s.faults, 0);
	fprintf(stderr, "%u packets compared\n", s.compared);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_end)};

	if (argc != 2) {
		fprintf(stderr, "usage: replay FOLDER\n");
		return 2;
	}
	folder = argv[1];
	return cmocka_run_group_tests_name("wire-replay", tests, NULL, NULL);
}
