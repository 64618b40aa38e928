/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pairs on interfaces that cannot serve them: raw packet queue pairs where there are no
 * Ethernet frames, and an interface that goes away while its context is open. In a network
 * namespace of the test's own.
 */
#include <arpa/inet.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static bool run(const char *command)
{
	int status = system(command);

	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The objects of one device. */
struct objects {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

static void objects_open(struct objects *o, const char *device)
{
	setenv("VB_TEST_DEVICE", device, 1);
	o->ctx = device_open();
	o->pd = ibv_alloc_pd(o->ctx);
	o->cq = ibv_create_cq(o->ctx, 8, NULL, NULL, 0);
	CHECK(o->pd && o->cq);
}

static void objects_close(struct objects *o)
{
	EXPECT_EQ(ibv_destroy_cq(o->cq), 0);
	EXPECT_EQ(ibv_dealloc_pd(o->pd), 0);
	EXPECT_EQ(ibv_close_device(o->ctx), 0);
}

static struct ibv_qp *make(const struct objects *o, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = o->cq,
		.recv_cq = o->cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
	};

	return ibv_create_qp(o->pd, &attr);
}

/* ibv_create_qp_ex(3): a tunnel of packets has no frames; all other types go on there. */
static void no_frames(void)
{
	struct objects o;
	struct ibv_qp *qp;

	if (!run("ip tuntap add dev t0 mode tun && ip addr add 192.0.2.1/24 dev t0 && "
		 "ip link set t0 up"))
		return; /* no such interfaces here */
	expect_case("frames on an interface that carries none");
	objects_open(&o, "vb_t0");
	EXPECT_NULL(make(&o, IBV_QPT_RAW_PACKET), EOPNOTSUPP);
	qp = make(&o, IBV_QPT_UD);
	CHECK(qp);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	objects_close(&o);
}

/* What needs the interface is refused, what was made before can still be taken apart. */
static void gone(void)
{
	union ibv_gid group = {.raw = {[10] = 0xff, 0xff, 239, 1, 2, 3}};
	union ibv_gid other = {.raw = {[10] = 0xff, 0xff, 239, 1, 2, 4}};
	struct ibv_qp *raw, *datagrams;
	struct objects o;

	objects_open(&o, "vb_v0");
	raw = make(&o, IBV_QPT_RAW_PACKET);
	datagrams = make(&o, IBV_QPT_UD);
	CHECK(raw && datagrams);
	EXPECT_EQ(ibv_attach_mcast(datagrams, &group, 0), 0);
	CHECK(run("ip link del v0"));
	expect_case("frames on an interface that is gone");
	EXPECT_NULL(make(&o, IBV_QPT_RAW_PACKET), ENODEV);
	expect_case("joining a group on an interface that is gone");
	EXPECT_REFUSED(ibv_attach_mcast(datagrams, &other, 0), ENODEV);
	EXPECT_REFUSED(ibv_detach_mcast(datagrams, &other, 0), EINVAL);
	expect_case("leaving a group on an interface that is gone");
	EXPECT_REFUSED(ibv_destroy_qp(datagrams), EBUSY);
	EXPECT_EQ(ibv_detach_mcast(datagrams, &group, 0), 0);
	EXPECT_EQ(ibv_destroy_qp(datagrams), 0);
	EXPECT_EQ(ibv_destroy_qp(raw), 0);
	objects_close(&o);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	if (geteuid() != 0)
		SKIP("interfaces are the superuser's to make");
	if (unshare(CLONE_NEWNET))
		SKIP("no network namespace of its own: %s", strerror(errno));
	if (!run("ip link set lo up && ip link add v0 type veth peer name v1 && "
		 "ip addr add 198.51.100.1/24 dev v0 && ip link set v0 up && ip link set v1 up"))
		SKIP("ip(8) cannot make a veth pair here");
	no_frames();
	gone();
	return expect_done();
}
