/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The socket names that stand for a block of queue pair numbers, both in the abstract namespace
 * (unix(7)).
 *
 *   "\0verbatim/<block>"                 the plain name: every process knows it and can take it
 *   "\0verbatim/k/<hash of the block>"   the keyed name: the key is the user's secret
 *                                        (host/secret.h), if there is one
 */
#ifndef VB_HOST_NAMES_H
#define VB_HOST_NAMES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/siphash.h"

/* The plain name, as host/abstract.h takes it. */
void vb_name_text(char *text, size_t size, uint32_t block);
/* Fill in the address of the block's owner; return its length. */
socklen_t vb_name_address(struct sockaddr_un *addr, uint32_t block);
socklen_t vb_name_address_keyed(struct sockaddr_un *addr,
				const uint8_t secret[VB_SIPHASH_KEY_BYTES], uint32_t block);

#endif
