/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The functions of end.h: each one request to an end, which is here or in another process. */
#include "support/end.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <signal.h>

#include "support/check.h"
#include "support/end_server.h"

#define END_SOCKET_ENV "VB_TEST_END_SOCKET"

/*
 * The other process: executes requests until it is told to close, and passes on the result of its
 * checks.
 */
static void obey(int sock)
{
	static struct end_request request;
	static struct end_reply reply;
	struct end end = {.sock = -1};

	prctl(PR_SET_PDEATHSIG, SIGKILL);         /* no process outlives a test that failed */
	CHECK(freopen("/dev/null", "w", stdout)); /* the near end reports */
	expect_case("far end");
	for (;;) {
		if (recv(sock, &request, sizeof(request), 0) != (ssize_t)sizeof(request))
			exit(1);
		memset(&reply, 0, sizeof(reply));
		end_serve(&end, &request, &reply);
		if (send(sock, &reply, sizeof(reply), 0) != (ssize_t)sizeof(reply))
			exit(1);
		if (request.verb == END_CLOSE)
			exit(expect_done());
	}
}

enum end_place end_main(int argc, char **argv)
{
	const char *sock = getenv(END_SOCKET_ENV);

	if (sock)
		obey(atoi(sock));
	setvbuf(stdout, NULL, _IOLBF, 0);
	return argc > 1 && !strcmp(argv[1], "--two-processes") ? END_APART : END_HERE;
}

static void start_apart(struct end *end)
{
	int pair[2];

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
	end->pid = fork();
	CHECK(end->pid >= 0);
	if (!end->pid) {
		char number[16];

		close(pair[0]);
		snprintf(number, sizeof(number), "%d", pair[1]);
		setenv(END_SOCKET_ENV, number, 1);
		execl("/proc/self/exe", "far-end", (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	end->sock = pair[0];
}

static void ask(struct end *end, struct end_request *request, struct end_reply *reply)
{
	if (end->place == END_HERE) {
		end_serve(end, request, reply);
		return;
	}
	CHECK(send(end->sock, request, sizeof(*request), MSG_NOSIGNAL) ==
	      (ssize_t)sizeof(*request));
	CHECK(recv(end->sock, reply, sizeof(*reply), 0) == (ssize_t)sizeof(*reply));
}

struct end_config end_defaults(enum ibv_qp_type type)
{
	struct end_config config = {
		.type = type,
		.send_wr = 64,
		.recv_wr = 64,
		.send_sge = 4,
		.recv_sge = 4,
		.inline_data = 64,
		.cqe = 256,
		.srq_sge = 4,
		.buf_len = 1 << 16,
		.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.qp_access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			     IBV_ACCESS_REMOTE_ATOMIC,
		.qkey = 0x11111111,
		.psn = 0xfffff0, /* so that every longer test crosses the wrap */
		.mtu = IBV_MTU_1024,
		.rd_atomic = 4,
		.dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	if (type == IBV_QPT_UC)
		config.qp_access = IBV_ACCESS_REMOTE_WRITE;
	return config;
}

void end_open(struct end *end, const struct end_config *config, enum end_place place)
{
	struct end_request request = {.verb = END_OPEN, .config = *config};
	struct end_reply reply = {0};

	memset(end, 0, sizeof(*end));
	end->place = place;
	end->sock = -1;
	if (place == END_APART)
		start_apart(end);
	ask(end, &request, &reply);
	end->config = *config;
	end->info = reply.info;
}

void end_close(struct end *end)
{
	struct end_request request = {.verb = END_CLOSE};
	struct end_reply reply = {0};
	int status;

	ask(end, &request, &reply);
	EXPECT_EQ(reply.result, 0);
	if (end->place == END_HERE)
		return;
	close(end->sock);
	CHECK(waitpid(end->pid, &status, 0) == end->pid);
	EXPECT_SAY(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		   "the far end's process ended with %#x", (unsigned int)status);
}

int end_bring_to(struct end *end, const struct end_info *peer, enum ibv_qp_state state)
{
	struct end_request request = {.verb = END_BRING_TO, .a = (int)state, .peer = *peer};
	struct end_reply reply = {0};

	ask(end, &request, &reply);
	return reply.result;
}

void end_link(struct end *a, struct end *b)
{
	CHECK(end_bring_to(a, &b->info, IBV_QPS_RTS) == 0);
	if (b != a)
		CHECK(end_bring_to(b, &a->info, IBV_QPS_RTS) == 0);
}

void end_pair(struct end *near, struct end *far, const struct end_config *near_config,
	      const struct end_config *far_config, enum end_place place)
{
	end_open(near, near_config, END_HERE);
	end_open(far, far_config, place);
	end_link(near, far);
}

void end_pair_close(struct end *near, struct end *far)
{
	end_close(near);
	end_close(far);
}

int end_modify(struct end *end, const struct ibv_qp_attr *attr, int mask)
{
	struct end_request request = {.verb = END_MODIFY, .a = mask, .attr = *attr};
	struct end_reply reply = {0};

	ask(end, &request, &reply);
	return reply.result;
}

int end_move(struct end *end, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	return end_modify(end, &attr, IBV_QP_STATE);
}

enum ibv_qp_state end_state(struct end *end)
{
	struct end_request request = {.verb = END_STATE};
	struct end_reply reply = {0};

	ask(end, &request, &reply);
	return (enum ibv_qp_state)reply.result;
}

int end_post_recv(struct end *end, uint64_t wr_id, const struct ibv_sge *sge, int num_sge)
{
	struct end_request request = {.verb = END_POST_RECV, .a = num_sge, .wr.wr_id = wr_id};
	struct end_reply reply = {0};

	CHECK(num_sge <= END_MAX_SGE);
	if (num_sge > 0)
		memcpy(request.sge, sge, sizeof(*sge) * (size_t)num_sge);
	ask(end, &request, &reply);
	return reply.result;
}

int end_post_send(struct end *end, const struct ibv_send_wr *wr)
{
	struct end_request request = {.verb = END_POST_SEND, .wr = *wr};
	struct end_reply reply = {0};

	CHECK(wr->num_sge <= END_MAX_SGE);
	if (wr->num_sge > 0)
		memcpy(request.sge, wr->sg_list, sizeof(*wr->sg_list) * (size_t)wr->num_sge);
	ask(end, &request, &reply);
	return reply.result;
}

int end_poll(struct end *end, enum end_cq which, struct ibv_wc *wc, int max, int ms)
{
	struct end_request request = {.verb = END_POLL, .a = (int)which, .b = max, .c = ms};
	struct end_reply reply = {0};

	CHECK(max <= END_POLLED);
	ask(end, &request, &reply);
	memcpy(wc, reply.wc, sizeof(*wc) * (size_t)reply.result);
	return reply.result;
}

int end_poll_one(struct end *end, enum end_cq which, struct ibv_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	return end_poll(end, which, wc, 1, END_WAIT_MS) == 1 ? (int)wc->status : -1;
}

int end_poll_none(struct end *end, enum end_cq which)
{
	struct ibv_wc wc;

	return end_poll(end, which, &wc, 1, END_QUIET_MS);
}

bool end_event(struct end *end, struct end_event *event, int ms)
{
	struct end_request request = {.verb = END_EVENT, .a = ms};
	struct end_reply reply = {0};

	ask(end, &request, &reply);
	*event = reply.event;
	return event->type >= 0;
}

bool end_wait_event(struct end *end, enum ibv_event_type type, int ms)
{
	struct end_event event;

	while (end_event(end, &event, ms))
		if (event.type == (int)type)
			return true;
	return false;
}

void end_poke(struct end *end, size_t offset, const void *data, size_t length)
{
	struct end_request request = {.verb = END_POKE};
	struct end_reply reply = {0};

	for (size_t done = 0; done < length; done += request.length) {
		request.offset = offset + done;
		request.length = length - done < END_CHUNK ? length - done : END_CHUNK;
		memcpy(request.data, (const uint8_t *)data + done, request.length);
		ask(end, &request, &reply);
	}
}

void end_peek(struct end *end, size_t offset, void *data, size_t length)
{
	struct end_request request = {.verb = END_PEEK};
	struct end_reply reply = {0};

	for (size_t done = 0; done < length; done += request.length) {
		request.offset = offset + done;
		request.length = length - done < END_CHUNK ? length - done : END_CHUNK;
		ask(end, &request, &reply);
		memcpy((uint8_t *)data + done, reply.data, request.length);
	}
}

void end_fill(struct end *end, size_t offset, int byte, size_t length)
{
	uint8_t *data = malloc(length);

	CHECK(data);
	memset(data, byte, length);
	end_poke(end, offset, data, length);
	free(data);
}

bool end_is_filled(struct end *end, size_t offset, int byte, size_t length)
{
	uint8_t *data = malloc(length);
	size_t same = 0;

	CHECK(data);
	end_peek(end, offset, data, length);
	while (same < length && data[same] == (uint8_t)byte)
		same++;
	free(data);
	return same == length;
}

int end_reg(struct end *end, size_t offset, size_t length, int access, bool other_pd,
	    struct end_key *key)
{
	struct end_request request = {
		.verb = END_REG, .offset = offset, .length = length, .a = access, .b = other_pd};
	struct end_reply reply = {0};

	ask(end, &request, &reply);
	*key = reply.key;
	return reply.result;
}

int end_dereg(struct end *end, int index)
{
	struct end_request request = {.verb = END_DEREG, .a = index};
	struct end_reply reply = {0};

	ask(end, &request, &reply);
	return reply.result;
}

int end_window(struct end *end, int index, enum ibv_mw_type type)
{
	struct end_request request = {.verb = END_WINDOW, .a = index, .b = (int)type};
	struct end_reply reply = {0};

	ask(end, &request, &reply);
	return reply.result;
}

int end_bind(struct end *end, int index, const struct end_key *region, size_t offset, size_t length,
	     int access, uint32_t *rkey)
{
	struct end_request request = {.verb = END_BIND,
				      .a = index,
				      .b = region ? region->index : -1,
				      .c = access,
				      .offset = offset,
				      .length = length};
	struct end_reply reply = {0};

	ask(end, &request, &reply);
	*rkey = reply.key.rkey;
	return reply.result;
}

int end_window_free(struct end *end, int index)
{
	struct end_request request = {.verb = END_WINDOW_FREE, .a = index};
	struct end_reply reply = {0};

	ask(end, &request, &reply);
	return reply.result;
}

void end_vanish(struct end *end, size_t offset, size_t length)
{
	struct end_request request = {.verb = END_VANISH, .offset = offset, .length = length};
	struct end_reply reply = {0};

	ask(end, &request, &reply);
}

uint32_t end_port_counter(struct end *end, int which)
{
	struct end_request request = {.verb = END_COUNTER, .a = which};
	struct end_reply reply = {0};

	ask(end, &request, &reply);
	return (uint32_t)reply.result;
}

struct ibv_sge end_sge(const struct end *end, size_t offset, uint32_t length)
{
	struct ibv_sge sge = {
		.addr = end->info.addr + offset,
		.length = length,
		.lkey = end->info.lkey,
	};

	return sge;
}

struct ibv_send_wr end_wr(enum ibv_wr_opcode opcode, uint64_t wr_id, struct ibv_sge *sge,
			  int num_sge)
{
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = sge,
		.num_sge = num_sge,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};

	return wr;
}

struct ibv_ah *end_ah(struct end *end, const struct end_info *peer)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = peer->gid, .sgid_index = end->config.sgid_index, .hop_limit = 64},
	};
	struct ibv_ah *ah = ibv_create_ah(end->pd, &attr);

	CHECK(ah);
	return ah;
}
