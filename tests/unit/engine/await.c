/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: queue pairs that wait for contact do not ask in each drive, but when there is news and at
 * growing intervals; so what waiting costs does not grow with the square of how many wait. They can
 * be destroyed meanwhile.
 */
#include "engine/engine.h"
#include "engine/schedule.h"
#include "qp/qp.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"

enum { QPS = 1000, POLLS = 20000 };

static struct resources here;
static struct ibv_qp *qp[QPS];
static _Atomic uint64_t asked; /* the progress thread lets them ask, too */

/* As the link within the host does while contact is being made. */
static bool seek(struct vb_qp *q)
{
	asked++;
	q->contact_pending = true;
	return false;
}

static struct vb_engine *engine(void)
{
	return vb_qp_of(qp[0])->engine;
}

static uint64_t polls(uint32_t count)
{
	uint64_t before = asked;
	struct ibv_wc wc;

	for (uint32_t i = 0; i < count; i++)
		CHECK_EQ(ibv_poll_cq(here.cq, 1, &wc), 0);
	return asked - before;
}

int main(void)
{
	static struct vb_link link;
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	uint64_t found;

	promise("who waits for contact asks when there is news");
	watchdog(60);
	resources_open(&here, 16, false);
	for (int i = 0; i < QPS; i++)
		qp[i] = ep_create_qp(&here, &config);
	link = *vb_qp_of(qp[0])->link;
	link.seek = seek;
	vb_lock_take(&engine()->lock);
	for (int i = 0; i < QPS; i++) {
		vb_qp_of(qp[i])->link = &link;
		vb_qp_of(qp[i])->seeking = true;
		vb_engine_put_runnable(engine(), vb_qp_of(qp[i]));
	}
	vb_lock_release(&engine()->lock);
	polls(1);
	EXPECT(asked >= QPS);
	/* The progress thread lets all ask at growing intervals, beside the polls. */
	found = polls(POLLS);
	EXPECT_SAY(found < (uint64_t)POLLS * QPS / 100, "%llu asked in %u polls without news",
		   (unsigned long long)found, POLLS);
	for (int i = 0; i < QPS; i++)
		CHECK_ZERO(ibv_destroy_qp(qp[i]));
	resources_close(&here);
	return expect_done();
}
