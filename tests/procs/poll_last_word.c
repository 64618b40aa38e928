/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a target that polls memory sees a WRITE whole once its last word is
 * there, and sees a data WRITE whole once the flag WRITE behind it is there.
 *
 * The target is a process of its own that looks at nothing but its memory. Each
 * WRITE fills 64 B to 64 KiB with the number of the round; the target spins on
 * one word until it shows that number, and then demands it of every other word.
 *
 * A machine whose processors are busy takes a slice of time for each round. So the rounds end after
 * ENOUGH_MS, once LEAST were made.
 *
 * usage: poll_last_word word|flag|mapped|ring [ROUNDS]
 *   word  the last word of the message is the signal
 *   flag  a second WRITE of 8 bytes behind the data is the signal
 *   mapped  as word, in memory that the initiator has mapped (ibv_alloc_buf(3))
 *   ring  as word, with a target whose memory peers cannot reach directly, so
 *         that its own library stores the data (a second thread polls the queue)
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { LARGEST = 64 * 1024, WORD = sizeof(uint64_t), FLAG_AT = LARGEST, AREA = LARGEST + 4096 };
enum pattern { LAST_WORD, FLAG, MAPPED, RING };

/* Whole cache lines, odd numbers of words, page sizes and one word more. */
static const uint32_t sizes[] = {64,   72,   128,  192,  256,   512,   1000,  1024,
				 2048, 4096, 4104, 8192, 16384, 32768, 65528, LARGEST};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

enum { LEAST = 3000, ENOUGH_MS = 20000 };

static enum pattern pattern;
static uint64_t rounds;

/* What the two tell each other. */
struct course {
	uint64_t seen; /* by the target: the round it has seen and checked */
	uint64_t last; /* by the initiator: its last round; 0: not known yet */
};
static struct course *course;

static bool is_over(uint64_t round)
{
	uint64_t last = __atomic_load_n(&course->last, __ATOMIC_ACQUIRE);

	return last && round > last;
}

static uint32_t size_of_round(uint64_t round)
{
	/* Small messages three times as often: their timing is the tighter one. */
	uint64_t pick = round * 2654435761u >> 7;

	return pick % 4 ? sizes[pick / 4 % 11] : sizes[pick / 4 % SIZES];
}

static void fill(unsigned char *buffer, uint32_t size, uint64_t value)
{
	uint64_t *words = (uint64_t *)(void *)buffer;
	uint32_t i;

	for (i = 0; i < size / WORD; i++)
		words[i] = value;
}

static int initiator(int sock, void *unused)
{
	unsigned int flag_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
	struct ep_config config;
	struct resources resources;
	struct endpoint ep;
	uint64_t round, began;

	(void)unused;
	promise("WRITEs complete with success");
	if (pattern == RING)
		process_drop_root();
	resources_open(&resources, 256, false);
	config = ep_defaults(IBV_QPT_RC);
	config.cap.max_inline_data = WORD;
	ep_open_on(&ep, &resources, &config, NULL, AREA);
	ep_exchange(&ep, sock);
	began = now_ms();
	for (round = 1; !is_over(round); round++) {
		uint32_t size = size_of_round(round);
		unsigned int turns = 0;

		fill(ep.buffer, size, round);
		if (pattern == FLAG) {
			memcpy(ep.buffer + FLAG_AT, &round, WORD);
			CHECK_ZERO(ep_write(&ep, 0, 0, size, 0, 0));
			CHECK_ZERO(ep_write(&ep, round, FLAG_AT, WORD, FLAG_AT, flag_flags));
		} else {
			CHECK_ZERO(ep_write(&ep, round, 0, size, 0, IBV_SEND_SIGNALED));
		}
		completion_expect(resources.cq, round, IBV_WC_SUCCESS, NULL);
		while (__atomic_load_n(&course->seen, __ATOMIC_ACQUIRE) != round)
			spin_once(&turns);
		if (round == rounds || (round >= LEAST && now_ms() - began > ENOUGH_MS))
			__atomic_store_n(&course->last, round, __ATOMIC_RELEASE);
	}
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static void check_whole(const volatile uint64_t *words, uint32_t count, uint64_t round)
{
	uint64_t different = 0;
	uint32_t i;

	for (i = 0; i < count; i++)
		different |= words[i] ^ round;
	if (!different)
		return;
	for (i = 0; words[i] == round && i < count - 1;)
		i++;
	check_failed(__FILE__, __LINE__,
		     "round %llu of %u bytes: signal seen while another word was not there yet "
		     "(word %u is %llu by now)",
		     (unsigned long long)round, count * WORD, i, (unsigned long long)words[i]);
}

static void *poll_queue(void *queue)
{
	struct ibv_wc wc = {0};
	unsigned int turns = 0;

	while (!is_over(__atomic_load_n(&course->seen, __ATOMIC_RELAXED) + 1)) {
		CHECK_EQ(ibv_poll_cq(queue, 1, &wc), 0);
		spin_once(&turns);
	}
	return NULL;
}

static int target(int sock, void *unused)
{
	volatile uint64_t *words;
	struct ibv_buf *buf = NULL;
	struct resources resources;
	pthread_t poller = 0;
	struct endpoint ep;
	uint64_t round;

	(void)unused;
	promise(pattern == FLAG ? "data is whole once the flag behind it is seen"
				: "a message is whole once its last word is seen");
	if (pattern == RING) {
		/* Root opens its memory all the same; another user that is not dumpable cannot. */
		process_drop_root();
		CHECK_ZERO(prctl(PR_SET_DUMPABLE, 0));
	}
	resources_open(&resources, 256, false);
	ep_open_on(&ep, &resources, NULL,
		   pattern == MAPPED ? ibv_alloc_buf(resources.pd, AREA, &buf) : NULL, AREA);
	words = (volatile uint64_t *)(void *)ep.buffer;
	ep_exchange(&ep, sock);
	if (pattern == RING)
		CHECK_ZERO(pthread_create(&poller, NULL, poll_queue, resources.cq));
	for (round = 1;; round++) {
		uint32_t count = size_of_round(round) / WORD;
		volatile uint64_t *signal = &words[pattern == FLAG ? FLAG_AT / WORD : count - 1];
		unsigned int turns = 0;

		while (__atomic_load_n(signal, __ATOMIC_ACQUIRE) != round && !is_over(round))
			spin_once(&turns);
		if (is_over(round))
			break;
		check_whole(words, count, round);
		__atomic_store_n(&course->seen, round, __ATOMIC_RELEASE);
	}
	if (pattern == RING)
		CHECK_ZERO(pthread_join(poller, NULL));
	message_meet(sock);
	ep_close(&ep);
	if (buf)
		ibv_free_buf(buf);
	resources_close(&resources);
	return 0;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "word";
	struct process a, b;
	pattern = strcmp(name, "flag") == 0     ? FLAG
		  : strcmp(name, "mapped") == 0 ? MAPPED
		  : strcmp(name, "ring") == 0   ? RING
						: LAST_WORD;
	rounds = argc > 2 ? strtoull(argv[2], NULL, 0) : (pattern == RING ? 20000 : 1000000);
	watchdog(240);
	promise("both processes end well");
	course = memory_shared(sizeof(*course));
	process_start_pair(&a, target, &b, initiator, NULL);
	process_expect_success(&b, 240000);
	process_expect_success(&a, PROCESS_PATIENCE_MS);
	printf("%llu rounds, nothing early, nothing torn\n", (unsigned long long)course->last);
	return 0;
}
