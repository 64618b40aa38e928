/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The socket name that stands for a block of queue pair numbers. */
#ifndef VB_HOST_NAMES_H
#define VB_HOST_NAMES_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Fills in the abstract address of the block's owner; returns its length. */
socklen_t vb_name_address(struct sockaddr_un *addr, unsigned int uid, uint32_t block);

#endif
