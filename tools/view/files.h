/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The files of one device. Each function names paths below the PCI device's directory `base`. */
#ifndef TOOLS_VIEW_FILES_H
#define TOOLS_VIEW_FILES_H

struct tree;
struct view_device;

/* pci_files.c: what a PCI device has, and the interface below it. */
void pci_files(struct tree *tree, const char *base, const struct view_device *device);
/* device_files.c: infiniband/NAME and infiniband_verbs/FILE. */
void device_files(struct tree *tree, const char *base, const struct view_device *device);
/* port_files.c: infiniband/NAME/ports/1. `ports`: that directory. */
void port_files(struct tree *tree, const char *ports, const struct view_device *device);

#endif
