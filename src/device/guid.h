/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The GUID of a device: the same after every restart, without anything stored. */
#ifndef VB_DEVICE_GUID_H
#define VB_DEVICE_GUID_H

#include <stddef.h>
#include <stdint.h>

#include "device/netdev.h"

/*
 * The modified EUI-64 of an Ethernet address (RFC 4291, appendix A). An interface without one gets
 * a number made of the machine's identity and the interface's name. Never 0. Host byte order.
 */
uint64_t vb_guid_of(const struct vb_netdev *dev, const char *machine);

/* Writes /etc/machine-id, or the host's name where there is none. */
void vb_guid_machine(char *text, size_t size);

#endif
