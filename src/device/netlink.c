/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages and attributes of route sockets. */
#include "device/netlink.h"

#include <errno.h>
#include <string.h>

static size_t aligned(size_t length)
{
	return (length + NLMSG_ALIGNTO - 1) & ~(size_t)(NLMSG_ALIGNTO - 1);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

void vb_netlink_attrs(const struct nlmsghdr *msg, size_t skip, struct vb_netlink_attr *attr,
		      size_t count)
{
	const char *at = (const char *)msg;
	size_t offset = NLMSG_HDRLEN + aligned(skip);
	struct nlattr head;

	memset(attr, 0, count * sizeof(*attr));
	while (offset + sizeof(head) <= msg->nlmsg_len) {
		size_t left = msg->nlmsg_len - offset;
		uint16_t type;

		memcpy(&head, at + offset, sizeof(head));
		if (head.nla_len < sizeof(head) || head.nla_len > left)
			return;
		type = head.nla_type & NLA_TYPE_MASK;
		if (type < count) {
			attr[type].data = at + offset + NLA_HDRLEN;
			attr[type].length = head.nla_len - NLA_HDRLEN;
		}
		offset += least(aligned(head.nla_len), left);
	}
}

/* The kernel's answer in the place of a dump: an error, or 0 as an acknowledgement. */
static int answer(const struct nlmsghdr *msg)
{
	struct nlmsgerr err;

	if (msg->nlmsg_len < NLMSG_HDRLEN + sizeof(err.error))
		return -EBADMSG;
	memcpy(&err.error, (const char *)msg + NLMSG_HDRLEN, sizeof(err.error));
	return err.error < 0 ? err.error : 1;
}

static int one(const struct nlmsghdr *msg, uint32_t seq, size_t payload, vb_netlink_message *each,
	       void *data)
{
	if (msg->nlmsg_seq != seq)
		return 0; /* of a dump before, which was given up */
	if (msg->nlmsg_flags & NLM_F_DUMP_INTR)
		return -EINTR;
	switch (msg->nlmsg_type) {
	case NLMSG_ERROR:
		return answer(msg);
	case NLMSG_DONE:
		return 1;
	case NLMSG_OVERRUN:
		return -ENOSPC;
	case NLMSG_NOOP:
		return 0;
	default:
		return msg->nlmsg_len < NLMSG_HDRLEN + payload ? -EBADMSG : each(msg, data);
	}
}

int vb_netlink_dump(const void *buf, size_t length, uint32_t seq, size_t payload,
		    vb_netlink_message *each, void *data)
{
	const char *at = buf;

	while (length >= NLMSG_HDRLEN) {
		const struct nlmsghdr *msg = (const struct nlmsghdr *)at;
		size_t step;
		int done;

		if (msg->nlmsg_len < NLMSG_HDRLEN || msg->nlmsg_len > length)
			return -EBADMSG;
		done = one(msg, seq, payload, each, data);
		if (done)
			return done;
		step = least(aligned(msg->nlmsg_len), length);
		at += step;
		length -= step;
	}
	return 0;
}
