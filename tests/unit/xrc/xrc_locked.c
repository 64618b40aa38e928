/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: while one process stands still in the middle of a change of an XRC domain, each other
 * change of the domain is refused with EBUSY, leaves nothing behind, and succeeds when tried again
 * (ibv_create_srq_ex(3), ibv_create_qp_ex(3), ibv_open_qp(3)). Calls that give something back do
 * not wait: a queue pair that is destroyed meanwhile is gone for its process at once, and its place
 * in the domain is free once the lock can be had. Other domains of the process are not held up. The
 * test holds the domain's lock itself.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "xrc/table.h"
#include "host/commons.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/xrc.h"

static struct resources resources;
static struct ibv_xrcd *xrcd;

static struct ibv_srq *srq_make(void)
{
	struct ibv_srq_init_attr_ex attr = xrc_srq_attr(&resources, xrcd);

	return ibv_create_srq_ex(resources.context, &attr);
}

#define BUSY(call)                      \
	do {                            \
		errno = 0;              \
		CHECK(!(call));         \
		CHECK_EQ(errno, EBUSY); \
	} while (0)

/*
 * What every call of this test stays under although it may wait for the lock first
 * (VB_COMMONS_LOCK_NS).
 */
enum { BOUND_MS = 2000 };

static bool is_used(uint32_t qpn)
{
	const struct vb_xrc_table *t = vb_xrcd_of(xrcd)->domain->table;

	return __atomic_load_n(&t->qp[qpn % VB_XRC_QPS].qpn, __ATOMIC_ACQUIRE) == qpn;
}

int main(void)
{
	char path[] = "/tmp/vb-xrc-XXXXXX";
	struct vb_commons *commons;
	struct ibv_qp *qp, *more, *again;
	struct ibv_xrcd *other;
	uint64_t since;
	uint32_t late;
	struct ibv_srq *srq;
	int file = mkstemp(path);

	watchdog(60);
	CHECK(file >= 0);
	resources_open(&resources, 16, false);
	xrcd = xrc_domain(resources.context, path, O_CREAT);
	CHECK(xrcd);
	qp = xrc_receiver(resources.context, xrcd);
	CHECK(qp);
	commons = vb_xrcd_of(xrcd)->domain->commons;

	promise("refused while somebody stands in the middle of a change");
	CHECK(vb_commons_lock(commons));
	BUSY(srq_make());
	BUSY(xrc_receiver(resources.context, xrcd));
	BUSY(xrc_receiver_open(resources.context, xrcd, qp->qp_num));
	vb_commons_unlock(commons);

	promise("another domain of the process does not wait for this one");
	other = xrc_domain(resources.context, NULL, O_CREAT);
	CHECK(other);
	CHECK(vb_commons_lock(commons));
	since = now_ms();
	CHECK_ZERO(ibv_close_xrcd(other));
	CHECK(now_ms() - since < BOUND_MS);
	promise("what is destroyed meanwhile waits for nobody, and its place is free soon after");
	late = qp->qp_num;
	since = now_ms();
	CHECK_ZERO(ibv_destroy_qp(qp));
	CHECK(now_ms() - since < BOUND_MS);
	CHECK(is_used(late));
	vb_commons_unlock(commons);
	for (since = now_ms(); is_used(late); sleep_ms(1))
		CHECK(now_ms() - since < 10000);
	qp = xrc_receiver(resources.context, xrcd);
	CHECK(qp);

	promise("another try succeeds");
	srq = srq_make();
	more = xrc_receiver(resources.context, xrcd);
	again = xrc_receiver_open(resources.context, xrcd, qp->qp_num);
	CHECK(srq && more && again);
	CHECK_ZERO(ibv_destroy_srq(srq));
	CHECK_ZERO(ibv_destroy_qp(more));
	CHECK_ZERO(ibv_destroy_qp(again));

	promise("what was refused holds nothing");
	CHECK_ZERO(ibv_destroy_qp(qp));
	CHECK_ZERO(ibv_close_xrcd(xrcd));
	resources_close(&resources);
	close(file);
	unlink(path);
	return 0;
}
