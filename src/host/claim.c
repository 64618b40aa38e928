/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Claims on packets of other hosts: names made, read and watched. */
#include "host/claim.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/abstract.h"
#include "host/descriptor.h"
#include "host/domain.h"
#include "host/names.h"
#include "host/trust.h"

#define PREFIX     "verbatim/%u/to/"
#define SHARES     '+'
#define HELPED     '*'
#define BASE       64u
#define DIGITS     3u   /* of base 64: a block has 14 bits */
#define PLACE_MOST 4095 /* the largest plausible place */

static const char digits[BASE + 1] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";

/*
 * The user whose group of sockets this process is in: the user at the time of the first question,
 * as with its sockets. Kept together with the process id, because a forked child begins anew.
 */
uid_t vb_claim_user(void)
{
	static _Atomic uint64_t known;
	uint64_t k = atomic_load(&known), pid = (uint64_t)getpid() << 32;

	if ((k ^ pid) >> 32) {
		k = pid | geteuid();
		atomic_store(&known, k);
	}
	return (uid_t)k;
}

static void name_make(struct vb_claim *c)
{
	const char mark[] = {c->helped ? HELPED : c->shares ? SHARES : '\0', '\0'};
	int n = snprintf(c->name, sizeof(c->name), PREFIX "%08x.%x/%d.%d%s/", vb_claim_user(),
			 c->id, c->serial, c->place[0], c->place[1], mark);

	for (uint32_t i = 0; i < c->blocks; i++) {
		for (uint32_t shift = 0; shift < 6 * DIGITS; shift += 6)
			c->name[n++] = digits[c->block[i] >> shift & (BASE - 1)];
	}
	c->name[n] = '\0';
}

static bool blocks_parse(struct vb_claim *c, const char *text)
{
	c->blocks = 0;
	for (; text[0]; text += DIGITS) {
		uint32_t block = 0;

		for (uint32_t i = 0; i < DIGITS; i++) {
			const char *digit = text[i] ? strchr(digits, text[i]) : NULL;

			if (!digit)
				return false;
			block |= (uint32_t)(digit - digits) << 6 * i;
		}
		if (c->blocks == VB_CLAIM_BLOCKS || block >> 14)
			return false;
		c->block[c->blocks++] = block;
	}
	return true;
}

static bool plausible(int place)
{
	return place >= -1 && place <= PLACE_MOST;
}

/*
 * Reads the name of a claim of this user, or of any user if both processes have a domain. False:
 * the name is none.
 */
static bool name_parse(struct vb_claim *c, const char *name)
{
	unsigned int uid;
	int at = 0;

	if (strlen(name) >= sizeof(c->name) ||
	    sscanf(name, PREFIX "%8x.%8x/%d.%d%n", &uid, &c->id, &c->serial, &c->place[0],
		   &c->place[1], &at) != 5 ||
	    !at || !plausible(c->place[0]) || !plausible(c->place[1]))
		return false;
	c->helped = name[at] == HELPED;
	c->shares = c->helped || name[at] == SHARES;
	at += c->shares;
	if (name[at] != '/')
		return false;
	if (uid != vb_claim_user() && (!c->shares || !vb_domain_is_named()))
		return false;
	c->uid = uid;
	strcpy(c->name, name);
	return blocks_parse(c, name + at + 1);
}

int vb_claim_publish(struct vb_claim *c)
{
	c->shares = vb_domain_is_named();
	name_make(c);
	return vb_abstract_listen(c->name, SOMAXCONN);
}

/*
 * Whether the process that listens on the block's name has this user, so that it is the maker of
 * the claim or one that is believed as much.
 */
static bool block_is_of(uint32_t block, uid_t uid)
{
	char name[VB_ABSTRACT_NAME];
	struct ucred owner;

	vb_name_text(name, sizeof(name), block);
	int fd = vb_abstract_connect(name, &owner);

	vb_descriptor_close(fd);
	return fd >= 0 && owner.uid == uid;
}

/* Of another user only those blocks are believed whose names that user holds. */
static void blocks_prove(struct vb_claim *c)
{
	uint32_t proven = 0;

	for (uint32_t i = 0; i < c->blocks; i++) {
		if (block_is_of(c->block[i], c->uid))
			c->block[proven++] = c->block[i];
	}
	c->blocks = proven;
}

bool vb_claim_prove(struct vb_claim *c, const struct vb_claim *named)
{
	uint32_t before = c->blocks;

	if (before == named->blocks)
		return false;
	*c = *named;
	blocks_prove(c);
	return c->blocks > before;
}

int vb_claim_watch(struct vb_claim *c)
{
	struct ucred owner;
	bool ours = c->uid == vb_claim_user();
	int fd = vb_abstract_connect(c->name, &owner);

	if (fd < 0)
		return fd;
	if (owner.uid == c->uid && vb_trust_is_one_user(owner.uid) && (ours || vb_domain_has(fd))) {
		if (!ours)
			blocks_prove(c);
		return fd;
	}
	vb_descriptor_close(fd);
	return -EPERM;
}

struct reading {
	void (*each)(const struct vb_claim *claim, void *arg);
	void *arg;
};

static bool name_read(const char *name, void *arg)
{
	struct reading *r = arg;
	struct vb_claim c;

	if (name_parse(&c, name))
		r->each(&c, r->arg);
	return true;
}

int vb_claim_read(void (*each)(const struct vb_claim *claim, void *arg), void *arg)
{
	struct reading r = {each, arg};

	return vb_abstract_read(name_read, &r);
}
