/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sender and receiver of the stream of numbered messages. */
#include "procs/stream.h"

#include "support/check.h"
#include "support/process.h"

/* Receive buffers, then areas for WRITEs, then where the sender READs to. */
enum { MESSAGE = 256, RECEIVES = 32, WRITE_SLOTS = 16, WRITE_SIZE = 8192 };
enum { WRITE_AT = 64 * 1024, READ_AT = 512 * 1024 };
enum { KIND_SEND, KIND_WRITE, KIND_READ, KINDS };

static size_t send_slot(uint64_t number)
{
	return number % RECEIVES * MESSAGE;
}

static size_t write_slot(uint64_t number)
{
	return WRITE_AT + number / 4 % WRITE_SLOTS * WRITE_SIZE;
}

static void fill(struct endpoint *ep, size_t at, size_t size, uint64_t number)
{
	uint64_t *words = (uint64_t *)(void *)(ep->buffer + at);
	size_t i;

	for (i = 0; i < size / sizeof(*words); i++)
		words[i] = number;
}

static void check_filled(struct endpoint *ep, const char *what, size_t at, size_t size,
			 uint64_t number)
{
	const uint64_t *words = (const uint64_t *)(const void *)(ep->buffer + at);
	size_t i;

	for (i = 0; i < size / sizeof(*words); i++)
		CHECK_SAY(words[i] == number, "%s %llu: word %zu of %zu is %llu", what,
			  (unsigned long long)number, i, size / sizeof(*words),
			  (unsigned long long)words[i]);
}

void stream_prepare(struct endpoint *ep)
{
	uint64_t i;

	for (i = 0; i < RECEIVES; i++)
		CHECK_ZERO(ep_recv(ep, i, send_slot(i), MESSAGE));
}

/* Posts what belongs to one message; returns how many completions will come. */
static int post_message(struct endpoint *ep, uint64_t number)
{
	int count = 1;

	if (number % 4 == 0) {
		fill(ep, write_slot(number), WRITE_SIZE, number);
		CHECK_ZERO(ep_write(ep, number * KINDS + KIND_WRITE, write_slot(number), WRITE_SIZE,
				    write_slot(number), IBV_SEND_SIGNALED));
		count++;
	}
	fill(ep, send_slot(number), MESSAGE, number);
	CHECK_ZERO(ep_send(ep, number * KINDS + KIND_SEND, send_slot(number), MESSAGE,
			   IBV_SEND_SIGNALED));
	if (number % 16 == 0) {
		CHECK_ZERO(ep_read(ep, number * KINDS + KIND_READ, READ_AT, WRITE_SIZE,
				   write_slot(number), IBV_SEND_SIGNALED));
		count++;
	}
	return count;
}

static void take_completion(struct stream *stream)
{
	struct endpoint *ep = stream->ep;
	unsigned int patience = stream->patience_ms ? stream->patience_ms : COMPLETION_WAIT_MS;
	struct ibv_wc wc = {0};

	CHECK_SAY(completion_try(ep->resources->cq, &wc, patience),
		  "no send completion within %u ms", patience);
	if (wc.status != IBV_WC_SUCCESS)
		completion_print(&wc);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	if (wc.wr_id % KINDS == KIND_READ)
		check_filled(ep, "READ of", READ_AT, WRITE_SIZE, wc.wr_id / KINDS);
}

void stream_send(struct stream *stream)
{
	int outstanding = 0;
	uint64_t number;

	for (number = 0; number < stream->messages; number++) {
		if (stream->hook && number % stream->hook_every == 0)
			stream->hook(stream, number);
		outstanding += post_message(stream->ep, number);
		for (; outstanding > STREAM_WINDOW; outstanding--)
			take_completion(stream);
	}
	for (; outstanding; outstanding--)
		take_completion(stream);
}

void stream_receive(struct stream *stream)
{
	struct endpoint *ep = stream->ep;
	unsigned int patience = stream->patience_ms ? stream->patience_ms : COMPLETION_WAIT_MS;
	uint64_t number;

	for (number = 0; number < stream->messages; number++) {
		struct ibv_wc wc = {0};

		if (stream->hook && number % stream->hook_every == 0)
			stream->hook(stream, number);
		CHECK_SAY(completion_try(ep->resources->cq, &wc, patience),
			  "message %llu did not come within %u ms", (unsigned long long)number,
			  patience);
		if (wc.status != IBV_WC_SUCCESS)
			completion_print(&wc);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(wc.wr_id, number % RECEIVES);
		CHECK_EQ(wc.byte_len, MESSAGE);
		check_filled(ep, "SEND", send_slot(number), MESSAGE, number);
		if (number % 4 == 0)
			check_filled(ep, "WRITE in front of", write_slot(number), WRITE_SIZE,
				     number);
		CHECK_ZERO(ep_recv(ep, wc.wr_id, send_slot(number), MESSAGE));
	}
}

typedef void (*play_function)(int sock, bool sends);

static int sender(int sock, void *play)
{
	(*(play_function *)play)(sock, true);
	return 0;
}

static int receiver(int sock, void *play)
{
	(*(play_function *)play)(sock, false);
	return 0;
}

void stream_between(void (*play)(int sock, bool sends))
{
	struct process a, b;

	process_start_pair(&a, sender, &b, receiver, &play);
	process_expect_success(&a, 110000);
	process_expect_success(&b, PROCESS_PATIENCE_MS);
}
