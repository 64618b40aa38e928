/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Streams of two processes: sixty-four megabytes in both directions at once, with each side asleep
 * when it has nothing to do, arrive whole and in order. No wake-up is lost: a process that slept for
 * its whole bound has failed. The kernel copies nothing: the buffers are the library's own, so a
 * message takes no system call for what it brings.
 */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "pair.h"
#include "support/check.h"
#include "support/filter.h"
#include "support/process.h"

enum { PIECE = 40000, PATIENCE_MS = 20000 };
static const uint64_t total = 64ull << 20;

static uint8_t byte_at(uint64_t position)
{
	return (uint8_t)(position * 131 + (position >> 12));
}

/* Until something came, as rpoll() sleeps. */
static void sleep_for_it(struct vb_stream *s)
{
	struct pollfd fd = {.fd = s->channel->fd, .events = POLLIN};

	if (vb_stream_arm(s))
		return;
	CHECK_EQ(poll(&fd, 1, PATIENCE_MS), 1);
	vb_stream_woken(s);
}

static ssize_t send_some(struct end *end, uint64_t sent)
{
	static uint8_t data[PIECE];
	size_t piece = total - sent < PIECE ? (size_t)(total - sent) : PIECE;

	for (size_t i = 0; i < piece; i++)
		data[i] = byte_at(sent + i);
	return piece ? end_send(end, data, piece) : 0;
}

static ssize_t receive_some(struct end *end, uint64_t received)
{
	static uint8_t data[PIECE + 1234];
	ssize_t n = end_receive(end, data, sizeof(data));

	for (ssize_t i = 0; i < n; i++)
		CHECK_EQ(data[i], byte_at(received + (uint64_t)i));
	return n;
}

/* A copy by the kernel in this thread is the end of the process. */
static void forbid_kernel_copies(void)
{
	static const uint32_t copies[] = {SYS_process_vm_writev, SYS_process_vm_readv};

	if (!filter_calls(copies, 2, SECCOMP_RET_KILL_PROCESS))
		fprintf(stderr, "seccomp(2) is not to be had: copies by the kernel are not seen\n");
}

static int run(int sock, void *argument)
{
	struct vb_stream_sizes sizes = end_sizes();
	uint64_t sent = 0, received = 0;
	struct resources r;
	struct end end;

	(void)argument;
	resources_open(&r, 16, false);
	end_open(&end, &r, &sizes);
	end_exchange(&end, &r, sock);
	forbid_kernel_copies();
	while (sent < total || received < total || !vb_stream_is_sent(&end.stream)) {
		ssize_t out = send_some(&end, sent);
		ssize_t in = received < total ? receive_some(&end, received) : -EAGAIN;

		CHECK_SAY((out >= 0 || out == -EAGAIN) && (in > 0 || in == -EAGAIN), "%zd %zd", out,
			  in);
		sent += out > 0 ? (size_t)out : 0;
		received += in > 0 ? (size_t)in : 0;
		if (out <= 0 && in <= 0 && !vb_stream_progress(&end.stream) &&
		    !(sent == total && received == total && vb_stream_is_sent(&end.stream)))
			sleep_for_it(&end.stream);
	}
	message_meet(sock);
	end_close(&end);
	resources_close(&r);
	return 0;
}

int main(void)
{
	struct process a, b;

	expect_case("bytes of both directions between two processes that sleep");
	process_start_pair(&a, run, &b, run, NULL);
	process_expect_success(&a, 100000);
	process_expect_success(&b, 100000);
	EXPECT(true);
	return expect_done();
}
