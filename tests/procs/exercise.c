/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The two halves of the all-kinds exercise: the initiator and the target. */
#include "procs/exercise.h"

#include "support/check.h"
#include "support/process.h"

#include <string.h>

/* Buffer layout, the same at both ends. */
enum {
	RECEIVE_AT = 0,
	WRITE_AT = 1024 * 1024,
	READ_AT = 2 * 1024 * 1024,
	WORDS_AT = 3 * 1024 * 1024
};

/* Below, at and above cache line, path MTU, page, ring slot and direct-copy limits. */
static const uint32_t sizes[] = {1, 8, 64, 100, 1024, 4096, 4097, 65536, 300001, 1024 * 1024};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static unsigned char byte_of(size_t i, uint32_t salt)
{
	return (unsigned char)(i * 13 + (i >> 9) + salt * 7 + 1);
}

static void fill(unsigned char *at, size_t size, uint32_t salt)
{
	size_t i;

	for (i = 0; i < size; i++)
		at[i] = byte_of(i, salt);
}

static void check_bytes(const char *what, const unsigned char *at, size_t size, uint32_t salt)
{
	size_t i;

	for (i = 0; i < size; i++)
		CHECK_SAY(at[i] == byte_of(i, salt), "%s of %zu bytes: byte %zu is %u, expected %u",
			  what, size, i, at[i], byte_of(i, salt));
}

static uint64_t word_at(const struct endpoint *ep, size_t at)
{
	uint64_t value;

	memcpy(&value, ep->buffer + at, sizeof(value));
	return value;
}

static void initiate_size(struct endpoint *ep, int sock, uint32_t size, uint32_t salt)
{
	struct ibv_cq *cq = ep->resources->cq;

	message_meet(sock);
	fill(ep->buffer + RECEIVE_AT, size, salt);
	fill(ep->buffer + WRITE_AT, size, salt + 1);
	/* All three at once: later ones travel behind the first, whatever way it takes. */
	CHECK_ZERO(ep_send(ep, 1, RECEIVE_AT, size, IBV_SEND_SIGNALED));
	CHECK_ZERO(ep_write(ep, 2, WRITE_AT, size, WRITE_AT, IBV_SEND_SIGNALED));
	CHECK_ZERO(ep_read(ep, 3, READ_AT, size, READ_AT, IBV_SEND_SIGNALED));
	completion_expect(cq, 1, IBV_WC_SUCCESS, NULL);
	completion_expect(cq, 2, IBV_WC_SUCCESS, NULL);
	completion_expect(cq, 3, IBV_WC_SUCCESS, NULL);
	check_bytes("READ", ep->buffer + READ_AT, size, salt + 2);
	/* And each alone, with nothing in flight before it. */
	memset(ep->buffer + READ_AT, 0, size);
	CHECK_ZERO(ep_read(ep, 4, READ_AT, size, READ_AT, IBV_SEND_SIGNALED));
	completion_expect(cq, 4, IBV_WC_SUCCESS, NULL);
	check_bytes("lone READ", ep->buffer + READ_AT, size, salt + 2);
	fill(ep->buffer + WRITE_AT, size, salt + 3);
	CHECK_ZERO(ep_write(ep, 5, WRITE_AT, size, WRITE_AT + size, IBV_SEND_SIGNALED));
	completion_expect(cq, 5, IBV_WC_SUCCESS, NULL);
	message_meet(sock);
}

static void serve_size(struct endpoint *ep, int sock, uint32_t size, uint32_t salt)
{
	struct ibv_wc wc = {0};

	memset(ep->buffer, 0, READ_AT);
	fill(ep->buffer + READ_AT, size, salt + 2);
	CHECK_ZERO(ep_recv(ep, 9, RECEIVE_AT, size));
	message_meet(sock);
	completion_expect(ep->resources->cq, 9, IBV_WC_SUCCESS, &wc);
	CHECK_EQ(wc.byte_len, size);
	check_bytes("SEND", ep->buffer + RECEIVE_AT, size, salt);
	message_meet(sock);
	check_bytes("WRITE", ep->buffer + WRITE_AT, size, salt + 1);
	check_bytes("lone WRITE", ep->buffer + WRITE_AT + size, size, salt + 3);
}

static void initiate_atomics(struct endpoint *ep)
{
	struct ibv_cq *cq = ep->resources->cq;

	CHECK_ZERO(ep_fetch_add(ep, 6, WORDS_AT, WORDS_AT, 11, IBV_SEND_SIGNALED));
	completion_expect(cq, 6, IBV_WC_SUCCESS, NULL);
	CHECK_EQ(word_at(ep, WORDS_AT), 100);
	CHECK_ZERO(ep_compare_swap(ep, 7, WORDS_AT, WORDS_AT, 111, 222, IBV_SEND_SIGNALED));
	completion_expect(cq, 7, IBV_WC_SUCCESS, NULL);
	CHECK_EQ(word_at(ep, WORDS_AT), 111);
	CHECK_ZERO(ep_compare_swap(ep, 8, WORDS_AT, WORDS_AT, 111, 333, IBV_SEND_SIGNALED));
	completion_expect(cq, 8, IBV_WC_SUCCESS, NULL);
	CHECK_EQ(word_at(ep, WORDS_AT), 222);
}

void exercise_initiate(struct endpoint *ep, int sock, unsigned int rounds)
{
	unsigned int round, i;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < SIZES; i++)
			initiate_size(ep, sock, sizes[i], round + i);
		message_meet(sock);
		initiate_atomics(ep);
		message_meet(sock);
	}
}

void exercise_serve(struct endpoint *ep, int sock, unsigned int rounds)
{
	const uint64_t start = 100;
	unsigned int round, i;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < SIZES; i++)
			serve_size(ep, sock, sizes[i], round + i);
		memcpy(ep->buffer + WORDS_AT, &start, sizeof(start));
		message_meet(sock);
		message_meet(sock);
		CHECK_EQ(word_at(ep, WORDS_AT), 222);
	}
}

static void exercise_alone(int sock, unsigned int rounds,
			   void (*half)(struct endpoint *, int, unsigned int))
{
	struct resources resources;
	struct endpoint ep;

	resources_open(&resources, 256, false);
	ep_open_on(&ep, &resources, NULL, NULL, EXERCISE_SIZE);
	ep_exchange(&ep, sock);
	half(&ep, sock, rounds);
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
}

void exercise_as_initiator(int sock, unsigned int rounds)
{
	exercise_alone(sock, rounds, exercise_initiate);
}

void exercise_as_target(int sock, unsigned int rounds)
{
	exercise_alone(sock, rounds, exercise_serve);
}

bool exercise_write_finishes(struct endpoint *ep, unsigned int timeout_ms)
{
	struct ibv_wc wc = {0};

	CHECK_ZERO(ep_write(ep, 77, WRITE_AT, 4096, WRITE_AT, IBV_SEND_SIGNALED));
	if (!completion_try(ep->resources->cq, &wc, timeout_ms))
		return false;
	if (wc.status != IBV_WC_SUCCESS)
		completion_print(&wc);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wr_id, 77);
	return true;
}
