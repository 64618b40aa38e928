/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which bindings of a port exclude each other; which request is for which binding. */
#include "cm/port_rule.h"

#include <errno.h>
#include <string.h>

static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};
static const uint8_t v6_any[16];
static const uint8_t v6_loopback[16] = {[15] = 1};

bool vb_port_address_is_v4(const uint8_t address[16])
{
	return !memcmp(address, v4_prefix, sizeof(v4_prefix));
}

static bool is_wildcard(const uint8_t address[16])
{
	if (vb_port_address_is_v4(address))
		return !memcmp(address + 12, v6_any, 4);
	return !memcmp(address, v6_any, sizeof(v6_any));
}

bool vb_port_address_is_any(const uint8_t address[16])
{
	if (is_wildcard(address))
		return true;
	return vb_port_address_is_v4(address) ? address[12] == 127
					      : !memcmp(address, v6_loopback, sizeof(v6_loopback));
}

/* fe80::/10: the same address stands for another port on another interface. */
static bool is_link_local(const uint8_t address[16])
{
	return address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
}

static bool same_address(const uint8_t a[16], uint32_t a_scope, const uint8_t b[16],
			 uint32_t b_scope)
{
	return !memcmp(a, b, 16) && (!is_link_local(a) || a_scope == b_scope);
}

static bool keeps_to_family(const struct vb_port_binding *b)
{
	return b->afonly || vb_port_address_is_v4(b->address);
}

static bool families_apart(const struct vb_port_binding *a, const struct vb_port_binding *b)
{
	return keeps_to_family(a) && keeps_to_family(b) &&
	       vb_port_address_is_v4(a->address) != vb_port_address_is_v4(b->address);
}

static int verdict(const struct vb_port_binding *asked, const struct vb_port_binding *there)
{
	if (families_apart(asked, there))
		return 0;
	if (vb_port_address_is_any(asked->address) || vb_port_address_is_any(there->address))
		return -EADDRNOTAVAIL;
	return same_address(asked->address, asked->scope, there->address, there->scope)
		       ? -EADDRINUSE
		       : 0;
}

int vb_port_bind_verdict(const struct vb_port_binding *asked, const struct vb_port_binding *there)
{
	return asked->reuse && there->reuse ? 0 : verdict(asked, there);
}

int vb_port_listen_verdict(const struct vb_port_binding *asked, const struct vb_port_binding *there)
{
	return verdict(asked, there);
}

int vb_port_share_verdict(const struct vb_port_binding *asked, const struct vb_port_binding *there)
{
	bool remotes = !is_wildcard(asked->remote) && !is_wildcard(there->remote);

	if (asked->remote_port != there->remote_port)
		return 0;
	if (!vb_port_address_is_any(asked->address) && !vb_port_address_is_any(there->address) &&
	    !same_address(asked->address, asked->scope, there->address, there->scope))
		return 0;
	if (remotes && !same_address(asked->remote, asked->scope, there->remote, there->scope))
		return 0;
	return -EADDRNOTAVAIL;
}

enum vb_port_fit vb_port_fit(const struct vb_port_binding *listener, const uint8_t destination[16],
			     uint32_t scope)
{
	bool same_family = vb_port_address_is_v4(listener->address) ==
			   vb_port_address_is_v4(destination);

	if (!vb_port_address_is_any(listener->address))
		return same_address(listener->address, listener->scope, destination, scope)
			       ? VB_PORT_FIT_EXACT
			       : VB_PORT_FIT_NONE;
	if (same_family)
		return VB_PORT_FIT_ANY_OF_FAMILY;
	return keeps_to_family(listener) ? VB_PORT_FIT_NONE : VB_PORT_FIT_ANY;
}
