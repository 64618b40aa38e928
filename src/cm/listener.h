/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A listener: which requests it takes, and how many of them wait for the program. */
#ifndef VB_CM_LISTENER_H
#define VB_CM_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/chain.h"

#define VB_CM_BACKLOG_MOST 1024u /* default of net.rdma_ucm.max_backlog in stock */

/*
 * Lies in the caller's object from vb_cm_listen() to vb_cm_unlisten(). The caller fills in the upper
 * part; the lower one belongs to the core.
 */
struct vb_cm_listener {
	void *user;
	uint64_t service_id;
	uint8_t service; /* enum vb_cm_service; VB_CM_UD: takes SIDR_REQ, else REQ of this type */
	/*
	 * As a GID: ::ffff:a.b.c.d is IPv4. Wildcards and loopback addresses take requests for every
	 * address, with afonly and with IPv4 only those of their family (cm/port_rule.h).
	 */
	uint8_t address[16];
	uint32_t scope; /* interface of a link-local address, else 0 */
	bool afonly;
	int backlog; /* requests that the program has not read; <= 0 or too many: VB_CM_BACKLOG_MOST */

	struct vb_cm_link link;
	struct vb_cm_link *unread; /* requests that vb_cm_taken() was not called for */
	unsigned int unreads;
};

#endif
