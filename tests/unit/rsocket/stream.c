/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two streams: bytes arrive in order and whole, whatever the sizes; neither buffers nor credits are
 * overrun when nobody reads; each end is told as shutdown(2) promises; mappings are written into.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "pair.h"
#include "rsocket/iomap.h"
#include "support/check.h"

static struct resources r;

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
	static const struct vb_stream_sizes small = {16, 16, 0, 8192, 8192, 0};
	struct vb_stream_sizes sizes = end_sizes();

	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		const struct vb_stream_sizes *use = i & 1 ? &small : &sizes;
		struct end a, b;

		expect_case("%zu bytes, sent by %zu, read by %zu, %s buffers", rows[i / 2].size,
			    rows[i / 2].out, rows[i / 2].in, i & 1 ? "least" : "usual");
		ends_link(&a, &b, &r, use);
		EXPECT(carry(&a, &b, rows[i / 2].size, rows[i / 2].out, rows[i / 2].in));
		EXPECT(carry(&b, &a, rows[i / 2].size / 2, rows[i / 2].in, rows[i / 2].out));
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
	ends();
	peeking_and_vectors();
	mappings();
	resources_close(&r);
	return expect_done();
}
