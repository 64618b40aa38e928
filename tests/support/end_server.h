/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a test talks to an end: one request and one reply, each a fixed struct. The same code then
 * serves an end of this process (a function call) and an end of another process (a message on a
 * socket).
 */
#ifndef TESTS_SUPPORT_END_SERVER_H
#define TESTS_SUPPORT_END_SERVER_H

#include "support/end.h"

#define END_CHUNK  4096 /* bytes of a buffer in one message */
#define END_POLLED 64   /* completions in one message */

enum end_verb {
	END_OPEN,
	END_CLOSE,
	END_BRING_TO,
	END_MODIFY,
	END_STATE,
	END_POST_RECV,
	END_POST_SEND,
	END_POLL,
	END_EVENT,
	END_POKE,
	END_PEEK,
	END_REG,
	END_DEREG,
	END_WINDOW,
	END_BIND,
	END_WINDOW_FREE,
	END_VANISH,
	END_COUNTER,
};

struct end_request {
	enum end_verb verb;
	int32_t a, b, c;
	uint64_t offset, length;
	struct end_config config;
	struct end_info peer;
	struct ibv_qp_attr attr;
	struct ibv_send_wr wr;
	struct ibv_sge sge[END_MAX_SGE];
	uint8_t data[END_CHUNK];
};

struct end_reply {
	int32_t result;
	struct end_info info;
	struct end_key key;
	struct end_event event;
	struct ibv_wc wc[END_POLLED];
	uint8_t data[END_CHUNK];
};

/* Executes @request on an end of this process. */
void end_serve(struct end *end, struct end_request *request, struct end_reply *reply);

#endif
