/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How much of a message fits a packet of a network interface: the one place that knows the size of
 * the headers around it.
 */
#ifndef VB_UDP_MTU_H
#define VB_UDP_MTU_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The largest path MTU (256 to 4096, IBA 9.4.1: a power of two) whose packets of every kind fit an
 * interface that carries `interface_mtu` bytes, IP header included. 0: packets of 256 bytes do not
 * fit either. A path MTU that fits over IPv6 fits over IPv4.
 */
uint32_t vb_udp_path_mtu(bool ipv4, uint32_t interface_mtu);

/* The most bytes around the payload of a packet. */
uint32_t vb_udp_overhead(bool ipv4);

#endif
