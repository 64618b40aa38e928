/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_attach_mcast(3), ibv_detach_mcast(3): which queue pairs and which addresses are taken,
 * attaching twice, leaving a group that the queue pair is not in, what the host's network stack
 * refuses, and that a member cannot be destroyed. That datagrams arrive is tested by tests/udp.
 */
#include <arpa/inet.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define MANY 300 /* more groups than a socket may be in (igmp_max_memberships is 20 unless set) */

static union ibv_gid gid_of(const char *text)
{
	union ibv_gid gid;

	CHECK(inet_pton(AF_INET6, text, &gid) == 1);
	return gid;
}

/* Queue pairs of every other type are refused before anything of the group is looked at. */
static void types(void)
{
	static const enum ibv_qp_type others[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_XRC_SEND,
						  IBV_QPT_RAW_PACKET};
	struct ep_config config = ep_defaults(IBV_QPT_UD);
	union ibv_gid group = gid_of("ff0e::1234");
	struct endpoint ep;

	ep_open(&ep, &config, EP_HERE);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = ep.cq[0], .recv_cq = ep.cq[1], .qp_type = others[i]};
		struct ibv_qp *qp = ibv_create_qp(ep.pd, &attr);

		expect_case("type %d is in no group", (int)others[i]);
		if (!qp && others[i] == IBV_QPT_RAW_PACKET)
			continue; /* without CAP_NET_RAW */
		CHECK(qp);
		EXPECT_REFUSED(ibv_attach_mcast(qp, &group, 0), EINVAL);
		EXPECT_REFUSED(ibv_detach_mcast(qp, &group, 0), EINVAL);
		EXPECT_EQ(ibv_destroy_qp(qp), 0);
	}
	ep_close(&ep);
}

static void addresses(struct endpoint *ep)
{
	static const char *const wrong[] = {
		"::",
		"::1",
		"2001:db8::1",
		"fe80::1",
		"fe00::1",
		"::ffff:10.0.0.1",
		"::ffff:223.255.255.255",
		"::ffff:240.0.0.1",
		"::ffff:255.255.255.255",
		"::239.1.2.3", /* not the form in which an IPv4 address is mapped */
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		union ibv_gid gid = gid_of(wrong[i]);

		expect_case("%s is no group", wrong[i]);
		EXPECT_REFUSED(ibv_attach_mcast(ep->qp, &gid, 0), EINVAL);
		EXPECT_REFUSED(ibv_detach_mcast(ep->qp, &gid, 0), EINVAL);
	}
	expect_case("no address, no queue pair");
	EXPECT_REFUSED(ibv_attach_mcast(ep->qp, NULL, 0), EINVAL);
	EXPECT_REFUSED(ibv_detach_mcast(ep->qp, NULL, 0), EINVAL);
	EXPECT_REFUSED(ibv_attach_mcast(NULL, &ep->local.gid, 0), EINVAL);
	EXPECT_REFUSED(ibv_detach_mcast(NULL, &ep->local.gid, 0), EINVAL);
}

static void foreign(struct endpoint *ep)
{
	union ibv_gid group = gid_of("ff0e::1234");
	uint32_t handle = ep->qp->handle;

	expect_case("a queue pair that is not the context's");
	ep->qp->handle = 0xdeadbeef;
	EXPECT_REFUSED(ibv_attach_mcast(ep->qp, &group, 0), ENOENT);
	EXPECT_REFUSED(ibv_detach_mcast(ep->qp, &group, 0), ENOENT);
	ep->qp->handle = handle;
}

/*
 * The groups at both edges of each range; @lid means nothing. In any state: this one is in RESET.
 */
static bool membership(struct endpoint *ep)
{
	static const char *const groups[] = {"::ffff:224.0.1.5", "::ffff:239.255.255.255",
					     "ff02::1234", "ff0e::1234"};
	union ibv_gid other = gid_of("::ffff:239.1.2.3");

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		union ibv_gid group = gid_of(groups[i]);
		int err;

		expect_case("member of %s", groups[i]);
		EXPECT_REFUSED(ibv_detach_mcast(ep->qp, &group, 0), EINVAL);
		err = ibv_attach_mcast(ep->qp, &group, 0xffff);
		/* Another user has the port, or there is no network of this family. */
		if (err == EADDRINUSE || err == EAFNOSUPPORT || err == ENODEV)
			return false;
		EXPECT_EQ(err, 0);
		EXPECT_EQ(ibv_attach_mcast(ep->qp, &group, 0), 0);
		EXPECT_REFUSED(ibv_detach_mcast(ep->qp, &other, 0), EINVAL);
		EXPECT_REFUSED(ibv_destroy_qp(ep->qp), EBUSY);
		EXPECT_EQ(ibv_detach_mcast(ep->qp, &group, 1), 0);
		EXPECT_REFUSED(ibv_detach_mcast(ep->qp, &group, 0), EINVAL);
	}
	return true;
}

/* What one queue pair is in says nothing of another. */
static void two_members(struct endpoint *ep)
{
	struct ep_config config = ep_defaults(IBV_QPT_UD);
	union ibv_gid group = gid_of("::ffff:239.1.2.3");
	struct endpoint second;

	expect_case("two members");
	ep_open(&second, &config, EP_HERE);
	EXPECT_EQ(ibv_attach_mcast(ep->qp, &group, 0), 0);
	EXPECT_REFUSED(ibv_detach_mcast(second.qp, &group, 0), EINVAL);
	EXPECT_EQ(ibv_attach_mcast(second.qp, &group, 0), 0);
	EXPECT_EQ(ibv_detach_mcast(ep->qp, &group, 0), 0);
	EXPECT_REFUSED(ibv_destroy_qp(second.qp), EBUSY);
	EXPECT_EQ(ibv_detach_mcast(second.qp, &group, 0), 0);
	ep_close(&second);
}

/*
 * The stack's refusal is told with its errno; the memberships before it hold, and the next one fits
 * when one of them went.
 */
static void too_many(struct endpoint *ep)
{
	union ibv_gid group = gid_of("::ffff:239.7.0.0");
	int n, err = 0;

	expect_case("more groups than the host's stack takes");
	for (n = 0; n < MANY; n++) {
		group.raw[14] = (uint8_t)(n >> 8);
		group.raw[15] = (uint8_t)n;
		err = ibv_attach_mcast(ep->qp, &group, 0);
		if (err)
			break;
	}
	EXPECT(n > 0);
	if (err) {
		EXPECT_EQ(err, ENOBUFS);
		EXPECT_REFUSED(ibv_attach_mcast(ep->qp, &group, 0), ENOBUFS);
		EXPECT_REFUSED(ibv_detach_mcast(ep->qp, &group, 0), EINVAL);
	}
	expect_case("all of them are left again");
	while (n-- > 0) {
		group.raw[14] = (uint8_t)(n >> 8);
		group.raw[15] = (uint8_t)n;
		EXPECT_REFUSED(ibv_destroy_qp(ep->qp), EBUSY);
		EXPECT_EQ(ibv_detach_mcast(ep->qp, &group, 0), 0);
	}
}

int main(int argc, char **argv)
{
	struct ep_config config = ep_defaults(IBV_QPT_UD);
	struct endpoint ep;

	ep_main(argc, argv);
	types();
	ep_open(&ep, &config, EP_HERE);
	addresses(&ep);
	foreign(&ep);
	if (membership(&ep)) {
		two_members(&ep);
		too_many(&ep);
	}
	expect_case("in no group any more");
	ep_close(&ep);
	return expect_done();
}
