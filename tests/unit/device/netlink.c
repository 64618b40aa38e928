/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagrams of a route socket: the reader finds what is well-formed, refuses or passes over
 * messages that are cut short or whose lengths point out of the datagram, and ends a dump where the
 * kernel says so.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "device/netlink.h"

#define SEQ  7
#define KIND 100

struct datagram {
	char bytes[256] __attribute__((aligned(8)));
	size_t length;
};

static struct nlmsghdr *add(struct datagram *d, uint16_t type, const void *payload, size_t length)
{
	struct nlmsghdr *msg = (struct nlmsghdr *)(d->bytes + d->length);

	msg->nlmsg_len = (uint32_t)NLMSG_LENGTH(length);
	msg->nlmsg_type = type;
	msg->nlmsg_flags = NLM_F_MULTI;
	msg->nlmsg_seq = SEQ;
	if (length)
		memcpy(NLMSG_DATA(msg), payload, length);
	d->length += NLMSG_SPACE(length);
	return msg;
}

static int count(const struct nlmsghdr *msg, void *data)
{
	unsigned int *seen = data;

	assert_int_equal(msg->nlmsg_type, KIND);
	++*seen;
	return 0;
}

static int refuse(const struct nlmsghdr *msg, void *data)
{
	(void)msg;
	(void)data;
	return -ENOMEM;
}

static int run(const struct datagram *d, size_t payload, unsigned int *seen)
{
	*seen = 0;
	return vb_netlink_dump(d->bytes, d->length, SEQ, payload, count, seen);
}

static void ends(void **state)
{
	struct datagram d = {.length = 0};
	int zero = 0;
	unsigned int seen;

	(void)state;
	add(&d, KIND, "abcd", 4);
	add(&d, NLMSG_NOOP, NULL, 0);
	add(&d, KIND, "abcde", 5);
	assert_int_equal(run(&d, 4, &seen), 0);
	assert_int_equal(seen, 2);
	assert_int_equal(vb_netlink_dump(d.bytes, d.length, SEQ, 4, refuse, NULL), -ENOMEM);
	add(&d, NLMSG_DONE, &zero, sizeof(zero));
	add(&d, KIND, "abcd", 4);
	assert_int_equal(run(&d, 4, &seen), 1);
	assert_int_equal(seen, 2);
}

static void other_dumps(void **state)
{
	struct datagram d = {.length = 0};
	unsigned int seen;

	(void)state;
	add(&d, KIND, "abcd", 4)->nlmsg_seq = SEQ - 1;
	add(&d, NLMSG_DONE, NULL, 0)->nlmsg_seq = SEQ - 1;
	add(&d, KIND, "abcd", 4);
	assert_int_equal(run(&d, 4, &seen), 0);
	assert_int_equal(seen, 1);
}

static void refusals(void **state)
{
	int err = -EPERM;
	struct datagram denied = {.length = 0};
	struct datagram changed = {.length = 0};
	struct datagram overrun = {.length = 0};
	unsigned int seen;

	(void)state;
	add(&denied, NLMSG_ERROR, &err, sizeof(err));
	assert_int_equal(run(&denied, 0, &seen), -EPERM);
	add(&changed, KIND, "abcd", 4)->nlmsg_flags |= NLM_F_DUMP_INTR;
	assert_int_equal(run(&changed, 0, &seen), -EINTR);
	add(&overrun, NLMSG_OVERRUN, NULL, 0);
	assert_int_equal(run(&overrun, 0, &seen), -ENOSPC);
	assert_int_equal(seen, 0);
}

static void malformed(void **state)
{
	struct datagram d = {.length = 0};
	struct nlmsghdr *msg = add(&d, KIND, "abcd", 4);
	unsigned int seen;

	(void)state;
	assert_int_equal(run(&d, 5, &seen), -EBADMSG);
	msg->nlmsg_len = (uint32_t)d.length + 1;
	assert_int_equal(run(&d, 4, &seen), -EBADMSG);
	msg->nlmsg_len = UINT32_MAX;
	assert_int_equal(run(&d, 4, &seen), -EBADMSG);
	msg->nlmsg_len = 0;
	assert_int_equal(run(&d, 4, &seen), -EBADMSG);
	msg->nlmsg_len = NLMSG_HDRLEN;
	msg->nlmsg_type = NLMSG_ERROR;
	assert_int_equal(run(&d, 4, &seen), -EBADMSG);
	assert_int_equal(seen, 0);
	d.length = NLMSG_HDRLEN - 1;
	assert_int_equal(run(&d, 4, &seen), 0);
}

/* Two attributes of six and of no bytes, behind a payload of three. */
static void attributes(void **state)
{
	struct {
		char payload[4];
		struct nlattr first;
		char text[8];
		struct nlattr second;
	} body = {
		.first = {.nla_len = NLA_HDRLEN + 6, .nla_type = 2 | NLA_F_NET_BYTEORDER},
		.text = "value",
		.second = {.nla_len = NLA_HDRLEN, .nla_type = 3},
	};
	struct datagram d = {.length = 0};
	struct vb_netlink_attr attr[3];
	struct nlmsghdr *msg = add(&d, KIND, &body, sizeof(body));
	struct nlattr *second;

	(void)state;
	vb_netlink_attrs(msg, 3, attr, 3);
	assert_null(attr[0].data);
	assert_null(attr[1].data);
	assert_string_equal(attr[2].data, "value");
	assert_int_equal(attr[2].length, 6);
	second = (struct nlattr *)((char *)msg + msg->nlmsg_len - sizeof(*second));
	second->nla_type = 1;
	vb_netlink_attrs(msg, 3, attr, 3);
	assert_non_null(attr[1].data);
	assert_int_equal(attr[1].length, 0);
	for (int length = 0; length < NLA_HDRLEN; length++) {
		second->nla_len = (uint16_t)length;
		vb_netlink_attrs(msg, 3, attr, 3);
		assert_null(attr[1].data);
	}
	second->nla_len = NLA_HDRLEN + 1;
	vb_netlink_attrs(msg, 3, attr, 3);
	assert_null(attr[1].data);
	vb_netlink_attrs(msg, 1000, attr, 3);
	assert_null(attr[2].data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends),       cmocka_unit_test(other_dumps),
		cmocka_unit_test(refusals),   cmocka_unit_test(malformed),
		cmocka_unit_test(attributes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
