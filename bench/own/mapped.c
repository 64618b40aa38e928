/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided transfers between two processes in buffers of ibv_alloc_buf(3), which both have mapped.
 * perftest has no way to use such memory. floor/two.h says how to call it.
 *
 *   lat         us: half the round trip of an 8-byte WRITE, both processes spin on their memory
 *   write_rate  millions of 8-byte WRITEs a second, each posted by itself
 *   write_list  the same in lists of 32
 *   write, read GB/s of messages of SIZE
 */
#include "bench/floor/two.h"
#include "support/check.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WORD = 8, DEPTH = 128, LIST = 32, TRIPS = 2000, SAMPLE_BYTES = 1 << 25, MESSAGES = 1 << 15 };

/* One process's end of the connection, in a mapped buffer of twice the size of a message. */
struct end {
	struct resources resources;
	struct endpoint ep;
	struct ibv_buf *buf;
	size_t size;
	int sock;
	unsigned int posted, done; /* requests */
};

/* What the other process does until it is told to end. */
enum part { ANSWER, REST };

struct other {
	int sock;
	size_t size;
	enum part part;
};

static void end_open(struct end *end, int sock, size_t size)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	void *memory;

	memset(end, 0, sizeof(*end));
	end->size = size < 4096 ? 4096 : size;
	end->sock = sock;
	resources_open(&end->resources, 2 * DEPTH, false);
	config.cap.max_send_wr = 2 * DEPTH;
	memory = ibv_alloc_buf(end->resources.pd, 2 * end->size, &end->buf);
	CHECK(memory);
	memset(memory, 0, 2 * end->size);
	ep_open_on(&end->ep, &end->resources, &config, memory, 2 * end->size);
	ep_exchange(&end->ep, sock);
}

static void end_close(struct end *end)
{
	message_meet(end->sock);
	ep_close(&end->ep);
	ibv_free_buf(end->buf);
	resources_close(&end->resources);
}

/* Takes completions; each stands for all requests up to that of its number. */
static void reap(struct end *end)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(end->resources.cq, 16, wc);

	CHECK(n >= 0);
	for (int i = 0; i < n; i++) {
		CHECK_EQ(wc[i].status, IBV_WC_SUCCESS);
		end->done = (unsigned int)wc[i].wr_id;
	}
}

/* Posts one list of `count` requests of `size` bytes; the last is signalled if `signal`. */
static void post(struct end *end, enum ibv_wr_opcode op, size_t size, unsigned int count,
		 bool signal)
{
	struct ibv_sge sge = ep_sge(&end->ep, end->size, (uint32_t)size);
	struct ibv_send_wr wr[LIST];
	struct ibv_send_wr *bad;

	for (unsigned int i = 0; i < count; i++) {
		wr[i] = (struct ibv_send_wr){
			.wr_id = ++end->posted, .sg_list = &sge, .num_sge = 1, .opcode = op};
		wr[i].wr.rdma.remote_addr = end->ep.remote.addr;
		wr[i].wr.rdma.rkey = end->ep.remote.rkey;
		wr[i].next = i + 1 < count ? &wr[i + 1] : NULL;
	}
	if (signal)
		wr[count - 1].send_flags = IBV_SEND_SIGNALED;
	CHECK_ZERO(ibv_post_send(end->ep.qp, wr, &bad));
}

static void await_word(const struct end *end, uint64_t value)
{
	const volatile uint64_t *word = (const volatile uint64_t *)(const void *)end->ep.buffer;

	while (*word != value)
		two_pause();
}

static void write_word(struct end *end, uint64_t value)
{
	memcpy(end->ep.buffer + end->size, &value, sizeof(value));
	post(end, IBV_WR_RDMA_WRITE, WORD, 1, value % 16 == 0);
	while (end->posted - end->done >= DEPTH)
		reap(end);
}

static void other_run(void *argument)
{
	struct other *other = argument;
	struct end end;

	end_open(&end, other->sock, other->size);
	for (uint64_t i = 1; other->part == ANSWER && i <= (uint64_t)TRIPS * (TWO_SAMPLES + 1);
	     i++) {
		await_word(&end, i);
		write_word(&end, i);
	}
	end_close(&end);
}

/* Starts the other process and connects with it. */
static pid_t meet(struct end *end, size_t size, enum part part)
{
	struct other other = {.size = size, .part = part};
	int sock[2];
	pid_t pid;

	CHECK_ZERO(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock));
	other.sock = sock[1];
	pid = two_start(other_run, &other);
	close(sock[1]);
	end_open(end, sock[0], size);
	return pid;
}

static void part_from(struct end *end, pid_t pid)
{
	end_close(end);
	close(end->sock);
	two_end(pid);
}

static double lat(size_t size)
{
	double sample[TWO_SAMPLES];
	uint64_t at = 1;
	struct end end;
	pid_t pid = meet(&end, size, ANSWER);

	for (int s = -1; s < TWO_SAMPLES; s++) {
		uint64_t start = two_ns();

		for (uint64_t last = at + TRIPS; at < last; at++) {
			write_word(&end, at);
			await_word(&end, at);
		}
		if (s >= 0)
			sample[s] = (double)(two_ns() - start) / TRIPS / 2e3;
	}
	part_from(&end, pid);
	return two_median(sample, TWO_SAMPLES);
}

/* Nanoseconds of a message when `list` are posted at once and nobody waits for a single one. */
static double message_ns(enum ibv_wr_opcode op, size_t size, unsigned int list)
{
	unsigned int count = (unsigned int)(SAMPLE_BYTES / size);
	unsigned int every = size < 4096 ? LIST : 1;
	double sample[TWO_SAMPLES];
	struct end end;
	pid_t pid = meet(&end, size, REST);

	if (count > MESSAGES)
		count = MESSAGES;
	if (count < 2)
		count = 2;
	for (int s = -1; s < TWO_SAMPLES; s++) {
		uint64_t start = two_ns();

		for (unsigned int i = 0; i < count; i += list) {
			post(&end, op, size, list, (i + list) % every == 0);
			while (end.posted - end.done > DEPTH)
				reap(&end);
		}
		while (end.posted != end.done)
			reap(&end);
		if (s >= 0)
			sample[s] = (double)(two_ns() - start) / count;
	}
	part_from(&end, pid);
	return two_median(sample, TWO_SAMPLES);
}

static double write_rate(size_t size)
{
	return 1e3 / message_ns(IBV_WR_RDMA_WRITE, size, 1);
}

static double write_list(size_t size)
{
	return 1e3 / message_ns(IBV_WR_RDMA_WRITE, size, LIST);
}

static double write_bytes(size_t size)
{
	return (double)size / message_ns(IBV_WR_RDMA_WRITE, size, 1);
}

static double read_bytes(size_t size)
{
	return (double)size / message_ns(IBV_WR_RDMA_READ, size, 1);
}

int main(int argc, char **argv)
{
	static const struct two_figure figures[] = {
		{"lat", lat},           {"write_rate", write_rate}, {"write_list", write_list},
		{"write", write_bytes}, {"read", read_bytes},       {NULL, NULL}};

	promise("one-sided transfers between mapped buffers");
	return two_main(argc, argv, figures);
}
