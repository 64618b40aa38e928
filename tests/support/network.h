/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Network namespaces for tests: a namespace of the test's own keeps the machine's interfaces and
 * abstract socket names out of it. All functions end the test on failure, unless they say otherwise.
 */
#ifndef TESTS_SUPPORT_NETWORK_H
#define TESTS_SUPPORT_NETWORK_H

#include <stdbool.h>

/*
 * Moves into a new network namespace whose loopback interface is up, for a test that goes on as
 * several users. Without root the test is skipped.
 */
void network_leave(void);

/*
 * Moves into a new network namespace whose loopback interface is up, where no other program can call
 * this one; as root of a user namespace of its own where it has to. Where the system allows neither,
 * it stays.
 */
void network_apart(void);

/*
 * Moves into a new network namespace with one veth pair: v0 with the address 192.0.2.1/24, and v1
 * without any; both and the loopback interface are up, and IPv6 makes no address by itself. An
 * ordinary user becomes root of a user namespace of its own. Where the system allows neither, the
 * test is skipped.
 */
void network_with_pair(void);

/* Runs one command of ip(8): "link set v0 down". Whether it succeeded. */
bool ip(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
