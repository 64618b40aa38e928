/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_attach_mcast(3), ibv_detach_mcast(3): which queue pairs and which addresses, attaching again,
 * leaving what one is not in, what the host's network stack refuses, and that a member cannot be
 * destroyed. What arrives is tests/udp's.
 */
#include <arpa/inet.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/end.h"
#include "support/check.h"

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
	struct end_config config = end_defaults(IBV_QPT_UD);
	union ibv_gid group = gid_of("ff0e::1234");
	struct end end;

	end_open(&end, &config, END_HERE);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = end.cq[0], .recv_cq = end.cq[1], .qp_type = others[i]};
		struct ibv_qp *qp = ibv_create_qp(end.pd, &attr);

		expect_case("type %d is in no group", (int)others[i]);
		if (!qp && others[i] == IBV_QPT_RAW_PACKET)
			continue; /* without CAP_NET_RAW */
		CHECK(qp);
		EXPECT_REFUSED(ibv_attach_mcast(qp, &group, 0), EINVAL);
		EXPECT_REFUSED(ibv_detach_mcast(qp, &group, 0), EINVAL);
		EXPECT_EQ(ibv_destroy_qp(qp), 0);
	}
	end_close(&end);
}

static void addresses(struct end *end)
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
		EXPECT_REFUSED(ibv_attach_mcast(end->qp, &gid, 0), EINVAL);
		EXPECT_REFUSED(ibv_detach_mcast(end->qp, &gid, 0), EINVAL);
	}
	expect_case("no address, no queue pair");
	EXPECT_REFUSED(ibv_attach_mcast(end->qp, NULL, 0), EINVAL);
	EXPECT_REFUSED(ibv_detach_mcast(end->qp, NULL, 0), EINVAL);
	EXPECT_REFUSED(ibv_attach_mcast(NULL, &end->info.gid, 0), EINVAL);
	EXPECT_REFUSED(ibv_detach_mcast(NULL, &end->info.gid, 0), EINVAL);
}

static void foreign(struct end *end)
{
	union ibv_gid group = gid_of("ff0e::1234");
	uint32_t handle = end->qp->handle;

	expect_case("a queue pair that is not the context's");
	end->qp->handle = 0xdeadbeef;
	EXPECT_REFUSED(ibv_attach_mcast(end->qp, &group, 0), ENOENT);
	EXPECT_REFUSED(ibv_detach_mcast(end->qp, &group, 0), ENOENT);
	end->qp->handle = handle;
}

/*
 * The groups at both edges of each range; @lid means nothing. In any state: this one is in RESET.
 */
static bool membership(struct end *end)
{
	static const char *const groups[] = {"::ffff:224.0.1.5", "::ffff:239.255.255.255",
					     "ff02::1234", "ff0e::1234"};
	union ibv_gid other = gid_of("::ffff:239.1.2.3");

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		union ibv_gid group = gid_of(groups[i]);
		int err;

		expect_case("member of %s", groups[i]);
		EXPECT_REFUSED(ibv_detach_mcast(end->qp, &group, 0), EINVAL);
		err = ibv_attach_mcast(end->qp, &group, 0xffff);
		/* Another user has the port, or there is no network of this family. */
		if (err == EADDRINUSE || err == EAFNOSUPPORT || err == ENODEV)
			return false;
		EXPECT_EQ(err, 0);
		EXPECT_EQ(ibv_attach_mcast(end->qp, &group, 0), 0);
		EXPECT_REFUSED(ibv_detach_mcast(end->qp, &other, 0), EINVAL);
		EXPECT_REFUSED(ibv_destroy_qp(end->qp), EBUSY);
		EXPECT_EQ(ibv_detach_mcast(end->qp, &group, 1), 0);
		EXPECT_REFUSED(ibv_detach_mcast(end->qp, &group, 0), EINVAL);
	}
	return true;
}

/* What one queue pair is in says nothing of another. */
static void two_members(struct end *end)
{
	struct end_config config = end_defaults(IBV_QPT_UD);
	union ibv_gid group = gid_of("::ffff:239.1.2.3");
	struct end second;

	expect_case("two members");
	end_open(&second, &config, END_HERE);
	EXPECT_EQ(ibv_attach_mcast(end->qp, &group, 0), 0);
	EXPECT_REFUSED(ibv_detach_mcast(second.qp, &group, 0), EINVAL);
	EXPECT_EQ(ibv_attach_mcast(second.qp, &group, 0), 0);
	EXPECT_EQ(ibv_detach_mcast(end->qp, &group, 0), 0);
	EXPECT_REFUSED(ibv_destroy_qp(second.qp), EBUSY);
	EXPECT_EQ(ibv_detach_mcast(second.qp, &group, 0), 0);
	end_close(&second);
}

/*
 * The stack's refusal is told with its errno; the memberships before it hold, and the next one fits
 * when one of them went.
 */
static void too_many(struct end *end)
{
	union ibv_gid group = gid_of("::ffff:239.7.0.0");
	int n, err = 0;

	expect_case("more groups than the host's stack takes");
	for (n = 0; n < MANY; n++) {
		group.raw[14] = (uint8_t)(n >> 8);
		group.raw[15] = (uint8_t)n;
		err = ibv_attach_mcast(end->qp, &group, 0);
		if (err)
			break;
	}
	EXPECT(n > 0);
	if (err) {
		EXPECT_EQ(err, ENOBUFS);
		EXPECT_REFUSED(ibv_attach_mcast(end->qp, &group, 0), ENOBUFS);
		EXPECT_REFUSED(ibv_detach_mcast(end->qp, &group, 0), EINVAL);
	}
	expect_case("all of them are left again");
	while (n-- > 0) {
		group.raw[14] = (uint8_t)(n >> 8);
		group.raw[15] = (uint8_t)n;
		EXPECT_REFUSED(ibv_destroy_qp(end->qp), EBUSY);
		EXPECT_EQ(ibv_detach_mcast(end->qp, &group, 0), 0);
	}
}

int main(int argc, char **argv)
{
	struct end_config config = end_defaults(IBV_QPT_UD);
	struct end end;

	end_main(argc, argv);
	types();
	end_open(&end, &config, END_HERE);
	addresses(&end);
	foreign(&end);
	if (membership(&end)) {
		two_members(&end);
		too_many(&end);
	}
	expect_case("in no group any more");
	end_close(&end);
	return expect_done();
}
