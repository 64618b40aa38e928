/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Steering: the search for the sockets' places, and the program that follows from all claims. */
#include "remote/steer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/sys.h"
#include "engine/progress.h"
#include "host/descriptor.h"
#include "process/process.h"
#include "remote/claims.h"
#include "remote/sockets.h"

#define FOREIGN       3u        /* sockets without a claim that may be in the group */
#define MOST          256u      /* places that are asked for when nothing else has answered */
#define ANSWER_NS     200000ull /* the first look for an answer; doubled with each look */
#define ANSWERS       7u
#define ROUNDS        2u /* a process that dies closes its name and its sockets in any order */
#define SETTLE_NS     20000000ull
/* The least time between reactions to detours; doubled while they change nothing. */
#define AGAIN_NS      10000000ull
#define SELDOM_NS     1000000000ull
#define SERVED_NS     100000000ull
#define SERVED_NAP_NS 5000000l
#define MORE_ROUNDS   6u /* at growing intervals, while the place is not known */
#define SETTLED       4  /* readings of the claims before the program is left as it is */

static struct steer {
	pthread_mutex_t lock;
	bool open[VB_CLAIM_FAMILIES];
	int place[VB_CLAIM_FAMILIES];
	/* A user, plus 1, whose processes are not to pass packets on; 0: none. */
	uint64_t but[VB_CLAIM_FAMILIES];
	/*
	 * The search for places: rounds to come, whether the present one has asked, and how often
	 * it has looked for answers.
	 */
	uint32_t rounds, looks, more;
	bool asked;
	bool unanswered; /* by the round before */
	bool joining;    /* the present search is the first one for a socket */
	_Atomic bool joined[VB_CLAIM_FAMILIES];
	bool helps; /* these two: news that were not reacted to yet */
	bool vanished;
	bool useful; /* something has changed since the last detour */
	_Atomic bool lost;
	_Atomic uint64_t due;
	_Atomic uint64_t lost_after; /* detours are reacted to from then on */
	uint64_t lost_gap;
} steer = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned int family_at(int i)
{
	return i ? VB_UDP_IPV6 : VB_UDP_IPV4;
}

static int index_of(unsigned int family)
{
	return family == VB_UDP_IPV6;
}

static bool has_socket(int family)
{
	return steer.open[family] && vb_udp_socket(family_at(family)) >= 0;
}

static void plan(uint64_t at)
{
	uint64_t due = atomic_load(&steer.due);

	while ((!due || at < due) && !atomic_compare_exchange_weak(&steer.due, &due, at))
		;
}

static void wake(void)
{
	plan(1);
	vb_progress_expect(1);
}

static bool is_helped(int family)
{
	return steer.open[family] && !has_socket(family);
}

/* Reads the claims of others. True: some are new or have gone. */
static bool look(void)
{
	struct vb_udp_claims_news news = vb_udp_claims_look();

	steer.helps |= news.helps;
	steer.vanished |= news.vanished;
	return news.changed;
}

static int helper_place(int family)
{
	return vb_udp_claims_helper(family, steer.but[family]);
}

/* True: the claims of this process have changed. */
static bool publish(void)
{
	struct vb_udp_own own = {0};

	for (int family = 0; family < VB_CLAIM_FAMILIES; family++) {
		bool helped = is_helped(family);

		own.place[family] = helped ? helper_place(family) : steer.place[family];
		own.helped |= helped;
	}
	if (!vb_udp_claims_publish(&own))
		return false;
	vb_log(VB_LOG_INFO,
	       "packets are steered to place %d (IPv4) and %d (IPv6), %u blocks of %u processes",
	       steer.place[0], steer.place[1], vb_udp_claims_blocks(), vb_udp_claims_processes());
	return true;
}

static void attach_family(int family)
{
	struct vb_steer_entry *entry;
	uint32_t count = vb_udp_claims_entries(family, &entry);
	int fd = vb_udp_socket(family_at(family));
	int err = -ENOMEM;

	if (entry && fd >= 0 && vb_descriptor_ours(fd))
		err = vb_steer_attach(fd, entry, count);
	if (err)
		vb_log(VB_LOG_INFO, "packets are not steered to their process (IPv%d): %s",
		       family ? 6 : 4, strerror(-err));
	free(entry);
}

/*
 * Sets the programs until no claim has changed meanwhile: then the last process to set them knew
 * all claims.
 */
static void attach(void)
{
	for (int i = 0; i < SETTLED; i++) {
		for (int family = 0; family < VB_CLAIM_FAMILIES; family++) {
			if (has_socket(family))
				attach_family(family);
		}
		if (!look())
			break;
	}
}

static void ask(uint32_t places)
{
	for (int family = 0; family < VB_CLAIM_FAMILIES; family++) {
		if (has_socket(family))
			vb_steer_probe(!family, places);
	}
}

static bool answered(void)
{
	for (int family = 0; family < VB_CLAIM_FAMILIES; family++) {
		if (has_socket(family) && vb_steer_place(!family) < 0)
			return false;
	}
	return true;
}

/* True: a place has changed. */
static bool places_take(void)
{
	int before[VB_CLAIM_FAMILIES];

	memcpy(before, steer.place, sizeof(before));
	for (int family = 0; family < VB_CLAIM_FAMILIES; family++)
		steer.place[family] = has_socket(family) ? vb_steer_place(!family) : -1;
	return memcmp(before, steer.place, sizeof(before)) != 0;
}

static uint32_t places_likely(void)
{
	return vb_udp_claims_processes() + FOREIGN;
}

static void begin(unsigned int family)
{
	if (vb_udp_claims_begin()) {
		steer.lost_gap = AGAIN_NS;
		steer.place[0] = steer.place[1] = -1;
	}
	steer.open[index_of(family)] = true;
}

static void join_end(void)
{
	steer.joining = false;
	for (int family = 0; family < VB_CLAIM_FAMILIES; family++)
		atomic_store(&steer.joined[family], steer.open[family]);
}

/* The probes need a program. */
static void round_begin(uint64_t now)
{
	attach();
	ask(steer.unanswered ? MOST : places_likely());
	steer.asked = true;
	steer.looks = 0;
	plan(now + ANSWER_NS);
}

void vb_udp_steer_join(unsigned int family)
{
	vb_mutex_take(&steer.lock, VB_ORDER_STEER);
	begin(family);
	look();
	if (has_socket(index_of(family))) {
		uint64_t now = vb_clock_ns();

		steer.joining = true;
		steer.unanswered = false;
		steer.more = 0;
		steer.rounds = ROUNDS;
		round_begin(now);
		vb_progress_expect(now + ANSWER_NS);
	} else {
		publish();
		attach();
		/*
		 * Those that are to set the program may have looked before there was a claim: they
		 * look again when they are called again.
		 */
		vb_udp_claims_forget();
		look();
		atomic_store(&steer.joined[index_of(family)], true);
	}
	vb_mutex_release(&steer.lock);
}

bool vb_udp_steer_is_joined(unsigned int family)
{
	return atomic_load(&steer.joined[index_of(family)]);
}

static bool served_now(int family, uid_t but)
{
	vb_mutex_take(&steer.lock, VB_ORDER_STEER);
	steer.but[family] = but == (uid_t)-1 ? 0 : but + 1ull;
	look();
	bool served = helper_place(family) >= 0;

	if (!steer.open[0] && !steer.open[1])
		vb_udp_claims_forget();
	vb_mutex_release(&steer.lock);
	return served;
}

/* Processes that have just lost a neighbour know their places again in a moment. */
bool vb_udp_steer_is_served(unsigned int family, uid_t but)
{
	uint64_t until = vb_clock_ns() + SERVED_NS;
	bool served;

	while (!(served = served_now(index_of(family), but)) && vb_clock_ns() < until)
		vb_sys_nanosleep(&(struct timespec){.tv_nsec = SERVED_NAP_NS});
	return served;
}

void vb_udp_steer_part(unsigned int family)
{
	vb_mutex_take(&steer.lock, VB_ORDER_STEER);
	steer.place[index_of(family)] = -1;
	publish();
	attach();
	steer.open[index_of(family)] = false;
	atomic_store(&steer.joined[index_of(family)], false);
	vb_mutex_release(&steer.lock);
}

void vb_udp_steer_parted(void)
{
	vb_mutex_take(&steer.lock, VB_ORDER_STEER);
	/* The name is closed in any case, because others read it. */
	vb_udp_claims_withdraw();
	if (steer.open[0] || steer.open[1]) {
		publish();
	} else {
		vb_udp_claims_end();
		steer.rounds = 0;
		steer.joining = false;
	}
	vb_mutex_release(&steer.lock);
}

void vb_udp_steer_check(void)
{
	vb_mutex_take(&steer.lock, VB_ORDER_STEER);
	/* The end of the first search publishes all. */
	if (vb_udp_claims_begun() && !steer.joining && publish())
		attach();
	vb_mutex_release(&steer.lock);
}

void vb_udp_steer_moved(void)
{
	wake();
}

void vb_udp_steer_lost(void)
{
	if (vb_clock_ns() < atomic_load_explicit(&steer.lost_after, memory_order_relaxed) ||
	    atomic_exchange(&steer.lost, true))
		return;
	wake();
}

void vb_udp_steer_renewed(void)
{
	atomic_store(&steer.lost, true);
	wake();
}

void vb_udp_steer_event(uint64_t tag)
{
	(void)tag;
	plan(1);
}

static void rounds_begin(void)
{
	steer.rounds = ROUNDS;
	steer.more = 0;
	steer.asked = false;
}

/*
 * A detour causes a look at the claims. While looks change nothing, they become less and less
 * frequent.
 */
static void lost_note(uint64_t now)
{
	if (!atomic_exchange(&steer.lost, false))
		return;
	steer.lost_gap = steer.useful ? AGAIN_NS : steer.lost_gap * 2;
	if (steer.lost_gap > SELDOM_NS)
		steer.lost_gap = SELDOM_NS;
	steer.useful = false;
	atomic_store(&steer.lost_after, now + steer.lost_gap);
	rounds_begin();
}

/* A thread that is to read the probes may have to wait long for a processor. */
static void search_end(uint64_t now)
{
	if (steer.joining)
		join_end();
	if (!steer.unanswered || steer.more == MORE_ROUNDS)
		return;
	steer.rounds = 1;
	plan(now + (SETTLE_NS << ++steer.more));
}

/*
 * One round: ask, look for answers a few times, claim the places, set the program. A first search
 * ends with the first answer; without one it asks for more places.
 */
static void round_go_on(uint64_t now)
{
	if (!steer.asked) {
		round_begin(now);
		return;
	}
	steer.unanswered = !answered();
	if (steer.unanswered && ++steer.looks < ANSWERS) {
		plan(now + (ANSWER_NS << steer.looks));
		return;
	}
	steer.useful |= places_take();
	steer.useful |= publish();
	attach();
	steer.asked = false;
	if (steer.joining && !steer.unanswered)
		steer.rounds = 1;
	if (--steer.rounds)
		plan(steer.joining ? now : now + SETTLE_NS);
	else
		search_end(now);
}

static void serve(uint64_t now)
{
	steer.useful |= look();
	lost_note(now);
	if (steer.vanished) { /* places have moved */
		steer.vanished = false;
		rounds_begin();
	}
	if (steer.rounds) {
		round_go_on(now);
	} else if (publish() || steer.helps) {
		attach();
	}
	steer.helps = false;
}

static void serve_due(void)
{
	uint64_t due = atomic_load_explicit(&steer.due, memory_order_relaxed);
	uint64_t now = due ? vb_clock_ns() : 0;

	if (!due || now < due)
		return;
	/* The holder of the lock does not wait for this thread. */
	if (!vb_mutex_try(&steer.lock, VB_ORDER_STEER)) {
		atomic_store(&steer.due, now + ANSWER_NS);
		return;
	}
	atomic_store(&steer.due, 0);
	if (steer.open[0] || steer.open[1])
		serve(now);
	vb_mutex_release(&steer.lock);
}

void vb_udp_steer_go_on(void)
{
	serve_due();
}

/* Does what is due, without waiting. */
static uint64_t progress(void)
{
	serve_due();
	return atomic_load_explicit(&steer.due, memory_order_relaxed);
}

static void forked(void)
{
	memset(&steer, 0, sizeof(steer));
	pthread_mutex_init(&steer.lock, NULL);
}

VB_PROGRESS_HOOK(.serve = progress);

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);
