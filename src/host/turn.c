/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which thread may do a remote atomic on a process's private memory, by whatever path: a lock that
 * can be taken over.
 *
 * Several processes write this object, hence a memfd of its own. Its word holds the holder's
 * process number and counts with every change of hands. The store that ends an atomic is guarded by
 * that word (guard.h): a holder that stood still while its turn was taken over stores nothing, and
 * notices. So no process waits for a holder that stands still or has died. A holder that runs, and
 * may be inside the call that stores, is waited for. An overtaken holder tells when it has left
 * that call.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/reason.h"
#include "base/sys.h"
#include "base/pause.h"
#include "host/guard.h"
#include "host/private.h"
#include "host/shared.h"
#include "host/standstill.h"

#define TURN_BYTES     4096u
#define SPINS          200
#define YIELDS         200
#define NAP_NS         50000
#define LOOK_EVERY     40 /* naps between two looks into /proc: 2 ms */
/*
 * A request that does not get the turn within this time is declined: the target's engine is asked.
 * The initiator holds its own engine's lock meanwhile. The time begins before the first yield,
 * which may take milliseconds on a busy machine.
 */
#define PATIENCE_NS    (10 * VB_MSEC)

/* The low bits of the word. 0: no process has the turn. */
#define HOLDER_BITS    24
#define HOLDER_MASK    0xffffffull
/* A holder in another pid namespace, or not guarded: it cannot be seen standing still. */
#define HOLDER_UNKNOWN 0xffffffu

struct shared {
	_Atomic uint64_t word;
	/* Value of the word when its holder lost the turn and has noticed that. */
	_Atomic uint64_t overtaken;
	uint64_t namespace; /* the pid namespace of the process numbers */
};

struct vb_turn {
	struct shared *shared;
	uint32_t name; /* number of this process in the word */
};

struct watch {
	uint64_t word;
	uint32_t count;
	int64_t since; /* since when the word has this value; 0: not known */
};

static int handle_make(struct shared *shared, struct vb_turn **out)
{
	uint64_t here = vb_pid_namespace();
	struct vb_turn *turn = malloc(sizeof(*turn));

	if (!turn) {
		vb_shared_unmap(shared, TURN_BYTES);
		return -ENOMEM;
	}
	turn->shared = shared;
	turn->name = here && here == shared->namespace ? (uint32_t)getpid() : HOLDER_UNKNOWN;
	*out = turn;
	return 0;
}

int vb_turn_create(struct vb_turn **out, int *fd)
{
	void *map;
	int err = vb_shared_create_common("verbatim-turn", TURN_BYTES, &map, fd);

	if (err)
		return err;
	((struct shared *)map)->namespace = vb_pid_namespace();
	return handle_make(map, out);
}

int vb_turn_map(int fd, struct vb_turn **out, const char **defect)
{
	void *map;
	int err = vb_shared_map(fd, TURN_BYTES, true, &map, defect);

	if (!err)
		err = handle_make(map, out);
	if (err == -ENOMEM)
		*defect = "there is no memory for its turn";
	return err;
}

void vb_turn_unmap(struct vb_turn *turn)
{
	if (!turn)
		return;
	vb_shared_unmap(turn->shared, TURN_BYTES);
	free(turn);
}

/*
 * The process number of another process means something here only if this one's means something
 * there.
 */
static bool holder_stands_still(const struct vb_turn *turn, uint64_t word)
{
	uint32_t holder = (uint32_t)(word & HOLDER_MASK);

	return turn->name != HOLDER_UNKNOWN && holder != HOLDER_UNKNOWN &&
	       vb_stands_still((pid_t)holder);
}

static uint64_t next_word(uint64_t word, uint32_t name)
{
	return ((word >> HOLDER_BITS) + 1) << HOLDER_BITS | name;
}

static void pause_for(struct watch *w)
{
	struct timespec nap = {0, NAP_NS};

	w->count++;
	if (w->count < SPINS)
		vb_pause();
	else if (w->count < SPINS + YIELDS)
		sched_yield();
	else
		vb_sys_nanosleep(&nap);
}

/* Whether the turn may be taken from the holder that was watched. */
static bool overdue(const struct vb_turn *turn, struct watch *w)
{
	if (w->count < SPINS + YIELDS || w->count % LOOK_EVERY)
		return false;
	int64_t now = vb_node_clock();

	if (!w->since)
		w->since = now;
	return holder_stands_still(turn, w->word) || now - w->since > VB_STANDSTILL_NS;
}

/*
 * The overtaken holder may have gone on just before, and be inside the call that stores. It is not
 * when it stands still now, or when it says so itself.
 */
static void settle(const struct vb_turn *turn, uint64_t former)
{
	struct watch w = {.word = former};

	while (atomic_load(&turn->shared->overtaken) != former &&
	       !holder_stands_still(turn, former)) {
		int64_t now = vb_node_clock();

		if (!w.since)
			w.since = now;
		if (now - w.since > VB_STANDSTILL_NS)
			break;
		pause_for(&w);
	}
}

static bool take_over(struct vb_turn *turn, uint64_t former, uint32_t name, uint64_t *ticket)
{
	uint64_t mine = next_word(former, name);

	if (!atomic_compare_exchange_strong(&turn->shared->word, &former, mine))
		return false;
	vb_note(VB_REASON_PEER_STILL,
		"who began a remote atomic stands still: its turn is another's now");
	settle(turn, former);
	*ticket = mine;
	return true;
}

int vb_turn_take(struct vb_turn *turn, bool insist, uint64_t *ticket)
{
	uint32_t name = vb_guard_possible() ? turn->name : HOLDER_UNKNOWN;
	struct watch w = {.word = atomic_load_explicit(&turn->shared->word, memory_order_relaxed)};
	int64_t until = 0;

	for (;;) {
		uint64_t word = atomic_load_explicit(&turn->shared->word, memory_order_relaxed);

		if (!(word & HOLDER_MASK)) {
			*ticket = next_word(word, name);
			if (atomic_compare_exchange_strong(&turn->shared->word, &word, *ticket))
				return 0;
			continue;
		}
		if (word != w.word) {
			w.word = word;
			w.since = 0;
		}
		bool ended = until && vb_node_clock() > until;
		bool still = ended ? holder_stands_still(turn, word) : overdue(turn, &w);

		if (still && take_over(turn, word, name, ticket))
			return 0;
		if (ended && !still)
			return -EAGAIN;
		if (!insist && w.count == SPINS)
			until = vb_node_clock() + PATIENCE_NS;
		pause_for(&w);
	}
}

void vb_turn_release(struct vb_turn *turn, uint64_t ticket)
{
	uint64_t word = ticket;

	if (!atomic_compare_exchange_strong(&turn->shared->word, &word, ticket & ~HOLDER_MASK))
		atomic_store(&turn->shared->overtaken, ticket);
}

void vb_turn_guard(const struct vb_turn *turn, uint64_t ticket, struct vb_guard *guard)
{
	guard->third = (const uint64_t *)&turn->shared->word;
	guard->third_is = ticket;
}
