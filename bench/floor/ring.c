/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What two cores reach through memory that both have mapped (two.h says how to call it).
 *
 *   line       us: a cache line goes to the other core (a word that both count up in turn)
 *   slot_ring  us, half a round trip: a 64-byte slot with its sequence number inside, a ring each
 *              way, the payload copied in and out
 *   slot_rate  millions of such messages a second, one way
 *   tsc        MHz of the counter that perftest gives its cycles in
 */
#include "two.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum { SLOTS = 256, TRIPS = 2000, RATE_TRIPS = 20000, TOLD = 32, PAYLOAD = 56 };

struct slot {
	uint8_t payload[PAYLOAD];
	_Atomic uint64_t sequence;
} __attribute__((aligned(64)));

struct ring {
	struct slot slot[SLOTS];
	_Atomic uint64_t taken __attribute__((aligned(64))); /* the consumer's word */
};

struct shared {
	struct ring there, back;
	_Atomic uint64_t word __attribute__((aligned(64)));
	int pauses;
	uint64_t trips;
};

static void wait_word(_Atomic uint64_t *word, uint64_t value, int pauses)
{
	while (atomic_load_explicit(word, memory_order_acquire) != value) {
		for (int i = 0; i < pauses; i++)
			two_pause();
	}
}

static void count_other(void *argument)
{
	struct shared *s = argument;

	for (uint64_t i = 0; i < s->trips; i++) {
		wait_word(&s->word, 2 * i + 1, s->pauses);
		atomic_store_explicit(&s->word, 2 * i + 2, memory_order_release);
	}
}

static void count_own(struct shared *s, uint64_t i)
{
	atomic_store_explicit(&s->word, 2 * i + 1, memory_order_release);
	wait_word(&s->word, 2 * i + 2, s->pauses);
}

static void put(struct ring *ring, uint64_t i, const uint8_t *payload)
{
	struct slot *slot = &ring->slot[i % SLOTS];

	memcpy(slot->payload, payload, PAYLOAD);
	atomic_store_explicit(&slot->sequence, i + 1, memory_order_release);
}

static void take(struct ring *ring, uint64_t i, uint8_t *payload, int pauses)
{
	struct slot *slot = &ring->slot[i % SLOTS];

	wait_word(&slot->sequence, i + 1, pauses);
	memcpy(payload, slot->payload, PAYLOAD);
}

static void slot_other(void *argument)
{
	struct shared *s = argument;
	uint8_t payload[PAYLOAD];

	for (uint64_t i = 0; i < s->trips; i++) {
		take(&s->there, i, payload, s->pauses);
		put(&s->back, i, payload);
	}
}

static void slot_own(struct shared *s, uint64_t i)
{
	uint8_t payload[PAYLOAD];

	memcpy(payload, &i, sizeof(i));
	put(&s->there, i, payload);
	take(&s->back, i, payload, s->pauses);
}

/* Half a round trip in us with so many pauses between two looks. */
static double trip(void (*own)(struct shared *, uint64_t), void (*other)(void *), int pauses)
{
	struct shared *s = two_shared(sizeof(*s));
	double sample[TWO_SAMPLES];
	uint64_t at = 0;

	s->pauses = pauses;
	s->trips = (uint64_t)TRIPS * (TWO_SAMPLES + 1);

	pid_t pid = two_start(other, s);

	for (; at < TRIPS; at++) /* not counted: the other process has to come first */
		own(s, at);
	for (int i = 0; i < TWO_SAMPLES; i++) {
		uint64_t start = two_ns();

		for (uint64_t end = at + TRIPS; at < end; at++)
			own(s, at);
		sample[i] = (double)(two_ns() - start) / TRIPS / 2e3;
	}
	two_end(pid);
	two_free(s, sizeof(*s));
	return two_median(sample, TWO_SAMPLES);
}

/* Which number of pauses is best differs between processors: the floor is that of the best. */
static double best_trip(void (*own)(struct shared *, uint64_t), void (*other)(void *))
{
	static const int pauses[] = {0, 1, 2, 4, 8};
	double best = 0;

	for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
		double us = trip(own, other, pauses[i]);

		if (!i || us < best)
			best = us;
	}
	return best;
}

static double line(size_t size)
{
	(void)size;
	return best_trip(count_own, count_other);
}

static double slot_ring(size_t size)
{
	(void)size;
	return best_trip(slot_own, slot_other);
}

static void rate_other(void *argument)
{
	struct shared *s = argument;
	uint8_t payload[PAYLOAD];

	for (uint64_t i = 0; i < s->trips; i++) {
		take(&s->there, i, payload, s->pauses);
		if ((i + 1) % TOLD == 0)
			atomic_store_explicit(&s->there.taken, i + 1, memory_order_release);
	}
}

static void rate_own(struct shared *s, uint64_t i, uint64_t *taken)
{
	uint8_t payload[PAYLOAD] = {0};

	memcpy(payload, &i, sizeof(i));
	while (i - *taken >= SLOTS) {
		*taken = atomic_load_explicit(&s->there.taken, memory_order_acquire);
		if (i - *taken >= SLOTS)
			two_pause();
	}
	put(&s->there, i, payload);
}

static double slot_rate(size_t size)
{
	struct shared *s = two_shared(sizeof(*s));
	double sample[TWO_SAMPLES];
	uint64_t at = 0, taken = 0;

	(void)size;
	s->pauses = 1;
	s->trips = (uint64_t)RATE_TRIPS * (TWO_SAMPLES + 1);

	pid_t pid = two_start(rate_other, s);

	for (; at < RATE_TRIPS; at++)
		rate_own(s, at, &taken);
	for (int i = 0; i < TWO_SAMPLES; i++) {
		uint64_t start = two_ns();

		for (uint64_t end = at + RATE_TRIPS; at < end; at++)
			rate_own(s, at, &taken);
		sample[i] = RATE_TRIPS / ((double)(two_ns() - start) / 1e3);
	}
	two_end(pid);
	two_free(s, sizeof(*s));
	return two_median(sample, TWO_SAMPLES);
}

static double tsc(size_t size)
{
	(void)size;
#if defined(__x86_64__)
	uint64_t start = two_ns();
	uint64_t ticks = __rdtsc();
	uint64_t now;

	do
		now = two_ns();
	while (now - start < 50000000);
	return (double)(__rdtsc() - ticks) * 1e3 / (double)(now - start);
#else
	return 0;
#endif
}

int main(int argc, char **argv)
{
	static const struct two_figure figures[] = {{"line", line},
						    {"slot_ring", slot_ring},
						    {"slot_rate", slot_rate},
						    {"tsc", tsc},
						    {NULL, NULL}};

	return two_main(argc, argv, figures);
}
