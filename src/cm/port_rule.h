/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ports of one port space: which bindings exclude each other, and which request is for which
 * binding. The rules are those of the Linux communication manager (rdma_bind_addr(3)), because
 * programs know its errors.
 *
 * Addresses are GIDs: ::ffff:a.b.c.d is IPv4, and ::ffff:0.0.0.0 and :: are the wildcards.
 */
#ifndef VB_CM_PORT_RULE_H
#define VB_CM_PORT_RULE_H

#include <stdbool.h>
#include <stdint.h>

struct vb_port_binding {
	uint8_t address[16];
	uint32_t scope;       /* interface of a link-local address, else 0 */
	uint8_t remote[16];   /* where it is connected; all zeros: not known, any */
	uint16_t remote_port; /* 0: not known */
	bool reuse;           /* RDMA_OPTION_ID_REUSEADDR */
	bool afonly;          /* RDMA_OPTION_ID_AFONLY; counts as true for IPv4 */
};

bool vb_port_address_is_v4(const uint8_t address[16]);
/* 0.0.0.0, 127.0.0.0/8, :: and ::1: an id that is bound to one of these listens on every device. */
bool vb_port_address_is_any(const uint8_t address[16]);

/*
 * Whether `asked` can have the port number of `there`. 0; -EADDRINUSE: both name the same address;
 * -EADDRNOTAVAIL: one of them names all addresses.
 */
int vb_port_bind_verdict(const struct vb_port_binding *asked, const struct vb_port_binding *there);

/* The same when `asked` begins to listen: REUSEADDR no longer counts. */
int vb_port_listen_verdict(const struct vb_port_binding *asked,
			   const struct vb_port_binding *there);

/*
 * The same when `asked` did not name a port: it can have one that is in use as long as the two
 * connections can be told apart by an address or by the remote port. 0 or -EADDRNOTAVAIL.
 */
int vb_port_share_verdict(const struct vb_port_binding *asked, const struct vb_port_binding *there);

/*
 * How well a listening binding fits a request for the address `destination`, which came by the
 * interface `scope`: 0 not at all, else the higher the better.
 */
enum vb_port_fit {
	VB_PORT_FIT_NONE,
	VB_PORT_FIT_ANY,
	VB_PORT_FIT_ANY_OF_FAMILY,
	VB_PORT_FIT_EXACT
};
enum vb_port_fit vb_port_fit(const struct vb_port_binding *listener, const uint8_t destination[16],
			     uint32_t scope);

#endif
