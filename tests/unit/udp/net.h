/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the tests of the udp room share: a network of their own, in which the port is free, and its
 * loopback addresses.
 */
#ifndef TESTS_UNIT_UDP_NET_H
#define TESTS_UNIT_UDP_NET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Puts the process into a network namespace of its own (as an ordinary user: with a user namespace)
 * and brings lo up. Where that is refused: says why and exits with status 77. The process stays on
 * one processor, on which packets are delivered in order.
 */
void net_enter(void);

/* ::ffff:127.0.0.x or ::1. */
void net_gid(bool ipv4, uint8_t last, uint8_t gid[16]);

/*
 * Waits until what this process and its children have sent has arrived: the kernel may put delivery
 * off.
 */
void net_settle(void);

/* A socket bound to (wildcard, port) without SO_REUSEPORT; aborts the test when that fails. */
int net_bound(bool ipv4, uint16_t port);

#endif
