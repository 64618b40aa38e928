/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What waking costs (two.h says how to call it).
 *
 *   wake  us, half a round trip: write(2) to an eventfd of the other process, which sleeps in
 *         poll(2), reads, and answers the same way
 */
#include "two.h"

#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { TRIPS = 100 };

static int bell[2]; /* of this process and of the other one */

static void ring(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		two_fail("write");
}

static void await(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t count;

	if (poll(&p, 1, -1) != 1 || read(fd, &count, sizeof(count)) != sizeof(count))
		two_fail("poll");
}

static void answer(void *argument)
{
	(void)argument;
	for (int i = 0; i < TRIPS * (TWO_SAMPLES + 1); i++) {
		await(bell[1]);
		ring(bell[0]);
	}
}

static double wake(size_t size)
{
	double sample[TWO_SAMPLES];

	(void)size;
	for (int i = 0; i < 2; i++) {
		bell[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (bell[i] < 0)
			two_fail("eventfd");
	}

	pid_t pid = two_start(answer, NULL);

	for (int i = -1; i < TWO_SAMPLES; i++) {
		uint64_t start = two_ns();

		for (int t = 0; t < TRIPS; t++) {
			ring(bell[1]);
			await(bell[0]);
		}
		if (i >= 0)
			sample[i] = (double)(two_ns() - start) / TRIPS / 2e3;
	}
	two_end(pid);
	close(bell[0]);
	close(bell[1]);
	return two_median(sample, TWO_SAMPLES);
}

int main(int argc, char **argv)
{
	static const struct two_figure figures[] = {{"wake", wake}, {NULL, NULL}};

	return two_main(argc, argv, figures);
}
