/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sum of the port counters of all processes of a view, living and ended.
 *
 * For the keeper of the view and for the preloaded library alike: system calls alone, no memory is
 * allocated, errno is kept, and any thread may call.
 */
#ifndef TOOLS_VIEW_COUNTERS_SUM_H
#define TOOLS_VIEW_COUNTERS_SUM_H

#include "base/port_counters.h"

/* `view`: the view's directory. 0, or -errno: then the sum is not complete. */
int counters_sum(const char *view, const char *device, struct vb_port_counters *sum);

/*
 * Brings the counter file at `path`, in the tree of the view, up to date. Does nothing with another
 * file: the path may be of any form that leads there (".../NAME/ports/1/counters/FILE"). 0, or
 * -errno: the file keeps an older sum.
 */
int counters_refresh(const char *view, const char *path);

/*
 * The right to write sums into the tree, for a moment; waits 20 ms at most. A descriptor for
 * close(2), or -errno.
 */
int counters_lock(const char *view);

/* Writes a sum into an open counter file, in place. */
int counters_put(int fd, uint64_t value);

#endif
