/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory that the peer writes into directly: riomap(3), riounmap(3), riowrite(3). */
#ifndef VB_RSOCKET_IOMAP_H
#define VB_RSOCKET_IOMAP_H

#include <sys/types.h>

#include "rsocket/stream.h"

/*
 * Registers a buffer; if `remote`, the peer learns of it with the next message that is sent, and
 * writes to it under `offset` (-1: its address). The offset; -ENOMEM: the peer has no room for more.
 */
off_t vb_stream_iomap(struct vb_stream *s, void *buffer, size_t length, bool remote, off_t offset);
/* -EINVAL: there is no such mapping. */
int vb_stream_iounmap(struct vb_stream *s, const void *buffer, size_t length);
/*
 * Writes to what the peer has mapped, as far as that goes at once. Bytes taken; -EAGAIN; -EINVAL:
 * the peer has mapped nothing there; otherwise as vb_stream_send().
 */
ssize_t vb_stream_iowrite(struct vb_stream *s, const void *buffer, size_t length, off_t offset);

#endif
