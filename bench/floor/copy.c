/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What copying costs, alone and between two processes (two.h says how to call it). SIZE is that of
 * one message; the memory is the same at each repetition, as perftest's is.
 *
 *   memcpy   GB/s within a process
 *   write_us, read_us      us for one process_vm_writev(2) or process_vm_readv(2)
 *   write_rate, read_rate  millions of such calls a second
 *   write, read            GB/s of such calls
 *   halves   GB/s: one process writes the first half, the other reads the second, at once
 */
#include "two.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

/* Bytes of a sample. */
enum { SAMPLE_BYTES = 1 << 25, MOST = 2000, LEAST = 2 };

struct shared {
	_Atomic(uint8_t *) memory; /* the other process's */
	uint8_t *own;
	pid_t pid; /* of the process that measures */
	size_t size;
	_Atomic uint64_t asked, answered;
	atomic_bool over;
};

static unsigned int repeats_of(size_t size)
{
	size_t n = SAMPLE_BYTES / (size ? size : 1);

	return (unsigned int)(n > MOST ? MOST : n < LEAST ? LEAST : n);
}

/* Nanoseconds of one repetition; the first sample is not counted. */
static double ns_of(void (*once)(void *), void *argument, size_t size)
{
	unsigned int repeats = repeats_of(size);
	double sample[TWO_SAMPLES];

	for (int i = -1; i < TWO_SAMPLES; i++) {
		uint64_t start = two_ns();

		for (unsigned int r = 0; r < repeats; r++)
			once(argument);
		if (i >= 0)
			sample[i] = (double)(two_ns() - start) / repeats;
	}
	return two_median(sample, TWO_SAMPLES);
}

struct pieces {
	uint8_t *from, *to;
	size_t size;
};

static void copy_once(void *argument)
{
	struct pieces *p = argument;

	memcpy(p->to, p->from, p->size);
	__asm__ volatile("" ::: "memory");
}

static double copy(size_t size)
{
	struct pieces p = {two_private(size), two_private(size), size};
	double ns = ns_of(copy_once, &p, size);

	two_free(p.from, size);
	two_free(p.to, size);
	return (double)size / ns;
}

/* The target: has memory, and sleeps. */
static void have_memory(void *argument)
{
	struct shared *s = argument;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	atomic_store(&s->memory, two_private(s->size));
	while (!atomic_load(&s->over))
		usleep(5000);
}

struct call {
	struct iovec own, theirs;
	pid_t pid;
};

static void write_once(void *argument)
{
	struct call *c = argument;

	if (process_vm_writev(c->pid, &c->own, 1, &c->theirs, 1, 0) != (ssize_t)c->own.iov_len)
		two_fail("process_vm_writev");
}

static void read_once(void *argument)
{
	struct call *c = argument;

	if (process_vm_readv(c->pid, &c->own, 1, &c->theirs, 1, 0) != (ssize_t)c->own.iov_len)
		two_fail("process_vm_readv");
}

static double call_ns(void (*once)(void *), size_t size)
{
	struct shared *s = two_shared(sizeof(*s));
	struct call c = {.own = {two_private(size), size}};
	double ns;

	s->size = size;
	c.pid = two_start(have_memory, s);
	while (!atomic_load(&s->memory))
		usleep(100);
	c.theirs = (struct iovec){atomic_load(&s->memory), size};
	ns = ns_of(once, &c, size);
	atomic_store(&s->over, true);
	two_end(c.pid);
	two_free(c.own.iov_base, size);
	two_free(s, sizeof(*s));
	return ns;
}

static double write_us(size_t size)
{
	return call_ns(write_once, size) / 1e3;
}

static double read_us(size_t size)
{
	return call_ns(read_once, size) / 1e3;
}

static double write_rate(size_t size)
{
	return 1e3 / call_ns(write_once, size);
}

static double read_rate(size_t size)
{
	return 1e3 / call_ns(read_once, size);
}

static double write_bytes(size_t size)
{
	return (double)size / call_ns(write_once, size);
}

static double read_bytes(size_t size)
{
	return (double)size / call_ns(read_once, size);
}

/* The receiver of halves: reads the second one each time it is asked to. */
static void take_half(void *argument)
{
	struct shared *s = argument;
	uint8_t *memory = two_private(s->size);
	size_t half = s->size / 2;
	struct call c = {{memory + half, s->size - half}, {s->own + half, s->size - half}, s->pid};

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	atomic_store(&s->memory, memory);
	for (uint64_t done = 0; !atomic_load(&s->over);) {
		if (atomic_load(&s->asked) == done) {
			two_pause();
			continue;
		}
		read_once(&c);
		atomic_store(&s->answered, ++done);
	}
}

struct halves {
	struct shared *shared;
	struct call call;
};

static void halves_once(void *argument)
{
	struct halves *h = argument;
	uint64_t asked = atomic_fetch_add(&h->shared->asked, 1) + 1;

	write_once(&h->call);
	while (atomic_load(&h->shared->answered) != asked)
		two_pause();
}

static double halves(size_t size)
{
	struct shared *s = two_shared(sizeof(*s));
	struct halves h = {.shared = s};
	double ns;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	s->size = size;
	s->own = two_private(size);
	s->pid = getpid();
	h.call.pid = two_start(take_half, s);
	while (!atomic_load(&s->memory))
		usleep(100);
	h.call.own = (struct iovec){s->own, size / 2};
	h.call.theirs = (struct iovec){atomic_load(&s->memory), size / 2};
	ns = ns_of(halves_once, &h, size);
	atomic_store(&s->over, true);
	two_end(h.call.pid);
	two_free(s->own, size);
	two_free(s, sizeof(*s));
	return (double)size / ns;
}

int main(int argc, char **argv)
{
	static const struct two_figure figures[] = {
		{"memcpy", copy},           {"write_us", write_us},   {"read_us", read_us},
		{"write_rate", write_rate}, {"read_rate", read_rate}, {"write", write_bytes},
		{"read", read_bytes},       {"halves", halves},       {NULL, NULL}};

	return two_main(argc, argv, figures);
}
