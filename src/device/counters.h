/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The counters of ports (base/port_counters.h): a block for each engine, where VERBATIM_VIEW names
 * a view of this user. The blocks lie in a file there, which the process has mapped; the keeper of
 * the view and the preloaded library add the files of all processes up. Without a view nothing is
 * counted.
 *
 * The file is locked (flock(2)) as long as it is mapped. No descriptor stays open: the mapping
 * holds the lock, so that a program that closes every descriptor does not end it.
 */
#ifndef VB_DEVICE_COUNTERS_H
#define VB_DEVICE_COUNTERS_H

#include "base/port_counters.h"

/* A block in use. */
struct vb_counters {
	struct vb_counter_block *block;
	struct vb_counter_port *port;
	struct vb_counters *next; /* of those that are free */
};

/*
 * A block of the device's port. What it counted for former engines stays in it. NULL: nothing is
 * counted, as there is no view, no device (NULL), or no room for the file. Thread-safe.
 */
struct vb_counters *vb_counters_take(const char *device);
void vb_counters_give_back(struct vb_counters *counters);

#endif
