/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Where an interface is near to: NUMA node and processors, as the kernel tells. */
#ifndef TOOLS_VIEW_CPUS_H
#define TOOLS_VIEW_CPUS_H

#include <stddef.h>

/* A file's text with its line end; `other` where there is no such file. */
void cpus_file(const char *path, char *text, size_t size, const char *other);

/*
 * Of the interface's device; of a virtual interface, node -1 and all processors that are online.
 * Texts with their line ends, as sysfs has them.
 */
struct cpus {
	char node[16];
	char list[512]; /* "0-3,8" */
	char mask[512]; /* "0000010f" */
};
void cpus_near(const char *interface, struct cpus *cpus);

/* A list of processors ("0-3,8") as a mask: groups of 32 bits, the highest first. */
void cpus_mask(const char *list, char *mask, size_t size);

#endif
