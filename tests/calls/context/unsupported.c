/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the device does not offer answers EOPNOTSUPP, by which callers fall back, and leaves nothing
 * behind; it never crashes. A function that comes to be offered moves to a test of its own.
 */
#include <string.h>

#include <infiniband/verbs.h>

#include "support/end.h"
#include "support/check.h"

static struct end end;
static struct ibv_device_attr_ex device;

#define NOT_OFFERED(call)                      \
	do {                                   \
		expect_case("%s", #call);      \
		EXPECT_NULL(call, EOPNOTSUPP); \
	} while (0)

static void flows(void)
{
	struct ibv_flow_action_esp_attr esp = {.comp_mask = 0};

	struct ibv_flow_action none = {.context = end.ctx};

	NOT_OFFERED(ibv_create_flow_action_esp(end.ctx, &esp));
	expect_case("other flow action verbs");
	EXPECT_EQ(ibv_modify_flow_action_esp(&none, &esp), EOPNOTSUPP);
	EXPECT_EQ(ibv_destroy_flow_action(&none), EOPNOTSUPP);
}

static void qp_types(void)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_DRIVER};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct ibv_qp_init_attr_ex attr = {
			.send_cq = end.cq[0],
			.recv_cq = end.cq[1],
			.qp_type = types[i],
			.cap = {.max_send_wr = 1, .max_send_sge = 1},
			.comp_mask = IBV_QP_INIT_ATTR_PD,
			.pd = end.pd,
		};

		expect_case("queue pair of type %d", (int)types[i]);
		errno = 0;
		EXPECT(ibv_create_qp_ex(end.ctx, &attr) == NULL);
		EXPECT_EQ(errno, EOPNOTSUPP);
	}
}

static void multicast(void)
{
	union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 1}};
	struct end_config config = end_defaults(IBV_QPT_UD);
	struct end ud;

	expect_case("multicast: RC");
	EXPECT_REFUSED(ibv_attach_mcast(end.qp, &group, 0), EINVAL);
	end_open(&ud, &config, END_HERE);
	expect_case("multicast: no group address");
	EXPECT_REFUSED(ibv_attach_mcast(ud.qp, &ud.info.gid, 0), EINVAL);
	expect_case("multicast: not a member");
	EXPECT_REFUSED(ibv_detach_mcast(ud.qp, &group, 0), EINVAL);
	end_close(&ud);
}

/* The same again after everything: what was refused left no reference behind. */
static void nothing_left(void)
{
	expect_case("nothing left");
	end_close(&end);
}

int main(int argc, char **argv)
{
	struct end_config config = end_defaults(IBV_QPT_RC);

	end_main(argc, argv);
	end_open(&end, &config, END_HERE);
	CHECK(ibv_query_device_ex(end.ctx, NULL, &device) == 0);
	flows();
	qp_types();
	multicast();
	nothing_left();
	return expect_done();
}
