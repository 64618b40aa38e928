/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Claims: published, read, believed, watched. */
#include "remote/claims.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/fork.h"
#include "base/random.h"
#include "host/claim.h"
#include "host/descriptor.h"
#include "host/page.h"
#include "process/process.h"
#include "remote/sockets.h"

#define MEMBERS 256u
#define CLAIMS  ((VB_MAX_BLOCKS + VB_CLAIM_BLOCKS - 1) / VB_CLAIM_BLOCKS)
#define REFUSED 256u /* claims of users who do not agree that are called in one reading */

enum { TAG_VISITOR = VB_UDP_TAG_STEER, TAG_GONE };

struct member {
	struct vb_claim claim;
	int fd;
	bool seen;
};

static struct {
	uint32_t id, serial;
	/* The present claims. */
	struct vb_claim said[CLAIMS];
	int own[CLAIMS]; /* sockets of the claims' names */
	uint32_t claims;
	/* Claims of other processes that were seen to be of this user, or of one that agrees. */
	struct member member[MEMBERS];
	uint32_t members;
	uint32_t refused; /* in the present reading */
} known;

/* Without it nothing would tell that the claim is gone; then detours do. */
static void watch(int fd, uint32_t events, uint64_t tag)
{
	struct epoll_event event = {.events = events | EPOLLET, .data.u64 = tag};

	(void)epoll_ctl(vb_udp_sockets_epoll(), EPOLL_CTL_ADD, fd, &event);
}

static void unwatch(int fd)
{
	if (vb_descriptor_ours(fd))
		epoll_ctl(vb_udp_sockets_epoll(), EPOLL_CTL_DEL, fd, NULL);
	vb_descriptor_close(fd);
}

static void claim_seen(const struct vb_claim *claim, void *arg)
{
	struct vb_udp_claims_news *news = arg;
	struct member *m = known.member;

	if (claim->id == known.id)
		return;
	for (uint32_t i = 0; i < known.members; i++, m++) {
		if (!strcmp(m->claim.name, claim->name)) {
			m->seen = true;
			news->changed |= vb_claim_prove(&m->claim, claim);
			return;
		}
	}
	if (known.members == MEMBERS || known.refused == REFUSED)
		return;
	m->claim = *claim;
	m->fd = vb_claim_watch(&m->claim);
	if (m->fd < 0) {
		known.refused += claim->uid != vb_claim_user();
		return;
	}
	watch(m->fd, EPOLLRDHUP, TAG_GONE);
	m->seen = true;
	news->helps |= claim->helped;
	news->changed = true;
	known.members++;
}

static bool is_member(uint32_t id)
{
	for (uint32_t i = 0; i < known.members; i++) {
		if (known.member[i].claim.id == id)
			return true;
	}
	return false;
}

struct vb_udp_claims_news vb_udp_claims_look(void)
{
	struct vb_udp_claims_news news = {0};

	for (uint32_t i = 0; i < known.members; i++)
		known.member[i].seen = false;
	known.refused = 0;
	if (vb_claim_read(claim_seen, &news))
		return (struct vb_udp_claims_news){0};
	for (uint32_t i = 0; i < known.members;) {
		struct member *m = &known.member[i];
		uint32_t id = m->claim.id;

		if (m->seen && vb_descriptor_still(m->fd)) {
			i++;
			continue;
		}
		unwatch(m->fd);
		*m = known.member[--known.members];
		news.vanished |= !is_member(id);
		news.changed = true;
	}
	return news;
}

int vb_udp_claims_helper(int family, uint64_t but)
{
	int place = -1;

	for (uint32_t i = 0; i < known.members; i++) {
		const struct vb_claim *c = &known.member[i].claim;

		if (c->place[family] < 0 || c->uid + 1ull == but)
			continue;
		place = c->place[family];
		if (c->uid == vb_claim_user())
			break;
	}
	return place;
}

/* The blocks of the process as claims. Returns the number of claims. */
static uint32_t claims_make(const struct vb_udp_own *own, struct vb_claim claim[CLAIMS])
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
		claim[i].id = known.id;
		memcpy(claim[i].place, own->place, sizeof(own->place));
		claim[i].helped = own->helped;
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

bool vb_udp_claims_publish(const struct vb_udp_own *own)
{
	struct vb_claim claim[CLAIMS];
	uint32_t n = claims_make(own, claim), old = known.claims;
	bool changed = n != old;
	int gone[CLAIMS];

	for (uint32_t i = 0; i < n && !changed; i++)
		changed = !same(&claim[i], &known.said[i]) || !vb_descriptor_still(known.own[i]);
	if (!changed)
		return false;
	memcpy(gone, known.own, sizeof(gone));
	for (known.claims = 0; known.claims < n; known.claims++) {
		struct vb_claim *c = &claim[known.claims];

		c->serial = ++known.serial;
		known.own[known.claims] = vb_claim_publish(c);
		/* The other blocks are not claimed: the flow's hash decides for them. */
		if (known.own[known.claims] < 0)
			break;
		watch(known.own[known.claims], EPOLLIN, TAG_VISITOR);
		known.said[known.claims] = *c;
	}
	withdraw(gone, old);
	return true;
}

void vb_udp_claims_withdraw(void)
{
	withdraw(known.own, known.claims);
	known.claims = 0;
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

uint32_t vb_udp_claims_blocks(void)
{
	return known.claims ? known.said[0].blocks : 0;
}

uint32_t vb_udp_claims_processes(void)
{
	return known.members + 1;
}

uint32_t vb_udp_claims_entries(int family, struct vb_steer_entry **entries)
{
	struct vb_steer_entry *entry =
		malloc((known.members + CLAIMS) * VB_CLAIM_BLOCKS * sizeof(*entry));
	uint32_t count = 0;

	for (uint32_t i = 0; entry && i < known.members; i++)
		entries_add(entry, &count, &known.member[i].claim, family);
	for (uint32_t i = 0; entry && i < known.claims; i++)
		entries_add(entry, &count, &known.said[i], family);
	*entries = entry;
	return entry ? entries_unique(entry, count) : 0;
}

bool vb_udp_claims_begin(void)
{
	if (known.id)
		return false;
	known.id = vb_random32() | 1;
	return true;
}

void vb_udp_claims_end(void)
{
	vb_udp_claims_forget();
	known.id = 0;
}

bool vb_udp_claims_begun(void)
{
	return known.id;
}

void vb_udp_claims_forget(void)
{
	for (uint32_t i = 0; i < known.members; i++)
		unwatch(known.member[i].fd);
	known.members = 0;
}

static void forked(void)
{
	memset(&known, 0, sizeof(known));
}

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);
