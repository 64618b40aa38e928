/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The cost of a packet besides system calls: nanoseconds to judge, decode and check it, to write
 * its header and ICRC, and to hand it to a queue pair, by itself or as a part of a run. Medians of
 * many rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fuzz/endpoint.h"
#include "fuzz/input.h"
#include "wire/icrc.h"
#include "wire/packet.h"

#define ROUNDS  301
#define REPEATS 200

static uint8_t packet[VB_PACKET_MOST];
static uint8_t payload[END_REGION];
static size_t bytes;
static struct vb_flow flow;
static struct vb_run run;
static uint32_t mtu;
static uint16_t wire_id, guess;
static struct endpoint end;
static volatile uint64_t sink;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(void (*work)(void), unsigned int repeats)
{
	static double ns[ROUNDS];

	for (unsigned int r = 0; r < ROUNDS; r++) {
		uint64_t start = now_ns();

		for (unsigned int i = 0; i < repeats; i++)
			work();
		ns[r] = (double)(now_ns() - start) / repeats;
	}
	qsort(ns, ROUNDS, sizeof(ns[0]), compare);
	return ns[ROUNDS / 2];
}

static void make_packet(void)
{
	size_t at = vb_packet_header(&run, 0, mtu, packet);
	uint32_t crc;

	bytes = vb_packet_bytes(&run, 0, mtu);
	crc = vb_icrc_begin(&flow, wire_id, bytes, packet, at);
	crc = vb_icrc_add(crc, payload, run.length);
	memcpy(packet + at, payload, run.length);
	vb_icrc_end(crc, vb_packet_pad(run.length), packet + at + run.length);
}

static void decode(void)
{
	struct vb_run got;
	const uint8_t *data;

	if (vb_packet_decode(packet, bytes, &got, &data) == VB_REASON_NONE)
		sink += got.psn;
}

static void decode_and_check(void)
{
	struct vb_run got;
	const uint8_t *data;
	uint16_t id = guess;

	if (vb_packet_decode(packet, bytes, &got, &data) == VB_REASON_NONE &&
	    vb_icrc_check(&flow, packet, bytes, &id))
		sink += got.psn;
	else
		abort();
}

static void encode(void)
{
	uint8_t header[VB_PACKET_HEADER_MOST];
	uint8_t trailer[8];
	size_t at = vb_packet_header(&run, 0, mtu, header);
	uint32_t crc = vb_icrc_begin(&flow, 0, vb_packet_bytes(&run, 0, mtu), header, at);

	crc = vb_icrc_add(crc, payload, run.length);
	sink += vb_icrc_end(crc, vb_packet_pad(run.length), trailer);
}

/* Receives a WRITE of the whole region in `runs` runs. */
static void receive(uint32_t runs)
{
	struct vb_run part = run;
	uint32_t segments = END_REGION / mtu / runs;

	for (uint32_t i = 0; i < runs; i++) {
		part.flags = (uint8_t)((i ? 0 : VB_RUN_FIRST) | (i + 1 == runs ? VB_RUN_LAST : 0));
		part.psn = (run.psn + i * segments) & 0xffffff;
		part.segments = (uint16_t)segments;
		part.length = segments * mtu;
		vb_tqp_receive(&end.qp, &part, payload + (size_t)i * part.length);
	}
	run.psn = (run.psn + END_REGION / mtu) & 0xffffff;
}

static void receive_packets(void)
{
	receive(END_REGION / mtu);
}

static void receive_run(void)
{
	receive(1);
}

static void packets(bool ipv4, uint32_t length)
{
	memset(&run, 0, sizeof(run));
	run.op = VB_OP_SEND;
	run.flags = VB_RUN_FIRST | VB_RUN_LAST;
	run.segments = 1;
	run.pkey = 0xffff;
	run.dest_qpn = END_QPN;
	run.length = length;
	flow.ipv4 = ipv4;
	mtu = VB_MTU_MOST;
	wire_id = 0;
	make_packet();
	printf("%4s %5u %10.1f %12.1f", ipv4 ? "IPv4" : "IPv6", length, median(decode, REPEATS),
	       median(decode_and_check, REPEATS));
	if (ipv4) {
		wire_id = 0x8765;
		make_packet();
		printf(" %12.1f", median(decode_and_check, REPEATS));
	} else {
		printf(" %12s", "-");
	}
	printf(" %10.1f\n", median(encode, REPEATS));
}

static void joined(uint32_t path_mtu)
{
	uint8_t head[INPUT_HEAD] = {0};
	uint32_t count = END_REGION / path_mtu;

	mtu = path_mtu;
	head[HEAD_MTU] = path_mtu == 1024 ? 2 : 4;
	memset(&run, 0, sizeof(run));
	run.op = VB_OP_WRITE;
	run.pkey = 0xffff;
	run.va = END_IOVA;
	run.rkey = END_KEY;
	run.dma_length = END_REGION;
	endpoint_start(&end, head);
	printf("%4u %15.1f %15.1f\n", path_mtu, median(receive_packets, 20) / count,
	       median(receive_run, 20) / count);
	if (end.qp.state == IBV_QPS_ERR)
		abort();
	endpoint_stop(&end);
}

int main(void)
{
	static const uint32_t lengths[] = {0, 64, 256, 1024, 4096};

	flow.source_port = 0xc000;
	flow.destination_port = VB_UDP_PORT;
	memset(flow.source, 0xfd, 16);
	memset(flow.destination, 0xfe, 16);
	printf("ns per packet\n       bytes     decode decode+ICRC  id unknown     encode\n");
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		packets(true, lengths[i]);
		packets(false, lengths[i]);
	}
	printf("ns per packet of a 16 KiB WRITE at the responder, copy included\n"
	       " MTU  packet by packet     as one run\n");
	joined(1024);
	joined(4096);
	return 0;
}
