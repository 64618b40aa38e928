/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processes of this host that have ended: the connection manager is told, and what they have
 * published of their connections to other hosts is ended by a DREQ, which the kernel would have sent
 * in their place. All of this is the progress thread's.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/random.h"
#include "device/gid.h"
#include "gsi/port_table.h"
#include "gsi/private.h"
#include "host/page.h"
#include "host/peer.h"
#include "process/process.h"
#include "udp/address.h"
#include "wire/cm_message.h"

/* Nobody says whether a DREQ has arrived, because its answer goes to the process that has ended. */
#define TRIES     3u
#define AGAIN_NS  1000000000ull
/* Datagrams that leave in one turn, so that engines have theirs. */
#define TURN_MOST 256u

struct word {
	struct word *next;
	uint64_t at; /* CLOCK_MONOTONIC ns */
	uint32_t tries;
	struct vb_gsi_connection connection;
};

static struct {
	bool any;
	uint64_t block[VB_PORT_BLOCKS / 64]; /* of processes whose end was not told yet */
	uint64_t ours[VB_PORT_BLOCKS / 64];  /* those of this user */
	struct word *words;
} ended;

/*
 * A process has one GSI number. Of what a peer says of itself, only what it has proven counts. One
 * that lives and was rejected has ended for this process; its connections to others go on.
 */
static void peer_gone(struct vb_peer *peer)
{
	uint32_t block[VB_MAX_BLOCKS];
	uint32_t count = vb_peer_blocks(peer, block);

	for (uint32_t i = 0; i < count; i++) {
		uint64_t bit = 1ull << block[i] % 64;

		if (block[i] >= VB_PORT_BLOCKS ||
		    !vb_gsi_is_number(peer, block[i] << VB_QPN_BLOCK_BITS))
			continue;
		ended.block[block[i] / 64] |= bit;
		if (!vb_peer_is_stranger(peer) && vb_peer_has_ended(peer))
			ended.ours[block[i] / 64] |= bit;
		ended.any = true;
		vb_gsi_watch_soon();
	}
}

static void say(const struct vb_gsi_connection *c)
{
	struct vb_cm_message message = {
		.attribute = VB_CM_DREQ,
		.tid = (uint64_t)vb_random32() << 32 | c->comm_id,
		.local_id = c->comm_id,
		.remote_id = c->remote_id,
		.dreq.remote_qpn = c->remote_qpn,
	};
	struct vb_gsi_mad mad = {0};
	union ibv_gid sgid;
	uint32_t ifindex;

	memcpy(sgid.raw, c->sgid, sizeof(sgid.raw));
	memcpy(mad.sgid, c->sgid, sizeof(mad.sgid));
	memcpy(mad.dgid, c->dgid, sizeof(mad.dgid));
	ifindex = vb_gid_interface(&sgid);
	if (!ifindex || vb_udp_is_group(c->dgid) || vb_gsi_hold_now(c->dgid))
		return;
	vb_cm_message_encode(&message, mad.data);
	(void)vb_gsi_wire_send(&mad, ifindex);
}

static void take(void *arg, const struct vb_gsi_connection *connection)
{
	struct word *word = malloc(sizeof(*word));
	uint32_t *count = arg;

	++*count;
	if (!word) { /* it is said once, and may be lost */
		say(connection);
		return;
	}
	*word = (struct word){.next = ended.words, .at = 1, .connection = *connection};
	ended.words = word;
}

static void end_connections(uint32_t number)
{
	struct vb_port_table *t = vb_gsi_table();
	uint32_t count = 0;

	if (!t)
		return;
	vb_published_take(&t->published, number, take, &count);
	if (count)
		vb_log(VB_LOG_INFO,
		       "connections: process number 0x%x has ended; its %u peers on other hosts are told",
		       number, count);
}

static void tell(uint32_t block, bool ours)
{
	if (atomic_load(&vb_gsi.number) && vb_gsi.events.ended)
		vb_gsi.events.ended(vb_gsi.events.arg, block << VB_GSI_COMM_ID_BITS);
	if (ours)
		end_connections(block << VB_QPN_BLOCK_BITS);
}

void vb_gsi_ended_tell(void)
{
	if (!ended.any)
		return;
	ended.any = false;
	for (uint32_t i = 0; i < VB_PORT_BLOCKS / 64; i++) {
		for (uint64_t bits = ended.block[i]; bits; bits &= bits - 1) {
			uint32_t bit = (uint32_t)__builtin_ctzll(bits);

			tell(i * 64 + bit, ended.ours[i] >> bit & 1);
		}
		ended.block[i] = ended.ours[i] = 0;
	}
}

/* Says it, and plans the next time. False: it was said for the last time. */
static bool word_serve(struct word *word, uint64_t now)
{
	say(&word->connection);
	word->at = now + AGAIN_NS;
	return ++word->tries < TRIES;
}

uint64_t vb_gsi_ended_serve(uint64_t now)
{
	struct word **at = &ended.words;
	uint32_t said = 0;
	uint64_t due = 0;

	while (*at) {
		struct word *word = *at;
		bool waits = word->at > now || said == TURN_MOST;

		said += !waits;
		if (waits || word_serve(word, now)) {
			due = due && due < word->at ? due : word->at;
			at = &word->next;
			continue;
		}
		*at = word->next;
		free(word);
	}
	return due;
}

/* The words are the parent's to say. */
static void forked(void)
{
	memset(&ended, 0, sizeof(ended));
}

VB_PROCESS_HOOK(.peer_gone = peer_gone);

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);
