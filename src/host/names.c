/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pair numbers. A process claims a block of them by listening on its names (host/names.h).
 * The names are unique in the network namespace, whatever user the owner has, as the UDP port is,
 * and they vanish with the owner. Where another user has taken the plain name, the keyed one
 * suffices: processes of one user ask it first. A number is reused as late as possible (IBA 9.2.4:
 * stale packets).
 */
#include "host/names.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/reason.h"
#include "base/sys.h"
#include "host/descriptor.h"
#include "host/private.h"
#include "host/secret.h"
#include "host/trust.h"

#define NUM_BLOCKS  (1u << (24 - VB_QPN_BLOCK_BITS))
#define CLAIM_TRIES 64
/* So many numbers rest, if another block can be had. */
#define REST        64u

/* Block 0 holds the management queue pairs, the last one the multicast number. */
static uint32_t random_block(void)
{
	return 1 + vb_random32() % (NUM_BLOCKS - 2);
}

/* Returns a socket that is bound to this name, or -errno. */
static int name_bind(const struct sockaddr_un *addr, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)addr, len) == 0)
		return vb_descriptor_adopt(fd);
	int err = -errno;

	vb_sys_close(fd);
	return err;
}

/* The sockets of a block; -1: this name is not bound. */
struct claim {
	int plain;
	int keyed;
};

/*
 * Binds both names of this block, or, if `alone` allows it, the keyed one where the plain one is
 * taken. 0 or -errno.
 */
static int claim_bind(const struct vb_names *names, uint32_t block, bool alone, struct claim *c)
{
	struct sockaddr_un addr;

	c->keyed = -1;
	if (names->has_secret) {
		c->keyed = name_bind(&addr, vb_name_address_keyed(&addr, names->secret, block));
		if (c->keyed < 0)
			return c->keyed;
	}
	c->plain = name_bind(&addr, vb_name_address(&addr, block));
	if (c->plain >= 0)
		return 0;
	int err = c->plain;

	c->plain = -1;
	if (err == -EADDRINUSE && alone && c->keyed >= 0)
		return 0;
	vb_descriptor_close(c->keyed);
	return err;
}

/* Logs which process has the plain name, as far as can be seen. */
static void squatter_note(const struct vb_names *names, uint32_t block)
{
	struct sockaddr_un addr;
	struct ucred cred = {0};
	socklen_t len = vb_name_address(&addr, block), cred_len = sizeof(cred);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return;
	bool seen = !vb_sys_connect(fd, (struct sockaddr *)&addr, len) &&
		    !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len);

	vb_sys_close(fd);
	vb_note(VB_REASON_NAMES_TAKEN,
		"no free name among %d blocks; block 0x%x is held by %s %d of user %u; %s",
		CLAIM_TRIES, block, seen ? "process" : "an unknown process", (int)cred.pid,
		cred.uid,
		names->has_secret ? "the user's own names are used alone"
				  : "the user has no secret for names of its own (keyctl(2))");
}

/* Binds the names of a block that was free; 0 or -errno. */
static int claim_random(const struct vb_names *names, uint32_t *block, struct claim *c)
{
	int err = -EADDRINUSE;

	for (int i = 0; i < CLAIM_TRIES && err == -EADDRINUSE; i++) {
		*block = random_block();
		err = claim_bind(names, *block, false, c);
	}
	if (err != -EADDRINUSE)
		return err;
	squatter_note(names, *block);
	for (int i = 0; i < CLAIM_TRIES && err == -EADDRINUSE && names->has_secret; i++) {
		*block = random_block();
		err = claim_bind(names, *block, true, c);
	}
	return err;
}

static void numbers_add(struct vb_names *names, uint32_t index)
{
	names->free[(names->first + names->num_free++) % VB_MAX_QPS] = index;
}

/* Takes the numbers of block i out of the ring of free ones. */
static void numbers_remove(struct vb_names *names, uint32_t i)
{
	uint32_t n = names->num_free;

	names->num_free = 0;
	for (uint32_t k = 0; k < n; k++) {
		uint32_t index = names->free[(names->first + k) % VB_MAX_QPS];

		if (index / VB_QPN_BLOCK_SIZE != i)
			numbers_add(names, index);
	}
}

/* A place that was never used, or whose block is closed. */
static uint32_t place_find(const struct vb_node *node)
{
	const struct vb_page_header *head = &node->page->header;
	uint32_t i = 0;

	while (i < head->num_blocks && head->block[i] != VB_NO_BLOCK)
		i++;
	return i;
}

static int name_listen(struct vb_node *node, struct vb_source *listener, int fd, bool keyed)
{
	listener->fd = fd;
	listener->ready = keyed ? vb_admit_keyed_ready : vb_admit_ready;
	if (fd < 0)
		return 0;
	/* Accepted sockets inherit this option, so no message can be sent before it is set. */
	vb_control_name_senders(fd);
	return listen(fd, SOMAXCONN) ? -errno
				     : vb_node_source_add(node, listener, EPOLLIN | EPOLLET);
}

static void place_close(struct vb_node *node, uint32_t i)
{
	/* From now on peers look for another owner of the block. */
	__atomic_store_n(&node->page->header.block[i], VB_NO_BLOCK, __ATOMIC_SEQ_CST);
	vb_node_source_remove(node, &node->names.plain[i]);
	vb_node_source_remove(node, &node->names.keyed[i]);
}

/*
 * Listens on the names of the block; of any block if it is 0. Returns the index of its entries, or
 * -errno.
 */
static int block_listen(struct vb_node *node, uint32_t *name)
{
	struct vb_page_header *head = &node->page->header;
	struct vb_names *names = &node->names;
	uint32_t block = *name, i = place_find(node);
	struct claim c = {-1, -1};

	if (i == VB_MAX_BLOCKS)
		return -ENOMEM;
	int err = block ? claim_bind(names, block, true, &c) : claim_random(names, &block, &c);

	if (err)
		return err;
	/*
	 * Published before a process can connect: a peer that comes by this name finds it in the
	 * page.
	 */
	__atomic_store_n(&head->block[i], block, __ATOMIC_RELEASE);
	if (i == head->num_blocks)
		__atomic_store_n(&head->num_blocks, i + 1, __ATOMIC_RELEASE);
	names->keyed[i].fd = -1;
	err = name_listen(node, &names->plain[i], c.plain, false);
	if (!err)
		err = name_listen(node, &names->keyed[i], c.keyed, true);
	else
		vb_descriptor_close(c.keyed);
	if (err) {
		place_close(node, i);
		return err;
	}
	*name = block;
	return (int)i;
}

static int block_claim(struct vb_node *node)
{
	struct vb_names *names = &node->names;
	uint32_t block = 0, start = vb_random32();
	int listening = block_listen(node, &block);

	if (listening < 0)
		return listening;
	uint32_t i = (uint32_t)listening;

	names->in_use[i] = 0;
	for (uint32_t n = 0; n < VB_QPN_BLOCK_SIZE; n++)
		numbers_add(names, i * VB_QPN_BLOCK_SIZE + (start + n) % VB_QPN_BLOCK_SIZE);
	vb_log(VB_LOG_INFO, "claimed queue pair numbers 0x%x to 0x%x", block << VB_QPN_BLOCK_BITS,
	       (block << VB_QPN_BLOCK_BITS) + VB_QPN_BLOCK_SIZE - 1);
	return 0;
}

/*
 * The last number of block i was given back. Its names and descriptors are given up, if enough
 * numbers are left without it. The numbers rest better so: the next owner of the block is another
 * process at another time.
 */
static void block_retire(struct vb_node *node, uint32_t i)
{
	struct vb_names *names = &node->names;

	/* Passports name the process by its first block (object/passport.c). */
	if (i == 0 || names->in_use[i] || names->num_free < VB_QPN_BLOCK_SIZE + 2 * REST)
		return;
	numbers_remove(names, i);
	place_close(node, i);
}

int vb_node_block_open(struct vb_node *node, uint32_t *block)
{
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	int i = block_listen(node, block);

	vb_mutex_release(&node->lock);
	return i < 0 ? i : 0;
}

void vb_node_block_close(struct vb_node *node, uint32_t block)
{
	int i = vb_page_block_index(node->page, block);

	if (i < 0)
		return;
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	place_close(node, (uint32_t)i);
	vb_mutex_release(&node->lock);
}

struct vb_page_qp *vb_node_qp_entry(struct vb_node *node, uint32_t qpn)
{
	int i = vb_page_block_index(node->page, qpn >> VB_QPN_BLOCK_BITS);

	return i < 0 ? NULL
		     : &node->page->qp[(uint32_t)i * VB_QPN_BLOCK_SIZE + qpn % VB_QPN_BLOCK_SIZE];
}

int vb_node_qpn_alloc(struct vb_node *node, uint32_t *qpn, struct vb_page_qp **entry)
{
	struct vb_names *names = &node->names;
	int err = 0;

	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	if (names->num_free < REST)
		err = block_claim(node);
	if (!names->num_free) {
		vb_mutex_release(&node->lock);
		if (err == -EADDRINUSE)
			return vb_refuse(EADDRINUSE, VB_REASON_NAMES_TAKEN,
					 "no queue pair number: every name is taken");
		return vb_refuse(-err, err == -ENOMEM ? VB_REASON_NO_MEMORY : VB_REASON_SYSTEM,
				 "no queue pair number: %s",
				 err == -ENOMEM ? "all are in use" : strerror(-err));
	}
	uint32_t index = names->free[names->first];

	names->first = (names->first + 1) % VB_MAX_QPS;
	names->num_free--;
	names->used[index / 64] |= 1ull << index % 64;
	names->in_use[index / VB_QPN_BLOCK_SIZE]++;
	vb_mutex_release(&node->lock);
	*qpn = node->page->header.block[index / VB_QPN_BLOCK_SIZE] << VB_QPN_BLOCK_BITS |
	       index % VB_QPN_BLOCK_SIZE;
	*entry = &node->page->qp[index];
	return 0;
}

void vb_node_qpn_free(struct vb_node *node, uint32_t qpn)
{
	int i = vb_page_block_index(node->page, qpn >> VB_QPN_BLOCK_BITS);

	if (i < 0 || atomic_load(&node->forked))
		return;
	uint32_t index = (uint32_t)i * VB_QPN_BLOCK_SIZE + qpn % VB_QPN_BLOCK_SIZE;

	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	if (node->names.used[index / 64] >> index % 64 & 1) {
		node->names.used[index / 64] &= ~(1ull << index % 64);
		numbers_add(&node->names, index);
		node->names.in_use[i]--;
		block_retire(node, (uint32_t)i);
	}
	vb_mutex_release(&node->lock);
}

void vb_names_open(struct vb_node *node)
{
	node->names.has_secret = vb_trust_same_user(geteuid()) && vb_secret_get(node->names.secret);
	node->names.secret_uid = geteuid();
}

void vb_names_close(struct vb_node *node)
{
	for (uint32_t i = 0; i < node->page->header.num_blocks; i++) {
		if (node->page->header.block[i] != VB_NO_BLOCK)
			place_close(node, i);
	}
}
