/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Usage: rpma_check serve|call ADDRESS PORT
 * Two processes on librpma: the client writes into the server's memory, flushes, stores eight bytes
 * atomically, reads all of it back, and tells the server by a message what to find; the server looks,
 * and answers. Each side compares every byte. Ends with "rpma_check: right".
 */
#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 300000, ROUNDS = 50, MESSAGE = 64, MARK_AT = 4096, TRIES = 50 };

static const int usage_of_memory = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST |
				   RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
static uint8_t *memory, *copy, *message;
static struct rpma_peer *peer;
static struct rpma_conn *conn;
static struct rpma_cq *cq;

static void must(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "rpma_check: %s: %s\n", what,
		result < -1 ? rpma_err_2str(result) : "wrong");
	exit(1);
}
#define MUST(call) must(call, #call)

static void fill(uint8_t *to, uint32_t seed)
{
	for (uint32_t i = 0; i < BYTES; i++)
		to[i] = (uint8_t)((seed += 0x9e3779b9u + i) >> 24);
}

static void *room(size_t bytes)
{
	void *p = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);

	must(!p, "memory");
	memset(p, 0, bytes);
	return p;
}

/* The next completion, of this request. (With which operations the library flushes depends on its release.) */
static void complete(void *context)
{
	struct ibv_wc wc;
	int result = rpma_cq_get_wc(cq, 1, &wc, NULL);

	while (result == RPMA_E_NO_COMPLETION) {
		MUST(rpma_cq_wait(cq));
		result = rpma_cq_get_wc(cq, 1, &wc, NULL);
	}
	must(result, "completion");
	must(wc.status != IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
	must(wc.wr_id != (uintptr_t)context, "the completion of another request");
}

static struct rpma_peer *peer_at(const char *address, enum rpma_util_ibv_context_type type)
{
	struct ibv_context *context = NULL;
	struct rpma_peer *made = NULL;

	MUST(rpma_utils_get_ibv_context(address, type, &context));
	MUST(rpma_peer_new(context, &made));
	return made;
}

static void wait_event(enum rpma_conn_event wanted)
{
	enum rpma_conn_event event;

	MUST(rpma_conn_next_event(conn, &event));
	must(event != wanted, rpma_utils_conn_event_2str(event));
}

static void receive_post(struct rpma_mr_local *mr)
{
	MUST(rpma_recv(conn, mr, MESSAGE, MESSAGE, message));
}

static void send_seed(struct rpma_mr_local *mr, uint32_t seed)
{
	memcpy(message, &seed, sizeof(seed));
	MUST(rpma_send(conn, mr, 0, MESSAGE, RPMA_F_COMPLETION_ALWAYS, message));
}

static uint32_t received_seed(void)
{
	uint32_t seed;

	memcpy(&seed, message + MESSAGE, sizeof(seed));
	return seed;
}

static void serve(const char *address, const char *port)
{
	struct rpma_mr_local *data, *messages;
	struct rpma_conn_private_data private = {0};
	struct rpma_conn_req *request = NULL;
	struct rpma_ep *ep = NULL;
	size_t size;
	uint8_t descriptor[256];

	peer = peer_at(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
	MUST(rpma_mr_reg(peer, memory, BYTES, usage_of_memory, &data));
	MUST(rpma_mr_reg(peer, message, 2 * MESSAGE, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV,
			 &messages));
	MUST(rpma_mr_get_descriptor_size(data, &size));
	must(size > sizeof(descriptor), "size of the descriptor");
	MUST(rpma_mr_get_descriptor(data, descriptor));
	MUST(rpma_ep_listen(peer, address, port, &ep));
	MUST(rpma_ep_next_conn_req(ep, NULL, &request));
	MUST(rpma_conn_req_recv(request, messages, MESSAGE, MESSAGE, message));
	private.ptr = descriptor;
	private.len = (uint8_t)size;
	MUST(rpma_conn_req_connect(&request, &private, &conn));
	MUST(rpma_conn_get_cq(conn, &cq));
	wait_event(RPMA_CONN_ESTABLISHED);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		complete(message); /* the message has come */
		must(received_seed() != round, "the number in the message");
		fill(copy, round);
		memcpy(copy + MARK_AT, "a mark!", 8);
		must(memcmp(memory, copy, BYTES) != 0, "what was written");
		receive_post(messages);
		send_seed(messages, ~round);
		complete(message);
	}
	wait_event(RPMA_CONN_CLOSED);
	MUST(rpma_conn_disconnect(conn));
	MUST(rpma_conn_delete(&conn));
	MUST(rpma_ep_shutdown(&ep));
	MUST(rpma_mr_dereg(&messages));
	MUST(rpma_mr_dereg(&data));
}

static void round_of(struct rpma_mr_local *data, struct rpma_mr_local *messages,
		     struct rpma_mr_remote *remote, uint32_t round)
{
	fill(memory, round);
	MUST(rpma_write(conn, remote, 0, data, 0, BYTES, RPMA_F_COMPLETION_ON_ERROR, NULL));
	MUST(rpma_flush(conn, remote, 0, BYTES, RPMA_FLUSH_TYPE_VISIBILITY,
			RPMA_F_COMPLETION_ALWAYS, memory));
	complete(memory);
	MUST(rpma_atomic_write(conn, remote, MARK_AT, "a mark!", RPMA_F_COMPLETION_ALWAYS, copy));
	complete(copy);
	memcpy(copy, memory, BYTES);
	memcpy(copy + MARK_AT, "a mark!", 8);
	memset(memory, 0, BYTES);
	MUST(rpma_read(conn, data, 0, remote, 0, BYTES, RPMA_F_COMPLETION_ALWAYS, memory));
	complete(memory);
	must(memcmp(memory, copy, BYTES) != 0, "what was read");
	receive_post(messages);
	send_seed(messages, round);
	complete(message); /* two, in either order */
	complete(message);
	must(received_seed() != ~round, "the number in the answer");
}

static void connect_to(const char *address, const char *port)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	for (int i = 0; i < TRIES; i++) {
		struct rpma_conn_req *request = NULL;

		MUST(rpma_conn_req_new(peer, address, port, NULL, &request));
		MUST(rpma_conn_req_connect(&request, NULL, &conn));
		MUST(rpma_conn_next_event(conn, &event));
		if (event == RPMA_CONN_ESTABLISHED)
			break;
		MUST(rpma_conn_delete(&conn)); /* the server does not listen yet */
		usleep(100000);
	}
	must(event != RPMA_CONN_ESTABLISHED, rpma_utils_conn_event_2str(event));
	MUST(rpma_conn_get_cq(conn, &cq));
}

static void call(const char *address, const char *port)
{
	struct rpma_mr_local *data, *messages;
	struct rpma_conn_private_data private;
	struct rpma_mr_remote *remote = NULL;
	size_t size = 0;

	peer = peer_at(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
	MUST(rpma_mr_reg(peer, memory, BYTES, RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST,
			 &data));
	MUST(rpma_mr_reg(peer, message, 2 * MESSAGE, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV,
			 &messages));
	connect_to(address, port);
	MUST(rpma_conn_get_private_data(conn, &private));
	MUST(rpma_mr_remote_from_descriptor(private.ptr, private.len, &remote));
	MUST(rpma_mr_remote_get_size(remote, &size));
	must(size != BYTES, "size of the remote memory");
	for (uint32_t round = 0; round < ROUNDS; round++)
		round_of(data, messages, remote, round);
	MUST(rpma_conn_disconnect(conn));
	wait_event(RPMA_CONN_CLOSED);
	MUST(rpma_conn_delete(&conn));
	MUST(rpma_mr_remote_delete(&remote));
	MUST(rpma_mr_dereg(&messages));
	MUST(rpma_mr_dereg(&data));
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	memory = room(BYTES);
	copy = room(BYTES);
	message = room(2 * MESSAGE);
	if (!strcmp(argv[1], "call"))
		call(argv[2], argv[3]);
	else
		serve(argv[2], argv[3]);
	MUST(rpma_peer_delete(&peer));
	printf("rpma_check: right\n");
	return 0;
}
