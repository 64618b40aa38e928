/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every packet of the captures of Linux rdma_rxe: its ICRC, its decoding, and the same bytes again
 * when its run is encoded; messages of several packets also from one run.
 *
 * One field differs, for a reason: MigReq, which adapters send as 1 (IBA 17.2.8) and rdma_rxe as 0.
 * It is covered by the ICRC.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "capture.h"
#include "wire/opcode.h"
#include "wire/packet.h"

#define PACKETS      1116u /* in all files together */
#define FILES        75u
#define MIGREQ       0x40
#define MESSAGE_MOST 65536u

static struct capture files[FILES + 1];
static char *names[FILES + 1];
static unsigned int num_files;

static const struct capture_packet *now; /* for the message of a failure */
static const char *now_name;

static void fail_here(const char *what)
{
	fail_msg("%s, frame %u: %s", now_name, now->frame, what);
}

static void each(void (*check)(const struct capture_packet *p))
{
	for (unsigned int f = 0; f < num_files; f++) {
		for (unsigned int i = 0; i < files[f].packets; i++) {
			now_name = names[f];
			now = &files[f].packet[i];
			check(now);
		}
	}
}

static void all_there(void **state)
{
	unsigned int packets = 0;

	(void)state;
	for (unsigned int f = 0; f < num_files; f++)
		packets += files[f].packets;
	assert_int_equal(num_files, FILES);
	assert_int_equal(packets, PACKETS);
}

static void check_icrc(const struct capture_packet *p)
{
	uint16_t id = 0;

	if (!vb_icrc_check(&p->flow, p->data, p->length, &id))
		fail_here("ICRC");
	if (id != p->id)
		fail_here("another identification");
	if (!vb_icrc_check(&p->flow, p->data, p->length, &id) || id != p->id)
		fail_here("ICRC, identification known");
}

static void icrc_is_right(void **state)
{
	(void)state;
	each(check_icrc);
}

/* As a link would send it. */
static size_t build(const struct vb_run *run, uint32_t segment, uint32_t mtu,
		    const uint8_t *payload, const struct vb_flow *flow, uint16_t id, uint8_t *out)
{
	size_t bytes = vb_packet_bytes(run, segment, mtu);
	size_t at = vb_packet_header(run, segment, mtu, out);
	uint32_t length = vb_packet_payload(run, segment, mtu);
	uint32_t crc;

	assert_true(at >= VB_BTH_BYTES);
	out[1] ^= MIGREQ;
	crc = vb_icrc_begin(flow, id, bytes, out, at);
	crc = vb_icrc_add(crc, payload, length);
	memcpy(out + at, payload, length);
	at += length;
	at += vb_icrc_end(crc, vb_packet_pad(length), out + at);
	assert_int_equal(at, bytes);
	return bytes;
}

static void compare(const struct capture_packet *p, const uint8_t *built, size_t bytes)
{
	if (bytes != p->length)
		fail_here("another length");
	if (memcmp(built, p->data, bytes) != 0)
		fail_here("other bytes");
}

static void check_again(const struct capture_packet *p)
{
	uint8_t built[VB_PACKET_MOST];
	const uint8_t *payload;
	struct vb_run run;

	if (vb_packet_decode(p->data, p->length, &run, &payload))
		fail_here("not decoded");
	compare(p, built, build(&run, 0, VB_MTU_MOST, payload, &p->flow, p->id, built));
}

static void encoded_again(void **state)
{
	(void)state;
	each(check_again);
}

/* A message under reassembly. */
struct message {
	struct vb_run run;
	uint8_t data[MESSAGE_MOST];
	const struct capture_packet *packet[64];
	uint32_t mtu;
};

static unsigned int messages;

static void check_message(const struct message *m)
{
	uint8_t built[VB_PACKET_MOST];

	for (uint32_t i = 0; i < m->run.segments; i++) {
		const struct capture_packet *p = m->packet[i];

		now = p;
		compare(p, built,
			build(&m->run, i, m->mtu, m->data + (size_t)i * m->mtu, &p->flow, p->id,
			      built));
	}
	messages++;
}

/* Goes on with the message if the packet is its next one. */
static bool join(struct message *m, const struct capture_packet *p, const struct vb_run *run,
		 const uint8_t *payload)
{
	bool next = m->run.segments && run->dest_qpn == m->run.dest_qpn && run->op == m->run.op &&
		    memcmp(p->flow.source, m->packet[0]->flow.source, 16) == 0 &&
		    run->psn == ((m->run.psn + m->run.segments) & 0xffffff);

	if (!next || run->flags & VB_RUN_FIRST)
		return false;
	assert_true(m->run.segments < 64 && m->run.length + run->length <= MESSAGE_MOST);
	memcpy(m->data + m->run.length, payload, run->length);
	m->run.length += run->length;
	m->run.flags |= run->flags;
	if (run->flags & (VB_RUN_IMM | VB_RUN_INV))
		m->run.imm = run->imm;
	if (run->op == VB_OP_READ_RESPONSE && run->flags & VB_RUN_LAST && run->msn != m->run.msn)
		return false; /* a message completed meanwhile: not one run of ours */
	m->packet[m->run.segments++] = p;
	return true;
}

static void begin(struct message *m, const struct capture_packet *p, const struct vb_run *run,
		  const uint8_t *payload)
{
	m->run = *run;
	m->run.segments = 0;
	if ((run->flags & (VB_RUN_FIRST | VB_RUN_LAST)) != VB_RUN_FIRST ||
	    run->flags & VB_RUN_ACK_REQ)
		return;
	m->mtu = run->length;
	memcpy(m->data, payload, run->length);
	m->packet[0] = p;
	m->run.segments = 1;
}

static void messages_from_one_run(void **state)
{
	static struct message m;

	(void)state;
	for (unsigned int f = 0; f < num_files; f++) {
		now_name = names[f];
		m.run.segments = 0;
		for (unsigned int i = 0; i < files[f].packets; i++) {
			const struct capture_packet *p = &files[f].packet[i];
			const uint8_t *payload;
			struct vb_run run;

			assert_int_equal(vb_packet_decode(p->data, p->length, &run, &payload), 0);
			if (!run.length) /* acknowledgements between the packets */
				continue;
			if (!join(&m, p, &run, payload))
				begin(&m, p, &run, payload);
			else if (run.flags & VB_RUN_LAST)
				check_message(&m);
		}
	}
	assert_true(messages >= 100);
}

static int load(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;

	while (d && num_files <= FILES && (e = readdir(d)) != NULL) {
		char path[4096];
		size_t length = strlen(e->d_name);

		if (length < 5 || strcmp(e->d_name + length - 5, ".pcap") != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		names[num_files] = strdup(e->d_name);
		if (!names[num_files] || capture_load(&files[num_files], path))
			break;
		num_files++;
	}
	if (d)
		closedir(d);
	return d ? 0 : -1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_there),
		cmocka_unit_test(icrc_is_right),
		cmocka_unit_test(encoded_again),
		cmocka_unit_test(messages_from_one_run),
	};
	int failed;

	if (argc != 2 || load(argv[1])) {
		fprintf(stderr, "usage: captures FOLDER\n");
		return 2;
	}
	failed = cmocka_run_group_tests_name("wire-captures", tests, NULL, NULL);
	for (unsigned int f = 0; f < num_files; f++) {
		capture_free(&files[f]);
		free(names[f]);
	}
	return failed;
}
