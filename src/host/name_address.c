/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The addresses of a block: the name that every process can take, and the one that only processes
 * of this user know.
 */
#include "host/names.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/siphash.h"
#include "host/private.h"
#include "host/trust.h"

static socklen_t address(struct sockaddr_un *addr, int n)
{
	addr->sun_family = AF_UNIX;
	addr->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

void vb_name_text(char *text, size_t size, uint32_t block)
{
	snprintf(text, size, "verbatim/%u", block);
}

socklen_t vb_name_address(struct sockaddr_un *addr, uint32_t block)
{
	vb_name_text(addr->sun_path + 1, sizeof(addr->sun_path) - 1, block);
	return address(addr, (int)strlen(addr->sun_path + 1));
}

socklen_t vb_name_address_keyed(struct sockaddr_un *addr,
				const uint8_t secret[VB_SIPHASH_KEY_BYTES], uint32_t block)
{
	const uint8_t number[] = {(uint8_t)block, (uint8_t)(block >> 8)};

	return address(
		addr, snprintf(addr->sun_path + 1, sizeof(addr->sun_path) - 1, "verbatim/k/%016llx",
			       (unsigned long long)vb_siphash(secret, number, sizeof(number))));
}

bool vb_user_is_ours(const struct vb_node *node, uid_t uid)
{
	return vb_trust_same_user(uid) || (node->names.has_secret && uid == node->names.secret_uid);
}
