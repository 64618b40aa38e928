/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs through real sockets: every byte and every field of the path arrives, in bursts and one by
 * one. Packets that are damaged, cut short, or from a sender that no longer numbers its packets as
 * it did, are dropped and counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/copy_source.h"
#include "base/reason.h"
#include "udp/address.h"
#include "udp/receive.h"
#include "udp/send.h"
#include "udp/socket.h"
#include "unit/udp/net.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/packet.h"

#define MOST       (128u << 10)
#define FOREIGN_ID 0x4321
#define HABIT      16 /* packets that make one, and that end it: udp/receive.c */
#define HABIT_ENDS 64

struct fixture {
	bool ipv4;
	int rx;
	struct vb_udp_sender tx;
	struct vb_udp_receiver *receiver;
	struct vb_path path;
	uint8_t sent[MOST];
	/* what came */
	uint8_t got[MOST];
	uint32_t bytes, runs, packets;
	/* Where runs are copied a second time, at their offset (base/copy_source.h). NULL: nowhere. */
	uint8_t *second;
	uint32_t copied;
	struct vb_run first, last;
	uint32_t ifindex;
};

static void fixture_open(struct fixture *f, bool ipv4)
{
	uint32_t buffer;

	memset(f, 0, sizeof(*f));
	f->ipv4 = ipv4;
	f->rx = vb_udp_open_receiver(ipv4, &buffer);
	f->tx.fd = vb_udp_open_sender(ipv4, &f->tx.port);
	f->tx.ipv4 = ipv4;
	f->receiver = vb_udp_receiver_create();
	assert_true(f->rx >= 0 && f->tx.fd >= 0 && f->receiver);
	net_gid(ipv4, 1, f->path.sgid);
	net_gid(ipv4, 2, f->path.dgid);
	f->path.hop_limit = 64;
	for (uint32_t i = 0; i < MOST; i++)
		f->sent[i] = (uint8_t)(i * 7 + (i >> 8));
}

/* From now on the sender is a bound one. */
static void bind_sender(struct fixture *f)
{
	close(f->tx.fd);
	f->tx.fd = vb_udp_open_bound_sender(&f->path, 0, &f->tx.port);
	assert_true(f->tx.fd >= 0);
	f->tx.bound = true;
}

static void fixture_close(struct fixture *f)
{
	close(f->rx);
	close(f->tx.fd);
	vb_udp_receiver_destroy(f->receiver);
}

/* One message in order: the next run goes on where the last ended. */
static void on_run(void *arg, const struct vb_run *run, const uint8_t *payload, uint32_t ifindex)
{
	struct fixture *f = arg;

	if (!f->runs++)
		f->first = *run;
	assert_int_equal(run->psn, (f->first.psn + f->packets) & VB_QPN_MASK);
	assert_true(f->bytes + run->length <= MOST);
	memcpy(f->got + f->bytes, payload, run->length);
	if (f->second) {
		struct vb_copy_source *s = vb_udp_receiver_source(f->receiver);

		f->copied += s->copy(s, payload, (uintptr_t)f->second + f->bytes, run->length);
	}
	f->bytes += run->length;
	f->packets += run->segments;
	f->last = *run;
	f->ifindex = ifindex;
}

static void receive(struct fixture *f)
{
	int n;

	f->bytes = f->runs = f->packets = f->copied = 0;
	net_settle();
	while ((n = vb_udp_receive(f->receiver, f->rx, f->ipv4, on_run, f)) > 0)
		;
	assert_int_equal(n, 0);
}

static struct vb_run run_of(uint32_t length, uint32_t mtu)
{
	return (struct vb_run){
		.service = VB_SERVICE_RC,
		.op = VB_OP_WRITE,
		.flags = VB_RUN_FIRST | VB_RUN_LAST | VB_RUN_ACK_REQ,
		.pkey = 0xffff,
		.segments = (uint16_t)(length ? (length + mtu - 1) / mtu : 1),
		.dest_qpn = 0x123456,
		.psn = 0xfffffe, /* wraps */
		.length = length,
		.rkey = 0x89abcdef,
		.dma_length = length,
		.va = 0x0123456789abcdefull,
	};
}

static void exchange(struct fixture *f, uint32_t length, uint32_t mtu)
{
	struct vb_run run = run_of(length, mtu);

	assert_int_equal(vb_udp_send(&f->tx, &f->path, 0, &run, mtu, f->sent), 0);
	receive(f);
	assert_int_equal(f->bytes, length);
	assert_memory_equal(f->got, f->sent, length);
	assert_int_equal(f->packets, run.segments);
	assert_int_equal(f->first.flags & VB_RUN_FIRST, VB_RUN_FIRST);
	assert_int_equal(f->last.flags & (VB_RUN_LAST | VB_RUN_ACK_REQ),
			 VB_RUN_LAST | VB_RUN_ACK_REQ);
	assert_int_equal(f->first.dest_qpn, run.dest_qpn);
	assert_int_equal(f->first.rkey, run.rkey);
	assert_true(f->first.va == run.va);
	assert_int_equal(f->first.dma_length, length);
	assert_memory_equal(f->first.path.sgid, f->path.sgid, 16);
	assert_memory_equal(f->first.path.dgid, f->path.dgid, 16);
}

/*
 * What came once more, from the queue of the socket. The first message, a WRITE too, is what makes
 * the receiver leave datagrams there. `length` is more than what the run's last word holds.
 */
static void copy_again(struct fixture *f, uint32_t length, uint32_t mtu, uint32_t odd)
{
	uint8_t *second = calloc(1, MOST + 64);

	assert_non_null(second);
	exchange(f, 8, mtu);
	f->second = second + odd;
	exchange(f, length, mtu);
	assert_int_equal(f->copied, f->runs);
	assert_memory_equal(second + odd, f->sent, length);
	for (uint32_t i = 0; i < odd; i++)
		assert_int_equal(second[i], 0);
	for (uint32_t i = odd + length; i < MOST + 64; i++)
		assert_int_equal(second[i], 0);
	f->second = NULL;
	exchange(f, length, mtu); /* nothing is left in the queue, or twice there */
	free(second);
}

static void test_copy_again(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	(void)state;
	assert_non_null(f);
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		fixture_open(f, ipv4);
		for (uint32_t odd = 0; odd < 16; odd += 3) {
			copy_again(f, 8, 1024, odd);
			copy_again(f, 13, 1024, odd);
			copy_again(f, 4096 + 3, 4096, odd);
			copy_again(f, 15 * 4096, 4096, odd);
			copy_again(f, 60 * 1024 - 1, 1024, odd);
			copy_again(f, 100000, 256, odd);
		}
		fixture_close(f);
	}
	free(f);
}

/* The program has unmapped the memory: no copy, no harm, and the datagram is not read twice. */
static void test_copy_to_nowhere(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	uint8_t *gone = mmap(NULL, MOST, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_non_null(f);
	assert_true(gone != MAP_FAILED);
	fixture_open(f, true);
	for (int unmapped = 0; unmapped < 2; unmapped++) {
		exchange(f, 8, 4096);
		f->second = gone;
		exchange(f, 15 * 4096, 4096);
		assert_int_equal(f->copied, 0);
		f->second = NULL;
		if (!unmapped)
			munmap(gone, MOST);
	}
	exchange(f, 15 * 4096, 4096);
	fixture_close(f);
	free(f);
}

static int look(struct fixture *f)
{
	f->bytes = f->runs = f->packets = 0;
	return vb_udp_look(f->receiver, f->rx, f->ipv4, on_run, f);
}

/* What was looked at stays in the queue until the next call, and is handed on once. */
static void test_look(void **state)
{
	struct vb_run one = run_of(100, 1024), two = run_of(200, 1024);
	struct fixture *f = calloc(1, sizeof(*f));

	(void)state;
	assert_non_null(f);
	fixture_open(f, true);
	for (int round = 0; round < 3; round++) {
		assert_true(vb_udp_is_calm(f->receiver));
		assert_int_equal(vb_udp_send(&f->tx, &f->path, 0, &one, 1024, f->sent), 0);
		assert_int_equal(vb_udp_send(&f->tx, &f->path, 0, &two, 1024, f->sent), 0);
		net_settle();
		assert_int_equal(look(f), 1);
		assert_int_equal(f->bytes, 100);
		assert_true(vb_udp_owed(f->receiver, true));
		assert_int_equal(look(f), 1);
		assert_int_equal(f->bytes, 200);
		assert_true(vb_udp_owed(f->receiver, true));
		if (round == 2)
			vb_udp_forgive(f->receiver, true); /* as if it were another socket's */
		receive(f);
		assert_int_equal(f->bytes, round == 2 ? 200 : 0);
		assert_false(vb_udp_owed(f->receiver, true));
		assert_int_equal(look(f), 0);
	}
	fixture_close(f);
	free(f);
}

static uint64_t drops(void)
{
	static const enum vb_reason reasons[] = {
		VB_REASON_DROP_MALFORMED, VB_REASON_DROP_OPCODE, VB_REASON_DROP_VERSION,
		VB_REASON_DROP_ICRC,      VB_REASON_DROP_PKEY,   VB_REASON_DROP_CONGESTION,
		VB_REASON_DROP_QPN,
	};
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		sum += vb_reason_count(reasons[i]);
	return sum;
}

static void send_raw(struct fixture *f, int fd, const uint8_t *data, size_t bytes)
{
	union vb_udp_address to;
	socklen_t length = vb_udp_address_of(&to, f->path.dgid, VB_UDP_PORT, 0);

	assert_int_equal(sendto(fd, data, bytes, 0, &to.any, length), bytes);
}

/* A packet of 64 bytes of payload as this sender would send it, with an IPv4 identification. */
static size_t make_packet(struct fixture *f, uint16_t id, uint8_t *packet)
{
	struct vb_run run = run_of(64, 1024);
	struct vb_flow flow = {
		.source_port = f->tx.port, .destination_port = VB_UDP_PORT, .ipv4 = f->ipv4};
	size_t head = vb_packet_header(&run, 0, 1024, packet);
	size_t bytes = vb_packet_bytes(&run, 0, 1024);

	net_gid(f->ipv4, 1, flow.source);
	memcpy(flow.destination, f->path.dgid, 16);
	uint32_t crc = vb_icrc_begin(&flow, id, bytes, packet, head);

	memcpy(packet + head, f->sent, 64);
	crc = vb_icrc_add(crc, f->sent, 64);
	vb_icrc_end(crc, 0, packet + head + 64);
	return bytes;
}

static void look_exchange(struct fixture *f, struct vb_udp_sender *tx, uint32_t length)
{
	struct vb_run run = run_of(length, 1024);

	assert_int_equal(vb_udp_send(tx, &f->path, 0, &run, 1024, f->sent), 0);
	net_settle();
	assert_int_equal(look(f), 1);
	assert_int_equal(f->bytes, length);
	assert_memory_equal(f->got, f->sent, length);
	assert_memory_equal(f->first.path.sgid, f->path.sgid, 16);
	assert_memory_equal(f->first.path.dgid, f->path.dgid, 16);
	assert_int_equal(look(f), 0);
}

/*
 * A short datagram is taken to have come as the one before it. Where that is wrong, all that is said
 * of it is right all the same: another source, another destination, other lengths.
 */
static void test_look_at_others(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct vb_udp_sender other = {.port = 0x1000};

	(void)state;
	assert_non_null(f);
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		fixture_open(f, ipv4);
		other.ipv4 = ipv4;
		other.fd = vb_udp_open_sender(ipv4, &other.port);
		assert_true(other.fd >= 0);
		for (uint32_t i = 0; i < 300; i++) {
			net_gid(ipv4, i % 71 < 3 && ipv4 ? 3 : 2, f->path.dgid);
			look_exchange(f, i % 97 < 2 ? &other : &f->tx, i % 13 ? 8 : 40 * (i % 25));
		}
		close(other.fd);
		fixture_close(f);
	}
	free(f);
}

/* Damage is seen at a look, too, and counted once. */
static void test_look_at_damage(void **state)
{
	struct fixture f;
	uint8_t packet[VB_PACKET_MOST];

	(void)state;
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		fixture_open(&f, ipv4);
		size_t bytes = make_packet(&f, 0, packet);

		for (int i = 0; i < 10 * HABIT; i++) {
			bool bad = i > HABIT && i % 3 == 0;
			uint64_t before = drops();

			packet[bytes - 9] ^= bad;
			send_raw(&f, f.tx.fd, packet, bytes);
			packet[bytes - 9] ^= bad;
			net_settle();
			assert_int_equal(look(&f), 1);
			assert_int_equal(f.runs, !bad);
			assert_int_equal(drops() - before, bad);
			assert_int_equal(look(&f), 0);
		}
		fixture_close(&f);
	}
}

static void exchange_sizes(struct fixture *f)
{
	static const uint32_t mtus[] = {256, 1024, 4096};

	for (size_t i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
		uint32_t mtu = mtus[i];
		uint32_t lengths[] = {0,   1,       3,       4,           mtu - 1,
				      mtu, mtu + 1, 2 * mtu, 5 * mtu + 7, 31 * mtu};

		for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++)
			exchange(f, lengths[k], mtu);
	}
}

static void test_every_byte(void **state)
{
	struct fixture f;

	(void)state;
	for (int i = 0; i < 8; i++) {
		fixture_open(&f, i & 1);
		f.tx.gso_refused = i & 2;
		if (i & 4)
			bind_sender(&f);
		exchange_sizes(&f);
		fixture_close(&f);
	}
}

/*
 * What came as one burst goes on as one run. The first packet of a WRITE is longer than the others
 * and comes by itself.
 */
static void test_burst_is_one_run(void **state)
{
	struct fixture f;

	(void)state;
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		fixture_open(&f, ipv4);
		exchange(&f, vb_udp_run_bytes(1024, MOST), 1024);
		if (!f.tx.gso_refused)
			assert_int_equal(f.runs, 2);
		fixture_close(&f);
	}
}

static void pair(struct fixture *f, enum vb_op op, uint32_t length)
{
	struct vb_run run = run_of(length, 1024);
	struct vb_run ack = {
		.service = VB_SERVICE_RC,
		.op = VB_OP_ACK,
		.flags = VB_RUN_FIRST | VB_RUN_LAST,
		.syndrome = VB_AETH_ACK,
		.pkey = 0xffff,
		.segments = 1,
		.dest_qpn = 0x123456,
		.psn = 0xffffff, /* on_run() wants numbers that follow each other */
		.msn = 0x9abcde,
	};

	run.op = (uint8_t)op;
	assert_int_equal(vb_udp_send_pair(&f->tx, &f->path, 0, &run, 1024, f->sent, &ack), 0);
	receive(f);
	assert_int_equal(f->runs, 2);
	assert_int_equal(f->first.op, op);
	assert_int_equal(f->bytes, length);
	assert_memory_equal(f->got, f->sent, length);
	assert_int_equal(f->last.op, VB_OP_ACK);
	assert_int_equal(f->last.syndrome, VB_AETH_ACK);
	assert_int_equal(f->last.msn, 0x9abcde);
}

/*
 * A packet and the acknowledgement behind it, in one burst where that can be: a SEND of nothing is
 * shorter than an acknowledgement.
 */
static void test_pair(void **state)
{
	static const uint32_t lengths[] = {0, 1, 3, 4, 8, 1024};
	struct fixture f;

	(void)state;
	for (int i = 0; i < 8; i++) {
		fixture_open(&f, i & 1);
		f.tx.gso_refused = i & 2;
		if (i & 4)
			bind_sender(&f);
		for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
			pair(&f, VB_OP_SEND, lengths[k]);
			pair(&f, VB_OP_WRITE, lengths[k]);
		}
		fixture_close(&f);
	}
}

/*
 * Pairs of one size in a row: the socket itself cuts them in the end. What is sent in between is
 * cut as it should be, or not at all.
 */
static void test_pairs_in_a_row(void **state)
{
	enum { ROW = 20, SIZES = 4 };
	static const uint32_t lengths[SIZES] = {8, 64, 8, 1000};
	struct fixture f;

	(void)state;
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		fixture_open(&f, ipv4);
		bind_sender(&f);
		for (int k = 0; k < SIZES; k++) {
			for (int i = 0; i < ROW; i++)
				pair(&f, VB_OP_SEND, lengths[k]);
			if (!f.tx.gso_refused)
				assert_int_equal(f.tx.gso,
						 VB_BTH_BYTES + lengths[k] + VB_ICRC_BYTES);
			exchange(&f, 4, 1024);
			exchange(&f, 1024, 1024);
			pair(&f, VB_OP_SEND, lengths[k] + 4);
			exchange(&f, 4096, 4096);
			exchange(&f, 31 * 1024 + 5, 1024);
			exchange(&f, 200, 1024);
		}
		fixture_close(&f);
	}
}

/*
 * A run that is one burst: no more packets and bytes than the kernel takes, a multiple of the path
 * MTU, at least one packet.
 */
static void test_run_bytes(void **state)
{
	(void)state;
	for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
		for (uint32_t most = 1; most <= MOST; most += 4000) {
			uint32_t bytes = vb_udp_run_bytes(mtu, most);

			assert_int_equal(bytes % mtu, 0);
			assert_in_range(bytes / mtu, 1, VB_UDP_BURST_PACKETS);
			assert_true(bytes == mtu || bytes <= most);
			assert_true(bytes / mtu * (mtu + VB_PACKET_HEADER_MOST + 7) <= 65535);
		}
	}
}

/* The fields that a GRH shows. */
static void test_path(void **state)
{
	struct fixture f;

	(void)state;
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		fixture_open(&f, ipv4);
		f.path.traffic_class = 0xb8;
		f.path.hop_limit = 17;
		f.path.flow_label = ipv4 ? 0 : 0xabcde;
		exchange(&f, 100, 1024);
		assert_int_equal(f.first.path.traffic_class, 0xb8);
		assert_int_equal(f.first.path.hop_limit, 17);
		assert_int_equal(f.first.path.flow_label, f.path.flow_label);
		assert_int_equal(f.ifindex, 1); /* lo is the only interface here */
		fixture_close(&f);
	}
}

/* Is the packet handed on? If not, one drop must have been counted. */
static bool passes(struct fixture *f, int fd, const uint8_t *packet, size_t bytes)
{
	uint64_t before = drops();

	send_raw(f, fd, packet, bytes);
	receive(f);
	assert_int_equal(drops() - before, f->runs ? 0 : 1);
	return f->runs;
}

/* Loopback fills in 127.0.0.1 as the source of an unbound socket, whatever the destination. */
static void learn(struct fixture *f)
{
	uint8_t packet[VB_PACKET_MOST];
	size_t bytes = make_packet(f, 0, packet);

	for (int i = 0; i < HABIT; i++)
		assert_true(passes(f, f->tx.fd, packet, bytes));
}

static void test_damaged(void **state)
{
	struct fixture f;
	uint8_t packet[VB_PACKET_MOST];

	(void)state;
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		fixture_open(&f, ipv4);
		learn(&f);
		size_t bytes = make_packet(&f, 0, packet);

		for (size_t bit = 0; bit < bytes * 8; bit++) {
			/* Congestion marks change on the way: the ICRC leaves them out. */
			if (bit / 8 == 4)
				continue;
			packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
			if (passes(&f, f.tx.fd, packet, bytes))
				fail_msg("IPv%d: bit %zu was turned and nobody saw", ipv4 ? 4 : 6,
					 bit);
			packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		assert_true(passes(&f, f.tx.fd, packet, bytes));
		fixture_close(&f);
	}
}

static void test_cut_short(void **state)
{
	struct fixture f;
	uint8_t packet[VB_PACKET_MOST + 64] = {0};

	(void)state;
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		fixture_open(&f, ipv4);
		learn(&f);
		size_t bytes = make_packet(&f, 0, packet);

		for (size_t length = 0; length < bytes; length++)
			assert_false(passes(&f, f.tx.fd, packet, length));
		assert_false(passes(&f, f.tx.fd, packet, bytes + 4));
		assert_false(passes(&f, f.tx.fd, packet, VB_PACKET_MOST + 4));
		fixture_close(&f);
	}
}

/* The ICRC covers the ports: a packet that another sender repeats is not the first sender's. */
static void test_from_another_port(void **state)
{
	struct fixture f;
	uint8_t packet[VB_PACKET_MOST];

	(void)state;
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		uint16_t port = 0x1000;

		fixture_open(&f, ipv4);
		size_t bytes = make_packet(&f, 0, packet);
		int other = vb_udp_open_sender(ipv4, &port);

		assert_true(other >= 0);
		assert_true(passes(&f, f.tx.fd, packet, bytes));
		assert_false(passes(&f, other, packet, bytes));
		close(other);
		fixture_close(&f);
	}
}

/*
 * Other implementations number their IPv4 packets, and no socket shows how: from an unknown sender
 * any number is accepted. A sender that was seen to number as verbatim does is held to that. When
 * another host has the address, it is accepted in the end.
 */
static void test_ipv4_identification(void **state)
{
	struct fixture f;
	uint8_t foreign[VB_PACKET_MOST];
	int refused = 0;

	(void)state;
	fixture_open(&f, true);
	size_t bytes = make_packet(&f, FOREIGN_ID, foreign);

	assert_true(passes(&f, f.tx.fd, foreign, bytes));
	learn(&f);
	while (!passes(&f, f.tx.fd, foreign, bytes) && refused <= HABIT_ENDS)
		refused++;
	assert_int_equal(refused, HABIT_ENDS);
	fixture_close(&f);
}

/* No destination can be reached: the caller is told, and the reason is counted. */
static void test_unreachable(void **state)
{
	struct fixture f;
	struct vb_run run = run_of(64, 1024);
	uint64_t before = vb_reason_count(VB_REASON_DROP_UNREACHABLE);

	(void)state;
	fixture_open(&f, true);
	f.path.dgid[12] = 192; /* no route */
	assert_true(vb_udp_send(&f.tx, &f.path, 0, &run, 1024, f.sent) < 0);
	assert_int_equal(vb_reason_count(VB_REASON_DROP_UNREACHABLE), before + 1);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_look),
		cmocka_unit_test(test_look_at_others),
		cmocka_unit_test(test_look_at_damage),
		cmocka_unit_test(test_pairs_in_a_row),
		cmocka_unit_test(test_copy_again),
		cmocka_unit_test(test_copy_to_nowhere),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_burst_is_one_run),
		cmocka_unit_test(test_pair),
		cmocka_unit_test(test_run_bytes),
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_from_another_port),
		cmocka_unit_test(test_ipv4_identification),
		cmocka_unit_test(test_unreachable),
	};

	net_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
