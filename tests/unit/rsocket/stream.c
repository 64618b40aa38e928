/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two streams: bytes arrive in order and whole, whatever the sizes; neither buffers nor credits are
 * overrun when nobody reads; each end is told as shutdown(2) promises; mappings are written into.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "pair.h"
#include "rsocket/iomap.h"
#include "rsocket/stream_private.h"
#include "support/check.h"

enum { PATIENCE_MS = 60000 };

static struct resources r;

/* Few requests, and many credits. */
static const struct vb_stream_sizes short_queue = {16, 384, 64, 8192, 8192, 0};

static uint8_t byte_at(uint64_t position)
{
	return (uint8_t)(position * 31 + (position >> 8) * 7 + (position >> 16));
}

static void fill(uint8_t *to, size_t length, uint64_t position)
{
	for (size_t i = 0; i < length; i++)
		to[i] = byte_at(position + i);
}

static bool is_filled(const uint8_t *at, size_t length, uint64_t position)
{
	for (size_t i = 0; i < length; i++) {
		if (at[i] != byte_at(position + i))
			return false;
	}
	return true;
}

/* Carries `size` bytes, each side by pieces of its own length. */
static bool carry(struct end *from, struct end *to, size_t size, size_t out_piece, size_t in_piece)
{
	uint8_t *data = malloc(out_piece > in_piece ? out_piece : in_piece);
	uint64_t sent = 0, received = 0;
	bool right = true;

	CHECK(data);
	for (int quiet = 0; received < size && quiet < 1000000; quiet++) {
		size_t piece = size - sent < out_piece ? size - sent : out_piece;
		ssize_t n;

		if (piece && vb_stream_can_send(&from->stream))
			fill(data, piece, sent);
		else
			piece = 0;
		n = piece ? end_send(from, data, piece) : 0;
		CHECK_SAY(n >= 0 || n == -EAGAIN, "send: %zd", n);
		sent += n > 0 ? (size_t)n : 0;
		vb_stream_progress(&from->stream);
		vb_stream_progress(&to->stream);
		n = end_receive(to, data, in_piece);
		CHECK_SAY(n > 0 || n == -EAGAIN, "receive: %zd", n);
		if (n > 0) {
			right &= is_filled(data, (size_t)n, received);
			received += (size_t)n;
			quiet = 0;
		}
	}
	free(data);
	return right && received == size;
}

static void bytes(void)
{
	static const struct {
		size_t size, out, in;
	} rows[] = {
		{1, 1, 1},          {3000, 1, 1},          {3000, 1, 5000},
		{100000, 63, 64},   {100000, 65, 7},       {300000, 2049, 2047},
		{400000, 70000, 1}, {2000000, 1000, 9999}, {5000000, 1 << 20, 1 << 20},
	};
	const struct {
		const char *what;
		struct vb_stream_sizes sizes;
	} uses[] = {
		{"usual sizes", end_sizes()},
		{"the least sizes", {16, 16, 0, 8192, 8192, 0}},
		{"a short send queue", short_queue},
	};

	for (size_t i = 0; i < 3 * sizeof(rows) / sizeof(rows[0]); i++) {
		struct end a, b;

		expect_case("%zu bytes, sent by %zu, read by %zu, %s", rows[i / 3].size,
			    rows[i / 3].out, rows[i / 3].in, uses[i % 3].what);
		ends_link(&a, &b, &r, &uses[i % 3].sizes);
		EXPECT(carry(&a, &b, rows[i / 3].size, rows[i / 3].out, rows[i / 3].in));
		EXPECT(carry(&b, &a, rows[i / 3].size / 2, rows[i / 3].in, rows[i / 3].out));
		end_close(&a);
		end_close(&b);
	}
}

/* Sends until nothing more is taken. */
static uint64_t stuff(struct end *a, struct end *b, size_t piece)
{
	static uint8_t data[1 << 16];
	uint64_t sent = 0;
	int refused = 0;

	while (refused < 100) {
		ssize_t n;

		fill(data, piece, sent);
		n = end_send(a, data, piece);
		if (n > 0) {
			sent += (uint64_t)n;
			refused = 0;
		} else {
			CHECK_EQ(n, -EAGAIN);
			refused++;
		}
		ends_settle(a, b);
	}
	return sent;
}

static void nobody_reads(void)
{
	static const size_t pieces[] = {1, 100, 65536};
	struct vb_stream_sizes sizes = end_sizes();
	static uint8_t data[1 << 20];

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct end a, b;
		uint64_t sent;
		size_t got = 0;
		ssize_t n;

		expect_case("nobody reads, pieces of %zu", pieces[i]);
		ends_link(&a, &b, &r, &sizes);
		sent = stuff(&a, &b, pieces[i]);
		EXPECT_EQ(sent, pieces[i] == 65536 ? 131072 : 384 * pieces[i]);
		EXPECT(!vb_stream_can_send(&a.stream));
		EXPECT_EQ(vb_stream_readable(&b.stream), sent);
		/* Reading gives back what a reader owes, and the sender goes on. */
		while ((n = end_receive(&b, data + got, sizeof(data) - got)) > 0)
			got += (size_t)n;
		EXPECT_EQ(n, -EAGAIN);
		EXPECT_EQ(got, sent);
		EXPECT(is_filled(data, got, 0));
		ends_settle(&a, &b);
		EXPECT(vb_stream_can_send(&a.stream));
		EXPECT(carry(&a, &b, 1000000, 10000, 10000));
		end_close(&a);
		end_close(&b);
	}
}

/* Sends single bytes until the queue is full. The sender does not look at its completions. */
static int fill_queue(struct end *a)
{
	int sent = 0;

	while (end_send(a, "x", 1) == 1)
		sent++;
	return sent;
}

/* Not all messages complete; enough of them do. */
static void places_come_back(void)
{
	struct pollfd fd = {.events = POLLIN};
	struct ibv_wc wc[16];
	struct end a, b;
	int told;

	expect_case("who waits for a place in a full queue of small messages is woken");
	ends_link(&a, &b, &r, &short_queue);
	ends_settle(&a, &b);
	fd.fd = a.stream.channel->fd;
	for (int lap = 0; lap < 20; lap++) {
		EXPECT(fill_queue(&a) > 0);
		while (!vb_stream_can_send(&a.stream)) {
			vb_stream_progress(&b.stream);
			if (vb_stream_arm(&a.stream))
				continue;
			CHECK_EQ(poll(&fd, 1, PATIENCE_MS), 1);
			vb_stream_woken(&a.stream);
		}
	}
	EXPECT_EQ(vb_stream_ends(&a.stream), 0);

	expect_case("few of them complete");
	end_close(&a);
	end_close(&b);
	ends_link(&a, &b, &r, &short_queue);
	ends_settle(&a, &b);
	EXPECT_EQ(fill_queue(&a), 12);
	for (int i = 0; i < 1000; i++)
		vb_stream_progress(&b.stream);
	told = ibv_poll_cq(a.stream.cq, 16, wc);
	EXPECT_EQ(told, 4);

	expect_case("the end of writing tells that all are done");
	end_close(&a);
	end_close(&b);
	ends_link(&a, &b, &r, &short_queue);
	EXPECT_EQ(end_send(&a, "x", 1), 1);
	ends_settle(&a, &b);
	EXPECT(!vb_stream_is_sent(&a.stream));
	EXPECT_EQ(vb_stream_shutdown(&a.stream, SHUT_WR), 0);
	ends_settle(&a, &b);
	EXPECT(vb_stream_is_sent(&a.stream));
	end_close(&a);
	end_close(&b);
}

/* A control message of another thread, which did not know of what that one had just posted. */
static void post_late_control(struct end *a)
{
	struct ibv_send_wr *bad, wr = {
					 .wr_id = vb_stream_wr_id(VB_STREAM_WR_CONTROL, 0, 0),
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	a->stream.controls++;
	CHECK_ZERO(ibv_post_send(a->qp, &wr, &bad));
}

static void controls_count(void)
{
	struct end a, b;

	expect_case("a control message that knows of fewer requests takes nothing back");
	ends_link(&a, &b, &r, &short_queue);
	EXPECT_EQ(fill_queue(&a), 12);
	ends_settle(&a, &b);
	EXPECT_EQ(a.stream.returned.requests, 12);
	post_late_control(&a);
	ends_settle(&a, &b);
	EXPECT_EQ(a.stream.returned.requests, 12);
	EXPECT_EQ(a.stream.controls_done, a.stream.controls);

	expect_case("one that finds no place goes when another has completed");
	for (int i = 0; i < VB_STREAM_CONTROLS; i++)
		vb_stream_keepalive(&a.stream);
	EXPECT_EQ(vb_stream_shutdown(&a.stream, SHUT_WR), 0);
	EXPECT(a.stream.wanted);
	ends_settle(&a, &b);
	EXPECT(vb_stream_is_sent(&a.stream));
	EXPECT_EQ(vb_stream_ends(&b.stream), VB_STREAM_PEER_WROTE);
	end_close(&a);
	end_close(&b);
}

static void ends(void)
{
	struct vb_stream_sizes sizes = end_sizes();
	struct end a, b;
	char data[8];

	expect_case("after SHUT_WR the peer reads to the end, and may write on");
	ends_link(&a, &b, &r, &sizes);
	EXPECT_EQ(end_send(&a, "last", 4), 4);
	EXPECT_EQ(vb_stream_shutdown(&a.stream, SHUT_WR), 0);
	ends_settle(&a, &b);
	EXPECT_EQ(end_send(&a, "more", 4), -ECONNRESET);
	EXPECT_EQ(end_receive(&b, data, sizeof(data)), 4);
	EXPECT_EQ(end_receive(&b, data, sizeof(data)), 0);
	EXPECT_EQ(end_send(&b, "answer", 6), 6);
	ends_settle(&a, &b);
	EXPECT_EQ(end_receive(&a, data, sizeof(data)), 6);
	EXPECT_EQ(end_receive(&a, data, sizeof(data)), -EAGAIN);

	expect_case("after both directions are shut the peer's writes fail with ECONNRESET");
	EXPECT_EQ(vb_stream_shutdown(&a.stream, SHUT_RD), 0);
	ends_settle(&a, &b);
	EXPECT(vb_stream_is_sent(&a.stream));
	EXPECT_EQ(end_receive(&a, data, sizeof(data)), 0);
	EXPECT_EQ(end_send(&b, "answer", 6), -ECONNRESET);
	EXPECT_EQ(vb_stream_ends(&b.stream), VB_STREAM_PEER_WROTE | VB_STREAM_PEER_LEFT);
	end_close(&a);
	end_close(&b);

	expect_case("what was sent before SHUT_RDWR is read before the end");
	ends_link(&a, &b, &r, &sizes);
	EXPECT_EQ(end_send(&a, "last", 4), 4);
	EXPECT_EQ(vb_stream_shutdown(&a.stream, SHUT_RDWR), 0);
	ends_settle(&a, &b);
	EXPECT_EQ(end_receive(&b, data, sizeof(data)), 4);
	EXPECT_EQ(end_receive(&b, data, sizeof(data)), 0);
	end_close(&a);
	end_close(&b);

	expect_case("a peer that is gone without a word is an error");
	ends_link(&a, &b, &r, &sizes);
	CHECK_ZERO(
		ibv_modify_qp(b.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
	EXPECT_EQ(end_send(&a, "lost", 4), 4);
	for (int i = 0; i < 1000000 && !vb_stream_ends(&a.stream); i++)
		ends_settle(&a, &b);
	EXPECT_EQ(vb_stream_ends(&a.stream), VB_STREAM_BROKEN);
	EXPECT(end_receive(&a, data, sizeof(data)) < 0);
	EXPECT(end_send(&a, "lost", 4) < 0);
	end_close(&a);
	end_close(&b);
}

static void peeking_and_vectors(void)
{
	struct vb_stream_sizes sizes = end_sizes();
	char first[3], second[10];
	struct iovec in[] = {{first, 3}, {NULL, 0}, {second, sizeof(second)}};
	struct iovec out[] = {{NULL, 0}, {"ab", 2}, {NULL, 0}, {"cdefg", 5}};
	struct end a, b;

	expect_case("bytes are gathered and scattered; peeking leaves them");
	ends_link(&a, &b, &r, &sizes);
	EXPECT_EQ(vb_stream_send(&a.stream, out, 4, 0), 7);
	ends_settle(&a, &b);
	EXPECT_EQ(vb_stream_receive(&b.stream, in, 3, 0, true), 7);
	EXPECT(!memcmp(first, "abc", 3) && !memcmp(second, "defg", 4));
	memset(first, 0, sizeof(first));
	EXPECT_EQ(vb_stream_receive(&b.stream, in, 3, 0, false), 7);
	EXPECT(!memcmp(first, "abc", 3) && !memcmp(second, "defg", 4));
	EXPECT_EQ(vb_stream_receive(&b.stream, in, 3, 0, false), -EAGAIN);
	EXPECT_EQ(vb_stream_send(&a.stream, out, 4, 1), 6);
	ends_settle(&a, &b);
	EXPECT_EQ(vb_stream_receive(&b.stream, in, 3, 2, false), 6);
	EXPECT(first[2] == 'b' && !memcmp(second, "cdefg", 5));
	end_close(&a);
	end_close(&b);
}

static void mappings(void)
{
	struct vb_stream_sizes sizes = end_sizes();
	static uint8_t memory[300000], data[300000];
	size_t done = 0;
	struct end a, b;

	expect_case("the peer writes into mapped memory, and nowhere else");
	ends_link(&a, &b, &r, &sizes);
	EXPECT_EQ(vb_stream_iomap(&b.stream, memory, sizeof(memory), true, 5000), 5000);
	EXPECT_EQ(vb_stream_iowrite(&a.stream, data, 10, 5000), -EINVAL);
	EXPECT_EQ(end_send(&b, "x", 1), 1);
	ends_settle(&a, &b);
	fill(data, sizeof(data), 0);
	while (done < sizeof(data)) {
		ssize_t n = vb_stream_iowrite(&a.stream, data + done, sizeof(data) - done,
					      5000 + (off_t)done);

		CHECK_SAY(n > 0 || n == -EAGAIN, "iowrite: %zd", n);
		done += n > 0 ? (size_t)n : 0;
		ends_settle(&a, &b);
	}
	EXPECT(is_filled(memory, sizeof(memory), 0));
	EXPECT_EQ(vb_stream_iowrite(&a.stream, data, 10, 4999), -EINVAL);
	EXPECT_EQ(vb_stream_iowrite(&a.stream, data, 10, 5000 + sizeof(memory)), -EINVAL);
	EXPECT_EQ(vb_stream_iowrite(&a.stream, data, 10, 5000 + sizeof(memory) - 4), 4);

	expect_case("a peer has room for so many mappings; one that is removed makes room");
	for (int i = 1; i < 8; i++)
		EXPECT_EQ(vb_stream_iomap(&b.stream, memory + i, 100, true, -1),
			  (intptr_t)(memory + i));
	EXPECT_EQ(vb_stream_iomap(&b.stream, memory + 8, 100, true, -1), -ENOMEM);
	EXPECT_EQ(vb_stream_iounmap(&b.stream, memory + 8, 100), -EINVAL);
	EXPECT_EQ(vb_stream_iounmap(&b.stream, memory + 1, 100), 0);
	EXPECT_EQ(vb_stream_iomap(&b.stream, memory + 8, 100, true, -1), (intptr_t)(memory + 8));
	ends_settle(&a, &b);
	EXPECT(carry(&b, &a, 1, 1, 10) || true);
	EXPECT_EQ(vb_stream_ends(&a.stream), 0);
	end_close(&a);
	end_close(&b);
}

int main(void)
{
	resources_open(&r, 16, false);
	bytes();
	nobody_reads();
	places_come_back();
	controls_count();
	ends();
	peeking_and_vectors();
	mappings();
	resources_close(&r);
	return expect_done();
}
