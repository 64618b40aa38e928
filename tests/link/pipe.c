/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A link for tests: packets through a pair of sockets, to one other process. It shows what a link
 * needs: this table, and a line in provider/links.c, with which only the library of these tests is
 * built.
 *
 * VB_TEST_PIPE is the number of this process's socket (unix(7), SOCK_SEQPACKET). Connected queue
 * pairs that address this host take the link, so nothing is shared with the peer. What the peer
 * sends is believed: it belongs to the same test.
 */
#include "link/pipe.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/lock.h"
#include "base/reason.h"
#include "engine/drive.h"
#include "engine/engine.h"
#include "engine/progress.h"
#include "engine/qp.h"
#include "engine/settle.h"
#include "process/process.h"

#define WINDOW_BYTES 65536u /* in flight for each queue pair: a fraction of what the socket holds */
#define BATCH        16

/* A thread reserves, fills and commits under an engine's lock, with nothing in between. */
static _Thread_local struct vb_pipe_packet out;

static struct {
	struct vb_lock lock; /* guards receiving */
	struct vb_pipe_packet in;
	_Atomic bool watched, rang;
} state;

static int end(void)
{
	const char *text = getenv("VB_TEST_PIPE");

	return text ? atoi(text) : -1;
}

static bool reaches(const struct vb_qp *qp, bool near)
{
	return near && end() >= 0 &&
	       (qp->t.service == VB_SERVICE_RC || qp->t.service == VB_SERVICE_UC);
}

/* In the progress thread. */
static void on_packet(void *arg)
{
	(void)arg;
	atomic_store(&state.rang, true);
}

static int connect_pipe(struct vb_qp *qp, const struct ibv_ah_attr *ah, const struct vb_path *path)
{
	(void)ah;
	(void)path;
	if (!atomic_exchange(&state.watched, true)) {
		int err = vb_node_watch(vb_process_node_started(), end(), on_packet, NULL);

		if (err)
			return vb_refuse(-err, VB_REASON_SYSTEM, "pipe: %s", strerror(-err));
	}
	if (qp->link == &vb_pipe_link)
		return 0;
	vb_engine_join_link(qp->engine, &vb_pipe_link);
	vb_engine_reads_begin(qp->engine);
	return 0;
}

static void release(struct vb_qp *qp)
{
	if (qp->link == &vb_pipe_link)
		vb_engine_reads_end(qp->engine);
}

static void tune(struct vb_qp *qp)
{
	qp->t.max_run_bytes = VB_PIPE_BYTES;
	qp->t.window_packets = WINDOW_BYTES / qp->t.mtu;
	qp->t.max_read_bytes = WINDOW_BYTES / 2;
}

static void *reserve(struct vb_qp *qp, const struct vb_send_wqe *wqe, const struct vb_run *run)
{
	(void)qp;
	(void)wqe;
	(void)run;
	return out.payload;
}

/* Where the socket is full the packet is lost, and sent again by the protocol. */
static void commit(struct vb_qp *qp, const struct vb_run *run)
{
	(void)qp;
	out.run = *run;
	(void)send(end(), &out, sizeof(out.run) + run->length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Under the receiving lock. False: no packet is left for this engine. */
static bool receive(struct vb_engine *e)
{
	struct vb_run *run = &state.in.run;
	uint32_t owner;
	struct vb_qp *qp;

	if (recv(end(), run, sizeof(*run), MSG_DONTWAIT | MSG_PEEK) != sizeof(*run))
		return false;
	/* The packet is for another engine, which takes it in its own drive. */
	if (vb_qp_owner(e->node, run->dest_qpn, &owner) == VB_QP_HERE && owner != e->index)
		return false;
	if (recv(end(), &state.in, sizeof(state.in), MSG_DONTWAIT) < 0)
		return false;
	qp = vb_qp_lookup(e, run->dest_qpn);
	if (qp && qp->link == &vb_pipe_link)
		vb_qp_arrived(qp, run, state.in.payload);
	return true;
}

static bool drain(struct vb_engine *e, bool polled)
{
	int n = 0;

	(void)polled;
	if (!e->reads || !vb_lock_try(&state.lock))
		return false;
	while (n < BATCH && receive(e))
		n++;
	vb_lock_release(&state.lock);
	return n > 0;
}

const struct vb_link vb_pipe_link = {
	.name = "pipe",
	.reaches = reaches,
	.connect = connect_pipe,
	.release = release,
	.tune = tune,
	.reserve = reserve,
	.commit = commit,
	.drain = drain,
};

static bool rang(void)
{
	return atomic_exchange(&state.rang, false);
}

VB_PROGRESS_HOOK(.rang = rang);
