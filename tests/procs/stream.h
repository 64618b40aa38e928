/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A stream of numbered messages from one process to another, each checked in content and order at
 * the receiver, with a hook by which a test does something to either process in the middle of it.
 *
 * Every message is a SEND. Every fourth follows a WRITE, which the receiver checks when the SEND
 * has come; every sixteenth is followed by a READ of the message.
 */
#ifndef TESTS_PROCS_STREAM_H
#define TESTS_PROCS_STREAM_H

#include "support/endpoint.h"

enum { STREAM_SIZE = 1024 * 1024, STREAM_WINDOW = 16 };

struct stream {
	struct endpoint *ep;
	uint64_t messages;
	/* Called in front of message n for every n divisible by hook_every; may be NULL. */
	void (*hook)(struct stream *stream, uint64_t number);
	uint64_t hook_every;
	void *hook_data;
	/* Messages that arrive later than this fail the test; 0: COMPLETION_WAIT_MS. */
	unsigned int patience_ms;
};

/* Before the connection: posts the receives of the receiving end. */
void stream_prepare(struct endpoint *ep);
void stream_send(struct stream *stream);
void stream_receive(struct stream *stream);

/* Two processes that play(), one of which sends; waits for the end of both. */
void stream_between(void (*play)(int sock, bool sends));

#endif
