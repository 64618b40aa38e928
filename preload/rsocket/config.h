/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which sockets are taken: /etc/rdma/rsocket/preload_config, lines of program, domain, type and
 * protocol. Without a valid line every one.
 */
#ifndef PRELOAD_RSOCKET_CONFIG_H
#define PRELOAD_RSOCKET_CONFIG_H

#include <stdbool.h>

struct config {
	int send_queue, receive_queue, inline_bytes; /* of RS_SQ_SIZE ...; 0: not set */
	bool fork_mode;                              /* RDMAV_FORK_SAFE */
};

/* Read once, by the first caller. */
const struct config *config_get(void);
bool config_takes(int domain, int type, int protocol);

/* For tests: another file. To be called before anything else. */
void config_use_file(const char *path);

#endif
