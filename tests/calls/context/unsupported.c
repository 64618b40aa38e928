/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A verb that the device does not offer fails with EOPNOTSUPP, by which callers know that they have
 * to do without it, and leaves nothing behind. When the device comes to offer it, it moves to a
 * test of its own.
 */
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static struct endpoint ep;
static struct ibv_device_attr_ex device;

#define NOT_OFFERED(call)                      \
	do {                                   \
		expect_case("%s", #call);      \
		EXPECT_NULL(call, EOPNOTSUPP); \
	} while (0)

static void flows(void)
{
	struct ibv_flow_action_esp_attr esp = {.comp_mask = 0};

	struct ibv_flow_action none = {.context = ep.context};

	NOT_OFFERED(ibv_create_flow_action_esp(ep.context, &esp));
	expect_case("other flow action verbs");
	EXPECT_EQ(ibv_modify_flow_action_esp(&none, &esp), EOPNOTSUPP);
	EXPECT_EQ(ibv_destroy_flow_action(&none), EOPNOTSUPP);
}

static void qp_types(void)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_DRIVER};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct ibv_qp_init_attr_ex attr = {
			.send_cq = ep.cq[0],
			.recv_cq = ep.cq[1],
			.qp_type = types[i],
			.cap = {.max_send_wr = 1, .max_send_sge = 1},
			.comp_mask = IBV_QP_INIT_ATTR_PD,
			.pd = ep.pd,
		};

		expect_case("queue pair of type %d", (int)types[i]);
		errno = 0;
		EXPECT(ibv_create_qp_ex(ep.context, &attr) == NULL);
		EXPECT_EQ(errno, EOPNOTSUPP);
	}
}

static void multicast(void)
{
	union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 1}};
	struct ep_config config = ep_defaults(IBV_QPT_UD);
	struct endpoint ud;

	expect_case("multicast: RC");
	EXPECT_REFUSED(ibv_attach_mcast(ep.qp, &group, 0), EINVAL);
	ep_open(&ud, &config, EP_HERE);
	expect_case("multicast: no group address");
	EXPECT_REFUSED(ibv_attach_mcast(ud.qp, &ud.local.gid, 0), EINVAL);
	expect_case("multicast: not a member");
	EXPECT_REFUSED(ibv_detach_mcast(ud.qp, &group, 0), EINVAL);
	ep_close(&ud);
}

/* The same again after everything: what was refused left no reference behind. */
static void nothing_left(void)
{
	expect_case("nothing left");
	ep_close(&ep);
}

int main(int argc, char **argv)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	ep_main(argc, argv);
	ep_open(&ep, &config, EP_HERE);
	CHECK(ibv_query_device_ex(ep.context, NULL, &device) == 0);
	flows();
	qp_types();
	multicast();
	nothing_left();
	return expect_done();
}
