/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a packet goes to the socket whose place is beside the block of its destination, whatever
 * the flow; a datagram for queue pair 1 to that of the communication id which it names. A socket
 * learns its place from its own probes, also after others have closed; a probe of another
 * process is not believed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "udp/address.h"
#include "udp/socket.h"
#include "udp/steer.h"
#include "unit/udp/net.h"
#include "wire/packet.h"

#define MEMBERS 5
#define ENTRIES 300u
#define PLACES  16u

static int member[MEMBERS];

static void members_open(bool ipv4)
{
	uint32_t buffer;

	for (int i = 0; i < MEMBERS; i++) {
		member[i] = vb_udp_open_receiver(ipv4, &buffer);
		assert_true(member[i] >= 0);
	}
}

static void members_close(void)
{
	for (int i = 0; i < MEMBERS; i++) {
		if (member[i] >= 0)
			close(member[i]);
	}
}

/* A packet for the queue pair, from this source port. */
static void send_bytes(bool ipv4, uint32_t qpn, uint16_t port, uint8_t *packet, size_t bytes)
{
	union vb_udp_address to;
	uint8_t gid[16];
	int fd = vb_udp_open_sender(ipv4, &port);
	uint32_t word = htonl(qpn);

	memcpy(packet + 4, &word, sizeof(word));
	net_gid(ipv4, 1, gid);
	socklen_t length = vb_udp_address_of(&to, gid, VB_UDP_PORT, 0);

	assert_true(fd >= 0);
	assert_int_equal(sendto(fd, packet, bytes, 0, &to.any, length), bytes);
	close(fd);
}

/* A packet of 48 bytes for the queue pair, from a source port of its own. */
static void send_to(bool ipv4, uint32_t qpn)
{
	uint8_t packet[48] = {4};

	send_bytes(ipv4, qpn, (uint16_t)(qpn >> 8), packet, sizeof(packet));
}

/* Of the next datagram, as the packet has it. */
static uint32_t mad_psn;

/* A datagram for queue pair 1 with these ids in front. */
static void send_mad(bool ipv4, uint16_t port, uint8_t attribute, uint32_t first, uint32_t second,
		     size_t bytes)
{
	uint8_t packet[280] = {0x64};

	memcpy(packet + 8, &mad_psn, sizeof(mad_psn));
	packet[37] = attribute;
	first = htonl(first);
	second = htonl(second);
	memcpy(packet + 44, &first, sizeof(first));
	memcpy(packet + 48, &second, sizeof(second));
	send_bytes(ipv4, VB_QPN_SERVICES, port, packet, bytes);
}

/* The sockets that have got packets, as bits; takes the packets. */
static uint32_t receivers(void)
{
	uint8_t packet[64];
	uint32_t got = 0;

	net_settle();
	for (int i = 0; i < MEMBERS; i++) {
		while (member[i] >= 0 && recv(member[i], packet, sizeof(packet), MSG_DONTWAIT) >= 0)
			got |= 1u << i;
	}
	return got;
}

static void entries_make(struct vb_steer_entry *entry, uint32_t count, uint32_t places)
{
	for (uint32_t i = 0; i < count; i++)
		entry[i] = (struct vb_steer_entry){3 + i * 16, i % places};
}

static void test_steered(void **state)
{
	struct vb_steer_entry entry[ENTRIES];
	static const uint32_t counts[] = {ENTRIES, 1, 2, 3, 64};

	(void)state;
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		members_open(ipv4);
		for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
			entries_make(entry, counts[k], MEMBERS);
			assert_int_equal(vb_steer_attach(member[0], entry, counts[k]), 0);
			for (uint32_t i = 0; i < counts[k]; i += 7) {
				send_to(ipv4, entry[i].block << VB_STEER_BLOCK_BITS | i);
				assert_int_equal(receivers(), 1u << entry[i].place);
			}
			/* Beside, before and behind what is known: one of them gets it. */
			send_to(ipv4, (entry[0].block + 1) << VB_STEER_BLOCK_BITS);
			assert_int_not_equal(receivers(), 0);
			send_to(ipv4, 1);
			assert_int_not_equal(receivers(), 0);
			send_to(ipv4, VB_QPN_MASK);
			assert_int_not_equal(receivers(), 0);
		}
		members_close();
	}
}

/* Messages that name their receiver's id go to its process; requests go to all in turn. */
static void test_services(void **state)
{
	static const uint8_t answers[] = {0x11, 0x12, 0x13, 0x14, 0x15, 0x16};
	static const uint8_t requests[] = {0x10, 0x17};
	struct vb_steer_entry entry[ENTRIES];
	uint16_t port = 50000;

	(void)state;
	members_open(true);
	entries_make(entry, ENTRIES, MEMBERS);
	assert_int_equal(vb_steer_attach(member[0], entry, ENTRIES), 0);
	for (uint32_t i = 0; i < ENTRIES; i += 13) {
		uint32_t id = entry[i].block << 18 | i,
			 other = entry[(i + 1) % ENTRIES].block << 18;

		for (size_t k = 0; k < sizeof(answers); k++) {
			send_mad(true, port++, answers[k], other, id, 280);
			assert_int_equal(receivers(), 1u << entry[i].place);
		}
		send_mad(true, port++, 0x18, id, other, 280);
		assert_int_equal(receivers(), 1u << entry[i].place);
	}
	/* Requests go to one after the other, by their PSN. */
	for (size_t k = 0; k < sizeof(requests); k++) {
		for (uint32_t i = 0; i < 3 * MEMBERS; i++) {
			mad_psn = htonl(0x80fffff0u + i);
			send_mad(true, 60000, requests[k], entry[0].block << 18,
				 entry[1].block << 18, 280);
			assert_int_equal(receivers(), 1u << ((0xfffff0 + i) % 0x1000000 % MEMBERS));
		}
	}
	send_mad(true, 60000, 0x12, entry[2].block << 18, 0, 280); /* no process has block 0 */
	assert_int_not_equal(receivers(), 0);
	/* Too short for a message: nothing is read behind its end. */
	for (size_t bytes = 24; bytes < 280; bytes += 16) {
		send_mad(true, port++, 0x15, entry[1].block << 18, entry[0].block << 18, bytes);
		assert_int_not_equal(receivers(), 0);
	}
	members_close();
}

/* More than a program holds, or than this kernel lets it be: what fits is steered. */
static void test_too_many(void **state)
{
	uint32_t count = 2 * VB_STEER_MOST;
	struct vb_steer_entry *entry = calloc(count, sizeof(*entry));

	(void)state;
	assert_non_null(entry);
	for (uint32_t i = 0; i < count; i++)
		entry[i] = (struct vb_steer_entry){1 + i, 2};
	members_open(true);
	assert_int_equal(vb_steer_attach(member[1], entry, count), 0);
	send_to(true, entry[0].block << VB_STEER_BLOCK_BITS);
	assert_int_equal(receivers(), 1u << 2);
	assert_int_equal(vb_steer_attach(member[1], entry, 0), 0);
	members_close();
	free(entry);
}

/* The place that member i is told by its own probes, in a group with a program. */
static int place_of(bool ipv4, int i)
{
	uint8_t packet[64];
	ssize_t n;

	vb_steer_probe(ipv4, PLACES);
	net_settle();
	while ((n = recv(member[i], packet, sizeof(packet), MSG_DONTWAIT)) >= 0)
		assert_true(vb_steer_probe_in(ipv4, packet, (uint32_t)n));
	receivers(); /* what the others got */
	return vb_steer_place(ipv4);
}

static void test_places(void **state)
{
	(void)state;
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		members_open(ipv4);
		assert_int_equal(vb_steer_attach(member[0], NULL, 0), 0);
		for (int i = 0; i < MEMBERS; i++)
			assert_int_equal(place_of(ipv4, i), i);
		/* The last one moves to the place of the one that has gone. */
		close(member[1]);
		member[1] = -1;
		assert_int_equal(place_of(ipv4, MEMBERS - 1), 1);
		assert_int_equal(place_of(ipv4, 2), 2);
		members_close();
	}
}

static void test_hostile_probes(void **state)
{
	uint8_t packet[64] = {0xff}, kept[64];
	ssize_t n;

	(void)state;
	members_open(true);
	assert_int_equal(vb_steer_attach(member[0], NULL, 0), 0);
	vb_steer_probe(false, 0);
	vb_steer_probe(true, 1);
	net_settle();
	n = recv(member[0], kept, sizeof(kept), MSG_DONTWAIT);
	assert_int_equal(n, 20);
	/* A probe of another process: a wrong secret. It counts as a probe, and is not believed. */
	assert_true(vb_steer_probe_in(true, packet, 20));
	assert_int_equal(vb_steer_place(true), -1);
	/* None: other lengths, another destination. */
	assert_false(vb_steer_probe_in(true, kept, 19));
	assert_false(vb_steer_probe_in(true, kept, 24));
	packet[7] = 1;
	assert_false(vb_steer_probe_in(true, packet, 20));
	/* That of the other family. */
	assert_true(vb_steer_probe_in(false, kept, 20));
	assert_int_equal(vb_steer_place(false), -1);
	assert_true(vb_steer_probe_in(true, kept, 20));
	assert_int_equal(vb_steer_place(true), 0);
	/* The first one counts. */
	kept[19] = 7;
	assert_true(vb_steer_probe_in(true, kept, 20));
	assert_int_equal(vb_steer_place(true), 0);
	members_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steered),        cmocka_unit_test(test_services),
		cmocka_unit_test(test_too_many),       cmocka_unit_test(test_places),
		cmocka_unit_test(test_hostile_probes),
	};

	net_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
