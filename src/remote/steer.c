/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Steering: the process's own claim, the claims of others, and the program that follows from them.
 */
#include "remote/steer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/fork.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/sys.h"
#include "engine/engine.h"
#include "process/process.h"
#include "remote/link.h"
#include "host/claim.h"
#include "host/descriptor.h"
#include "host/page.h"
#include "udp/steer.h"
#include "engine/progress.h"

#define MEMBERS       256u
#define CLAIMS        ((VB_MAX_BLOCKS + VB_CLAIM_BLOCKS - 1) / VB_CLAIM_BLOCKS)
#define REFUSED       256u /* claims of users who do not agree that are called in one reading */
#define FOREIGN       3u   /* sockets without a claim that may be in the group */
#define MOST          256u /* places that are asked for when nothing else has answered */
#define JOIN_NS       20000000ull
#define NAP_NS        50000l
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

enum { TAG_VISITOR = VB_UDP_LINK_TAGS, TAG_GONE };

struct member {
	struct vb_claim claim;
	int fd;
	bool seen;
};

static struct steer {
	pthread_mutex_t lock;
	bool open[VB_CLAIM_FAMILIES];
	int place[VB_CLAIM_FAMILIES];
	/* A user, plus 1, whose processes are not to pass packets on; 0: none. */
	uint64_t but[VB_CLAIM_FAMILIES];
	uint32_t id, serial;
	/* The present claims. */
	struct vb_claim said[CLAIMS];
	int own[CLAIMS]; /* sockets of the claims' names */
	uint32_t claims;
	/* Claims of other processes that were seen to be of this user, or of one that agrees. */
	struct member member[MEMBERS];
	uint32_t members;
	uint32_t refused; /* in the present reading */
	/*
	 * The search for places: rounds to come, whether the present one has asked, and how often
	 * it has looked for answers.
	 */
	uint32_t rounds, looks, more;
	bool asked;
	bool unanswered; /* by the round before */
	bool joining;    /* the present search is the first one for a socket */
	_Atomic bool joined[VB_CLAIM_FAMILIES];
	bool helps;    /* a new claim is that of a process which cannot set the program */
	bool vanished; /* a process has ended, whatever was looked for */
	bool useful;   /* something has changed since the last detour */
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
	return steer.open[family] && vb_udp_link_socket(family_at(family)) >= 0;
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

/* Without it nothing would tell that the claim is gone; then detours do. */
static void watch(int fd, uint32_t events, uint64_t tag)
{
	struct epoll_event event = {.events = events | EPOLLET, .data.u64 = tag};

	(void)epoll_ctl(vb_udp_link_epoll(), EPOLL_CTL_ADD, fd, &event);
}

static void unwatch(int fd)
{
	if (vb_descriptor_ours(fd))
		epoll_ctl(vb_udp_link_epoll(), EPOLL_CTL_DEL, fd, NULL);
	vb_descriptor_close(fd);
}

static void claim_seen(const struct vb_claim *claim, void *arg)
{
	bool *changed = arg;
	struct member *m = steer.member;

	if (claim->id == steer.id)
		return;
	for (uint32_t i = 0; i < steer.members; i++, m++) {
		if (!strcmp(m->claim.name, claim->name)) {
			m->seen = true;
			*changed |= vb_claim_prove(&m->claim, claim);
			return;
		}
	}
	if (steer.members == MEMBERS || steer.refused == REFUSED)
		return;
	m->claim = *claim;
	m->fd = vb_claim_watch(&m->claim);
	if (m->fd < 0) {
		steer.refused += claim->uid != vb_claim_user();
		return;
	}
	watch(m->fd, EPOLLRDHUP, TAG_GONE);
	m->seen = true;
	steer.helps |= claim->helped;
	steer.members++;
	*changed = true;
}

static bool is_member(uint32_t id)
{
	for (uint32_t i = 0; i < steer.members; i++) {
		if (steer.member[i].claim.id == id)
			return true;
	}
	return false;
}

/* Reads the claims of others. True: some are new or have gone. */
static bool look(void)
{
	bool changed = false;

	for (uint32_t i = 0; i < steer.members; i++)
		steer.member[i].seen = false;
	steer.refused = 0;
	if (vb_claim_read(claim_seen, &changed))
		return false;
	for (uint32_t i = 0; i < steer.members;) {
		struct member *m = &steer.member[i];
		uint32_t id = m->claim.id;

		if (m->seen && vb_descriptor_still(m->fd)) {
			i++;
			continue;
		}
		unwatch(m->fd);
		*m = steer.member[--steer.members];
		steer.vanished |= !is_member(id);
		changed = true;
	}
	return changed;
}

/*
 * The place of a process that passes packets on to this one, one of this user if there is one. -1:
 * there is none.
 */
static int helper_place(int family)
{
	int place = -1;

	for (uint32_t i = 0; i < steer.members; i++) {
		const struct vb_claim *c = &steer.member[i].claim;

		if (c->place[family] < 0 || c->uid + 1ull == steer.but[family])
			continue;
		place = c->place[family];
		if (c->uid == vb_claim_user())
			break;
	}
	return place;
}

static bool is_helped(int family)
{
	return steer.open[family] && !has_socket(family);
}

/* The place that packets for this process are to go to. */
static int place_to_claim(int family)
{
	return is_helped(family) ? helper_place(family) : steer.place[family];
}

/* The blocks of the process as claims. Returns the number of claims. */
static uint32_t claims_make(struct vb_claim claim[CLAIMS])
{
	const struct vb_page_header *page = &vb_node_page(vb_process_node_started())->header;
	uint32_t blocks = __atomic_load_n(&page->num_blocks, __ATOMIC_ACQUIRE);
	uint32_t n = 0;

	memset(claim, 0, CLAIMS * sizeof(*claim));
	for (uint32_t i = 0; i < blocks; i++) {
		uint32_t block = __atomic_load_n(&page->block[i], __ATOMIC_RELAXED);

		if (block == VB_NO_BLOCK)
			continue;
		if (claim[n].blocks == VB_CLAIM_BLOCKS)
			n++;
		claim[n].block[claim[n].blocks++] = block;
	}
	for (uint32_t i = 0; i <= n; i++) {
		claim[i].id = steer.id;
		for (int family = 0; family < VB_CLAIM_FAMILIES; family++) {
			claim[i].place[family] = place_to_claim(family);
			claim[i].helped |= is_helped(family);
		}
	}
	return n + 1;
}

static bool same(const struct vb_claim *a, const struct vb_claim *b)
{
	return a->id == b->id && a->helped == b->helped &&
	       !memcmp(a->place, b->place, sizeof(a->place)) && a->blocks == b->blocks &&
	       !memcmp(a->block, b->block, sizeof(a->block));
}

static void withdraw(int fd[CLAIMS], uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		unwatch(fd[i]);
}

/* True: the claims have changed. The old names are closed when the new ones exist. */
static bool publish(void)
{
	struct vb_claim claim[CLAIMS];
	uint32_t n = claims_make(claim), old = steer.claims;
	bool changed = n != old;
	int gone[CLAIMS];

	for (uint32_t i = 0; i < n && !changed; i++)
		changed = !same(&claim[i], &steer.said[i]) || !vb_descriptor_still(steer.own[i]);
	if (!changed)
		return false;
	memcpy(gone, steer.own, sizeof(gone));
	for (steer.claims = 0; steer.claims < n; steer.claims++) {
		struct vb_claim *c = &claim[steer.claims];

		c->serial = ++steer.serial;
		steer.own[steer.claims] = vb_claim_publish(c);
		/* The other blocks are not claimed: the flow's hash decides for them. */
		if (steer.own[steer.claims] < 0)
			break;
		watch(steer.own[steer.claims], EPOLLIN, TAG_VISITOR);
		steer.said[steer.claims] = *c;
	}
	withdraw(gone, old);
	vb_log(VB_LOG_INFO,
	       "packets are steered to place %d (IPv4) and %d (IPv6), %u blocks of %u processes",
	       steer.place[0], steer.place[1], steer.claims ? steer.said[0].blocks : 0,
	       steer.members + 1);
	return true;
}

static int by_block(const void *a, const void *b)
{
	const struct vb_steer_entry *x = a, *y = b;

	return x->block < y->block ? -1 : x->block > y->block;
}

static void entries_add(struct vb_steer_entry *entry, uint32_t *count, const struct vb_claim *c,
			int family)
{
	for (uint32_t i = 0; i < c->blocks && c->place[family] >= 0; i++)
		entry[(*count)++] =
			(struct vb_steer_entry){c->block[i], (uint32_t)c->place[family]};
}

/*
 * A block that two processes claim, because one has it from the other, is left to the flow's hash
 * until the older claim is gone.
 */
static uint32_t entries_unique(struct vb_steer_entry *entry, uint32_t count)
{
	uint32_t kept = 0;

	qsort(entry, count, sizeof(*entry), by_block);
	for (uint32_t i = 0; i < count; i++) {
		bool twice = (i && entry[i - 1].block == entry[i].block) ||
			     (i + 1 < count && entry[i + 1].block == entry[i].block);

		if (!twice)
			entry[kept++] = entry[i];
	}
	return kept;
}

static void attach_family(int family)
{
	struct vb_steer_entry *entry =
		malloc((steer.members + CLAIMS) * VB_CLAIM_BLOCKS * sizeof(*entry));
	int fd = vb_udp_link_socket(family_at(family));
	uint32_t count = 0;
	int err = -ENOMEM;

	for (uint32_t i = 0; entry && i < steer.members; i++)
		entries_add(entry, &count, &steer.member[i].claim, family);
	for (uint32_t i = 0; entry && i < steer.claims; i++)
		entries_add(entry, &count, &steer.said[i], family);
	if (entry && fd >= 0 && vb_descriptor_ours(fd))
		err = vb_steer_attach(fd, entry, entries_unique(entry, count));
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
	return steer.members + 1 + FOREIGN;
}

static void members_forget(void)
{
	for (uint32_t i = 0; i < steer.members; i++)
		unwatch(steer.member[i].fd);
	steer.members = 0;
}

static void begin(unsigned int family)
{
	if (!steer.id) {
		steer.id = vb_random32() | 1;
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
		members_forget();
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
		members_forget();
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
	withdraw(steer.own, steer.claims);
	steer.claims = 0;
	if (steer.open[0] || steer.open[1]) {
		publish();
	} else {
		members_forget();
		steer.rounds = 0;
		steer.joining = false;
		steer.id = 0;
	}
	vb_mutex_release(&steer.lock);
}

void vb_udp_steer_check(void)
{
	vb_mutex_take(&steer.lock, VB_ORDER_STEER);
	/* The end of the first search publishes all. */
	if (steer.id && !steer.joining && publish())
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

void vb_udp_steer_await(struct vb_engine *e, unsigned int family)
{
	uint64_t until = vb_clock_ns() + JOIN_NS;

	while (!vb_udp_steer_is_joined(family) && vb_clock_ns() < until) {
		if (vb_lock_try(&e->lock)) {
			(void)vb_udp_link_take(e);
			vb_lock_release(&e->lock);
		}
		serve_due();
		vb_sys_nanosleep(&(struct timespec){.tv_nsec = NAP_NS});
	}
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
