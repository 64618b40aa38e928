/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Usage: udp_raw [-m rate|trip] [-s BYTES] [-n COUNT] -p PORT [ADDRESS] What UDP alone carries
 * between two hosts, to hold the link's figures against. Without ADDRESS it serves one client and
 * ends.
 *   rate  COUNT times 1 MiB in datagrams of BYTES + 16 (a RoCEv2 packet's headers and check), sent
 *         as UDP_SEGMENT bursts, read by recvmmsg(2) with UDP_GRO. No packet is lost: the receiver
 *         counts back what it has read, and the sender keeps no more in flight than the receiver's
 *         buffer takes. Prints "rate GB/s", of which the 16 bytes are no part.
 *   trip  COUNT datagrams of BYTES + 16 back and forth, both sides polling. Prints "trip US", half
 *         a round trip (median).
 * A TCP connection on the same port number says when both are there and when it is over, as
 * perftest's does.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define OVERHEAD      16u
#define MESSAGE       (1u << 20)
#define BURST_BYTES   65000u
#define BURST_PACKETS 64u
#define BATCH         8
#define BUFFER        (16 << 20)
#define LOOK          256u /* empty reads between two looks at the connection */
#define STUCK_NS      2000000000ull

struct plan {
	bool trip;
	uint32_t bytes;
	uint32_t count;
	uint16_t port;
	const char *address; /* NULL: serve */
};

static uint8_t data[BATCH][65536];

_Noreturn static void fail(const char *what)
{
	fprintf(stderr, "udp_raw: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct sockaddr_in address_of(const struct plan *p)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(p->port)};

	if (p->address && inet_pton(AF_INET, p->address, &a.sin_addr) != 1)
		fail(p->address);
	return a;
}

/* Returns the TCP connection: the accepted one of the server, or the client's. */
static int meet(const struct plan *p)
{
	struct sockaddr_in a = address_of(p);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1;

	if (fd < 0)
		fail("socket");
	if (p->address) {
		if (connect(fd, (struct sockaddr *)&a, sizeof(a)))
			fail("connect");
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 1))
		fail("listen");
	int accepted = accept(fd, NULL, NULL);

	if (accepted < 0)
		fail("accept");
	close(fd);
	return accepted;
}

/* Opens the UDP socket; *room gets the capacity of its receive buffer. */
static int open_udp(const struct plan *p, uint32_t *room)
{
	struct sockaddr_in a = address_of(p);
	socklen_t length = sizeof(*room);
	int wanted = BUFFER;
	int one = 1;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		fail("socket");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &wanted, sizeof(wanted)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &wanted, sizeof(wanted));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &wanted, sizeof(wanted)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof(wanted));
	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, room, &length))
		fail("SO_RCVBUF");
	if (setsockopt(fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one)))
		fail("UDP_GRO");
	if (p->address ? connect(fd, (struct sockaddr *)&a, sizeof(a))
		       : bind(fd, (struct sockaddr *)&a, sizeof(a)))
		fail("udp address");
	return fd;
}

static bool is_over(int connection)
{
	uint8_t byte;

	return recv(connection, &byte, 1, MSG_DONTWAIT) == 0;
}

/* The number of packets: merged datagrams count as the packets that they were. */
static uint32_t packets_of(struct msghdr *m, uint32_t bytes)
{
	int segment = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
			memcpy(&segment, CMSG_DATA(c), sizeof(segment));
	}
	return segment > 0 ? (bytes + (uint32_t)segment - 1) / (uint32_t)segment : 1;
}

static void serve_rate(int fd, int connection)
{
	struct mmsghdr m[BATCH];
	struct iovec piece[BATCH];
	struct sockaddr_in from;
	uint8_t control[BATCH][CMSG_SPACE(sizeof(int))];
	uint64_t got = 0;

	for (uint32_t looks = 1;; looks++) {
		for (int i = 0; i < BATCH; i++) {
			piece[i] = (struct iovec){data[i], sizeof(data[i])};
			m[i].msg_hdr = (struct msghdr){.msg_name = &from,
						       .msg_namelen = sizeof(from),
						       .msg_iov = &piece[i],
						       .msg_iovlen = 1,
						       .msg_control = control[i],
						       .msg_controllen = sizeof(control[i])};
		}
		int n = recvmmsg(fd, m, BATCH, MSG_DONTWAIT, NULL);

		for (int i = 0; i < n; i++)
			got += packets_of(&m[i].msg_hdr, m[i].msg_len);
		if (n > 0)
			(void)sendto(fd, &got, sizeof(got), MSG_DONTWAIT, (struct sockaddr *)&from,
				     sizeof(from));
		else if (looks % LOOK == 0 && is_over(connection))
			return;
	}
}

static void serve_trip(int fd, int connection)
{
	struct sockaddr_in from;

	for (uint32_t looks = 1;; looks++) {
		socklen_t length = sizeof(from);
		ssize_t n = recvfrom(fd, data[0], sizeof(data[0]), MSG_DONTWAIT,
				     (struct sockaddr *)&from, &length);

		if (n > 0)
			(void)sendto(fd, data[0], (size_t)n, MSG_DONTWAIT, (struct sockaddr *)&from,
				     length);
		else if (looks % LOOK == 0 && is_over(connection))
			return;
	}
}

static void send_burst(int fd, uint32_t packets, uint32_t size)
{
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint16_t))] = {0};
	struct iovec piece = {data[0], (size_t)packets * size};
	struct msghdr m = {.msg_iov = &piece,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	uint16_t segment = (uint16_t)size;

	c->cmsg_level = IPPROTO_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(segment));
	memcpy(CMSG_DATA(c), &segment, sizeof(segment));
	while (sendmsg(fd, &m, 0) < 0) {
		if (errno != EAGAIN && errno != ENOBUFS)
			fail("sendmsg with UDP_SEGMENT");
	}
}

/* Waits until the receiver has read all but `room` of the `sent` packets. */
static void wait_room(int fd, uint64_t sent, uint64_t room, uint64_t *got)
{
	uint64_t until = 0;
	uint64_t heard;

	for (uint32_t looks = 1; sent - *got > room; looks++) {
		if (recv(fd, &heard, sizeof(heard), MSG_DONTWAIT) == sizeof(heard)) {
			*got = heard > *got ? heard : *got;
			continue;
		}
		if (looks % LOOK)
			continue;
		if (!until)
			until = now_ns() + STUCK_NS;
		errno = ETIMEDOUT;
		if (now_ns() > until)
			fail("packets were lost");
	}
}

static void drive_rate(int fd, const struct plan *p, uint32_t buffer)
{
	uint32_t size = p->bytes + OVERHEAD;
	uint32_t most = BURST_BYTES / size < BURST_PACKETS ? BURST_BYTES / size : BURST_PACKETS;
	uint64_t total = (uint64_t)p->count * (MESSAGE / p->bytes);
	/* The buffer counts pages, not bytes: a packet may cost four times its size. */
	uint64_t window = buffer / (4 * size) > most ? buffer / (4 * size) : most;
	uint64_t start = now_ns();
	uint64_t sent = 0;
	uint64_t got = 0;

	while (sent < total) {
		uint32_t packets = total - sent < most ? (uint32_t)(total - sent) : most;

		wait_room(fd, sent, window - packets, &got);
		send_burst(fd, packets, size);
		sent += packets;
	}
	wait_room(fd, sent, 0, &got);
	printf("rate %.3f\n", (double)total * p->bytes / (double)(now_ns() - start));
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a;
	uint32_t y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void drive_trip(int fd, const struct plan *p)
{
	uint32_t *ns = calloc(p->count, sizeof(*ns));
	size_t size = p->bytes + OVERHEAD;

	if (!ns)
		fail("memory");
	for (uint32_t i = 0; i < p->count; i++) {
		uint64_t start = now_ns();

		if (send(fd, data[0], size, 0) < 0)
			fail("send");
		while (recv(fd, data[1], sizeof(data[1]), MSG_DONTWAIT) < 0) {
			if (errno != EAGAIN)
				fail("recv");
		}
		ns[i] = (uint32_t)(now_ns() - start);
	}
	qsort(ns, p->count, sizeof(*ns), compare);
	uint32_t median = ns[p->count / 2];

	printf("trip %.3f\n", (double)median / 2000.0);
	free(ns);
}

static void parse(struct plan *p, int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "m:s:n:p:")) != -1) {
		if (option == 'm')
			p->trip = !strcmp(optarg, "trip");
		else if (option == 's')
			p->bytes = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'n')
			p->count = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'p')
			p->port = (uint16_t)strtoul(optarg, NULL, 10);
		else
			exit(2);
	}
	p->address = optind < argc ? argv[optind] : NULL;
	errno = EINVAL;
	if (!p->port || !p->count || !p->bytes || p->bytes > 8192)
		fail("-p, -n or -s");
}

int main(int argc, char **argv)
{
	struct plan p = {.bytes = 4096, .count = 1000};
	uint32_t room = 0;
	int connection;
	int fd;

	parse(&p, argc, argv);
	if (!p.address) {
		connection = meet(&p);
		fd = open_udp(&p, &room);
		if (send(connection, &room, sizeof(room), 0) != sizeof(room))
			fail("send");
		(p.trip ? serve_trip : serve_rate)(fd, connection);
		return 0;
	}
	connection = meet(&p);
	if (recv(connection, &room, sizeof(room), MSG_WAITALL) != sizeof(room))
		fail("the server went away");
	uint32_t own;

	fd = open_udp(&p, &own);
	if (p.trip)
		drive_trip(fd, &p);
	else
		drive_rate(fd, &p, room);
	return 0;
}
