/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two streams of one process, or one in each of two, on queue pairs that the test connects. */
#ifndef TESTS_UNIT_RSOCKET_PAIR_H
#define TESTS_UNIT_RSOCKET_PAIR_H

#include "rsocket/stream.h"
#include "support/endpoint.h"

struct end {
	struct vb_stream stream;
	struct vb_rs_hello hello;
	struct ibv_qp *qp;
	struct peer local;
};

struct vb_stream_sizes end_sizes(void);

/* A stream with its queue pair in INIT. */
void end_open(struct end *end, struct resources *r, const struct vb_stream_sizes *sizes);
/* Brings the queue pair to RTS. The stream is not begun. */
void end_connect(struct end *end, struct resources *r, const struct peer *peer);
void end_close(struct end *end);

/* Both of one process, begun. */
void ends_link(struct end *a, struct end *b, struct resources *r,
	       const struct vb_stream_sizes *sizes);
/* With the end in the process behind `sock`. */
void end_exchange(struct end *end, struct resources *r, int sock);

/* Progress on both until neither has anything more. */
void ends_settle(struct end *a, struct end *b);

/* One buffer. */
ssize_t end_send(struct end *end, const void *data, size_t length);
ssize_t end_receive(struct end *end, void *data, size_t length);

#endif
