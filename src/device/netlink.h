/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the kernel says over a route socket (netlink(7), rtnetlink(7)): datagrams of messages, messages
 * of attributes. Lengths are checked before anything is read.
 */
#ifndef VB_DEVICE_NETLINK_H
#define VB_DEVICE_NETLINK_H

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

/* The attributes of a message, by type; `data` is NULL for those it has not. */
struct vb_netlink_attr {
	const void *data;
	size_t length;
};

/*
 * Fills attr[0..count), from those behind `skip` bytes of the message's payload. Of two attributes of
 * one type the last counts.
 */
void vb_netlink_attrs(const struct nlmsghdr *msg, size_t skip, struct vb_netlink_attr *attr,
		      size_t count);

/* A message of a dump, with at least `payload` bytes. Returns 0 or a negative errno, which ends. */
typedef int vb_netlink_message(const struct nlmsghdr *msg, void *data);

/*
 * Calls `each` for the messages of one datagram of the dump that was asked for with `seq`. Returns 1
 * at the end of the dump, 0 if more is to come, a negative errno if the kernel refused, `each` did,
 * or the datagram is malformed (-EBADMSG); -EINTR when what is dumped changed meanwhile.
 */
int vb_netlink_dump(const void *buf, size_t length, uint32_t seq, size_t payload,
		    vb_netlink_message *each, void *data);

#endif
