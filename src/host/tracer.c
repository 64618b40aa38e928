/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Yama (Documentation/admin-guide/LSM/Yama.rst): with ptrace_scope 1, the default of some systems, a
 * process may attach to its own children only, and to a process that has named it (PR_SET_PTRACER).
 * The setting protects processes that were not asked. This one was: for the moment in which a peer
 * opens its memory, it names that peer. All other rules of the kernel stand meanwhile. A process can
 * name one other, so peers have their turns; what the program itself had named is forgotten, because
 * it cannot be read.
 */
#include <sys/prctl.h>

#include "host/private.h"
#include "host/trust.h"

/* A peer that has its turn has to open a file. One that stands still keeps the others waiting. */
#define TURN_NS (1000 * VB_MSEC)

static struct vb_peer *next_in_turn(struct vb_node *node)
{
	struct vb_peer *peer = node->peers;

	while (peer && !peer->waits_for_tracer)
		peer = peer->next;
	return peer;
}

static void next_begin(struct vb_node *node)
{
	struct vb_peer *peer = next_in_turn(node);

	if (!peer)
		return;
	peer->waits_for_tracer = false;
	prctl(PR_SET_PTRACER, (unsigned long)peer->seen_pid, 0, 0, 0);
	node->tracer = (struct vb_tracer){peer, vb_node_clock() + TURN_NS};
	vb_node_retry(node, TURN_NS);
	vb_give_try_again(node, peer);
}

bool vb_tracer_want(struct vb_node *node, struct vb_peer *peer)
{
	if (node->tracer.peer == peer) {
		vb_tracer_end(node, peer);
		return false;
	}
	if (!vb_trust_asks_tracee() || peer->seen_pid <= 0)
		return false;
	peer->waits_for_tracer = true;
	if (!node->tracer.peer)
		next_begin(node);
	return true;
}

void vb_tracer_end(struct vb_node *node, struct vb_peer *peer)
{
	peer->waits_for_tracer = false;
	if (node->tracer.peer != peer)
		return;
	prctl(PR_SET_PTRACER, 0, 0, 0, 0);
	node->tracer.peer = NULL;
	next_begin(node);
}

void vb_tracer_service(struct vb_node *node)
{
	int64_t left = node->tracer.until - vb_node_clock();

	if (!node->tracer.peer)
		return;
	if (left > 0)
		vb_node_retry(node, left);
	else
		vb_tracer_end(node, node->tracer.peer);
}
