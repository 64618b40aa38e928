/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The PCI addresses under which a view shows devices: DDDD:BB:00.0, where BB is the lower byte of
 * the interface's index. Two devices differ in domain or bus, because NCCL compares addresses
 * without device and function. The domain is 7662, or a following one: of an index over 255, or
 * where the machine itself has the domain.
 */
#ifndef TOOLS_VIEW_PCI_ADDRESS_H
#define TOOLS_VIEW_PCI_ADDRESS_H

struct view_devices;

/* Sets `address` of each device. The devices are in the order of their indices. */
void view_pci_addresses(struct view_devices *devices);

#endif
