/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Captures as inputs. */
#include "seeds.h"

#include <dirent.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "capture.h"
#include "cm_seeds.h"
#include "input.h"
#include "wire/packet.h"

static void each_packet(const struct capture *c, const char *file, seed_use_fn *use)
{
	char name[300];

	for (unsigned int i = 0; i < c->packets; i++) {
		snprintf(name, sizeof(name), "%s-%u", file, c->packet[i].frame);
		use(name, c->packet[i].data, c->packet[i].length);
	}
}

struct conversation {
	uint8_t data[INPUT_MOST];
	size_t size;
	const uint8_t *own; /* address of the end that the input is for */
	bool begun;
};

static bool is_answer(const struct vb_run *run)
{
	return run->op == VB_OP_READ_RESPONSE || run->op == VB_OP_ACK ||
	       run->op == VB_OP_ATOMIC_ACK;
}

static void put_psn(uint8_t *at, uint32_t psn)
{
	at[0] = (uint8_t)(psn >> 16);
	at[1] = (uint8_t)(psn >> 8);
	at[2] = (uint8_t)psn;
}

static void record(struct conversation *v, uint8_t control, uint8_t arg, const uint8_t *packet,
		   size_t length)
{
	uint8_t *p = v->data + v->size;

	if (INPUT_RECORD + length > sizeof(v->data) - v->size)
		return;
	p[0] = control;
	p[1] = arg;
	p[2] = (uint8_t)length;
	p[3] = (uint8_t)(length >> 8);
	if (length)
		memcpy(p + INPUT_RECORD, packet, length);
	v->size += INPUT_RECORD + length;
}

/* The record that posts the request whose first packet this is. */
static void post(struct conversation *v, const struct vb_run *run)
{
	uint64_t length = run->op == VB_OP_SEND ? run->length : run->dma_length;
	uint64_t units = (length + 510) / 511;
	uint8_t which = 0;

	if (!(run->flags & VB_RUN_FIRST))
		return;
	switch (run->op) {
	case VB_OP_WRITE:
		which = run->flags & VB_RUN_IMM ? 3 : 2;
		break;
	case VB_OP_READ_REQUEST:
		which = 4;
		break;
	case VB_OP_COMPARE_SWAP:
		which = 5;
		break;
	case VB_OP_FETCH_ADD:
		which = 6;
		break;
	default:
		which = run->flags & VB_RUN_INV ? 7 : run->flags & VB_RUN_IMM ? 1 : 0;
		break;
	}
	record(v, DO_SEND | DO_RUN, (uint8_t)((units < 31 ? units : 31) << 3 | which), NULL, 0);
}

static void add(struct conversation *v, const struct capture_packet *p)
{
	bool incoming = memcmp(p->flow.source, v->own, 16) != 0;
	const uint8_t *payload;
	struct vb_run run;

	if (vb_packet_decode(p->data, p->length, &run, &payload) != VB_REASON_NONE)
		return;
	if (!v->begun) {
		v->data[HEAD_SERVICE] = run.service == VB_SERVICE_UC   ? 1
					: run.service == VB_SERVICE_UD ? 2
								       : 0;
		put_psn(v->data + (incoming ? HEAD_RQ_PSN : HEAD_SQ_PSN), run.psn);
		v->begun = true;
	}
	if (incoming) /* answers come for what we sent, whatever its PSN */
		record(v, (uint8_t)(DO_KEY | DO_RUN | DO_PSN), 0, p->data, p->length);
	else if (!is_answer(&run))
		post(v, &run);
}

static uint8_t mtu_of(const char *file)
{
	return strstr(file, "_4096") ? 4 : strstr(file, "_256") ? 0 : 2;
}

static void one_end(const struct capture *c, const char *file, bool first, bool runs, bool xrc,
		    seed_use_fn *use)
{
	static struct conversation v;
	char name[300];

	memset(v.data, 0, INPUT_HEAD);
	v.size = INPUT_HEAD;
	v.begun = false;
	v.own = first ? c->packet[0].flow.source : c->packet[0].flow.destination;
	v.data[HEAD_MTU] = runs ? 1 : mtu_of(file);
	v.data[HEAD_STATE] = runs ? 128 : 0;
	v.data[HEAD_RD_ATOMIC] = v.data[HEAD_DEST_RD_ATOMIC] = 4;
	v.data[HEAD_RETRY] = 0x3f;
	v.data[HEAD_RECEIVES] = 20;
	for (unsigned int i = 0; i < c->packets; i++)
		add(&v, &c->packet[i]);
	if (xrc && v.data[HEAD_SERVICE] != VB_SERVICE_RC)
		return;
	v.data[HEAD_SERVICE] |= xrc ? HEAD_XRC : 0;
	snprintf(name, sizeof(name), "%s-%c%s%s", file, first ? 'a' : 'b', runs ? "-runs" : "",
		 xrc ? "-xrc" : "");
	use(name, v.data, v.size);
}

static void each_end(const struct capture *c, const char *file, seed_use_fn *use)
{
	for (unsigned int end = 0; end < 8 && c->packets; end++)
		one_end(c, file, end & 1, end & 2, end & 4, use);
}

/*
 * Packets that no capture has: ATOMIC_WRITE and FLUSH, valid ones, misaligned, too long, of no
 * type, of an unknown level.
 */
static void each_newer(enum seed_kind kind, bool xrc, seed_use_fn *use)
{
	static const struct vb_run runs[] = {
		{.op = VB_OP_ATOMIC_WRITE, .length = 8, .dma_length = 8},
		{.op = VB_OP_FLUSH, .dma_length = 64, .flush = VB_FETH(IBV_FLUSH_GLOBAL, 0)},
		{.op = VB_OP_FLUSH, .flush = VB_FETH(IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR)},
		{.op = VB_OP_ATOMIC_WRITE, .length = 8, .dma_length = 8, .va = 4},
		{.op = VB_OP_ATOMIC_WRITE, .length = 16, .dma_length = 8},
		{.op = VB_OP_FLUSH, .dma_length = 64},
		{.op = VB_OP_FLUSH, .dma_length = 64, .flush = VB_FETH(IBV_FLUSH_GLOBAL, 3)},
	};
	static struct conversation v;
	uint8_t packet[VB_PACKET_HEADER_MOST + 64];
	char name[40];

	for (unsigned int i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct vb_run run = runs[i];

		run.service = xrc ? VB_SERVICE_XRC : VB_SERVICE_RC;
		run.flags = VB_RUN_FIRST | VB_RUN_LAST | VB_RUN_ACK_REQ;
		run.segments = 1;
		run.pkey = 0xffff;
		run.dest_qpn = 0x123;
		memset(packet, 0, sizeof(packet));
		vb_packet_header(&run, 0, 1024, packet);
		snprintf(name, sizeof(name), "newer-%u%s", i, xrc ? "-xrc" : "");
		if (kind == SEED_DECODE) {
			use(name, packet, vb_packet_bytes(&run, 0, 1024));
			continue;
		}
		memset(v.data, 0, INPUT_HEAD);
		v.size = INPUT_HEAD;
		v.data[HEAD_SERVICE] = xrc ? HEAD_XRC : 0;
		v.data[HEAD_MTU] = 2;
		v.data[HEAD_RD_ATOMIC] = v.data[HEAD_DEST_RD_ATOMIC] = 4;
		v.data[HEAD_RETRY] = 0x3f;
		/* Twice, and both again under their old PSNs. */
		for (unsigned int turn = 0; turn < 4; turn++)
			record(&v, DO_KEY | DO_RUN | DO_PSN, turn < 2 ? 0 : (uint8_t)(0u - turn),
			       packet, vb_packet_bytes(&run, 0, 1024));
		use(name, v.data, v.size);
	}
}

enum seed_kind seed_kind_of(const char *target)
{
	if (!strcmp(target, "cm"))
		return SEED_CM;
	return strcmp(target, "decode") ? SEED_RESPONDER : SEED_DECODE;
}

int seeds_each(const char *folder, enum seed_kind kind, seed_use_fn *use)
{
	DIR *d;
	struct dirent *e;
	unsigned int files = 0;

	if (kind == SEED_CM) { /* these captures are in the sources */
		cm_seeds_each(use);
		return 0;
	}
	d = opendir(folder);
	while (d && (e = readdir(d)) != NULL) {
		size_t length = strlen(e->d_name);
		struct capture c;
		char path[4096];

		if (length < 5 || strcmp(e->d_name + length - 5, ".pcap") != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		if (capture_load(&c, path))
			continue;
		(kind == SEED_DECODE ? each_packet : each_end)(&c, e->d_name, use);
		capture_free(&c);
		files++;
	}
	if (d)
		closedir(d);
	each_newer(kind, false, use);
	each_newer(kind, true, use);
	return files ? 0 : -1;
}
