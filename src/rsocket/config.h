/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What an administrator sets in /etc/rdma/rsocket, one number in each file (rsocket(7)). */
#ifndef VB_RSOCKET_CONFIG_H
#define VB_RSOCKET_CONFIG_H

#include <stdint.h>

#include "rsocket/stream.h"

struct vb_rs_config {
	struct vb_stream_sizes sizes;
	uint64_t polling_ns;  /* how long a call looks before it sleeps */
	uint32_t wake_ms;     /* the longest sleep; then a call looks again */
	uint32_t keepalive_s; /* of the system */
};

/* Read by the first caller. */
const struct vb_rs_config *vb_rs_config(void);

#endif
