/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided transfers between two processes in buffers of ibv_alloc_buf(3), which both have mapped.
 * perftest has no way to use such memory. floor/two.h says how to call it.
 *
 *   lat         us: half the round trip of a WRITE of SIZE, both processes spin on its last word
 *   write_rate  millions of WRITEs of SIZE a second, each posted by itself
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

enum {
	WORD = 8,
	DEPTH = 128,
	LIST = 32,
	SMALL = 4096,
	SAMPLE_BYTES = 1 << 24,
	MESSAGES = 1 << 14,
	TRIPS = 2000
};

/* One process's end of the connection, in a mapped buffer of twice the size of a message. */
struct end {
	struct resources resources;
	struct endpoint ep;
	struct ibv_buf *buf;
	size_t size;
	int sock;
	unsigned int posted, done; /* requests */
	struct ibv_sge sge;
	struct ibv_send_wr wr[LIST]; /* a list that is made once, as perftest does */
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

/* The list that is posted from now on: `count` requests of `size` bytes. */
static void prepare(struct end *end, enum ibv_wr_opcode op, size_t size, unsigned int count)
{
	end->sge = ep_sge(&end->ep, end->size, (uint32_t)size);
	for (unsigned int i = 0; i < count; i++) {
		end->wr[i] = (struct ibv_send_wr){.sg_list = &end->sge, .num_sge = 1, .opcode = op};
		end->wr[i].wr.rdma.remote_addr = end->ep.remote.addr;
		end->wr[i].wr.rdma.rkey = end->ep.remote.rkey;
		end->wr[i].next = i + 1 < count ? &end->wr[i + 1] : NULL;
	}
}

/* Posts it; the last request is signalled if `signal`. */
static void post(struct end *end, unsigned int count, bool signal)
{
	struct ibv_send_wr *last = &end->wr[count - 1], *bad;

	end->posted += count;
	last->wr_id = end->posted;
	last->send_flags = signal ? IBV_SEND_SIGNALED : 0;
	CHECK_ZERO(ibv_post_send(end->ep.qp, end->wr, &bad));
}

/* How often the message is sent for one sample. */
static unsigned int repeats(size_t size, unsigned int most)
{
	size_t count = SAMPLE_BYTES / size;

	return count < 2 ? 2 : count > most ? most : (unsigned int)count;
}

/* A WRITE stores its last aligned word after all others. */
static void await_word(const struct end *end, size_t size, uint64_t value)
{
	const void *last = end->ep.buffer + size - WORD;
	const volatile uint64_t *word = last;

	while (*word != value)
		two_pause();
}

static void write_word(struct end *end, size_t size, uint64_t value)
{
	memcpy(end->ep.buffer + end->size + size - WORD, &value, sizeof(value));
	/* The rest of a large message goes on while its sender polls. */
	bool large = size > SMALL;

	post(end, 1, large || value % 16 == 0);
	while (end->posted - end->done >= (large ? 1 : DEPTH))
		reap(end);
}

static void other_run(void *argument)
{
	struct other *other = argument;
	uint64_t last = (uint64_t)repeats(other->size, TRIPS) * (TWO_SAMPLES + 1);
	struct end end;

	end_open(&end, other->sock, other->size);
	prepare(&end, IBV_WR_RDMA_WRITE, other->size, 1);
	for (uint64_t i = 1; other->part == ANSWER && i <= last; i++) {
		await_word(&end, other->size, i);
		write_word(&end, other->size, i);
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
	unsigned int trips = repeats(size, TRIPS);
	double sample[TWO_SAMPLES];
	uint64_t at = 1;
	struct end end;
	pid_t pid = meet(&end, size, ANSWER);

	prepare(&end, IBV_WR_RDMA_WRITE, size, 1);
	for (int s = -1; s < TWO_SAMPLES; s++) {
		uint64_t start = two_ns();

		for (uint64_t last = at + trips; at < last; at++) {
			write_word(&end, size, at);
			await_word(&end, size, at);
		}
		if (s >= 0)
			sample[s] = (double)(two_ns() - start) / trips / 2e3;
	}
	part_from(&end, pid);
	return two_median(sample, TWO_SAMPLES);
}

/* Nanoseconds of a message when `list` are posted at once and nobody waits for a single one. */
static double message_ns(enum ibv_wr_opcode op, size_t size, unsigned int list)
{
	unsigned int count = repeats(size, MESSAGES);
	unsigned int every = size < SMALL ? LIST : 1;
	double sample[TWO_SAMPLES];
	struct end end;
	pid_t pid = meet(&end, size, REST);

	prepare(&end, op, size, list);
	for (int s = -1; s < TWO_SAMPLES; s++) {
		uint64_t start = two_ns();

		for (unsigned int i = 0; i < count; i += list) {
			post(&end, list, (i + list) % every == 0);
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
