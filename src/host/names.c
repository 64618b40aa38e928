/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pair numbers. A block of them is claimed by listening on the abstract socket "\0verbatim/<uid>/<block>" (unix(7)):
 * unique in the network namespace, as the UDP port is, and gone with its owner. A number is reused as late as possible (IBA 9.2.4: stale packets).
 */
#include "host/names.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/random.h"
#include "base/reason.h"
#include "base/sys.h"
#include "host/descriptor.h"
#include "host/private.h"

#define NUM_BLOCKS  (1u << (24 - VB_QPN_BLOCK_BITS))
#define CLAIM_TRIES 64
/* So many numbers rest, if another block can be had. */
#define REST        64u

socklen_t vb_name_address(struct sockaddr_un *addr, unsigned int uid, uint32_t block)
{
	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	int n = snprintf(addr->sun_path + 1, sizeof(addr->sun_path) - 1, "verbatim/%u/%u", uid,
			 block);

	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Block 0 holds the management queue pairs, the last one the multicast number. */
static uint32_t random_block(void)
{
	return 1 + vb_random32() % (NUM_BLOCKS - 2);
}

/* A socket bound to the name of a block that was free. -errno. */
static int bind_random(uint32_t *block)
{
	struct sockaddr_un addr;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	for (int i = 0; i < CLAIM_TRIES; i++) {
		*block = random_block();
		socklen_t len = vb_name_address(&addr, geteuid(), *block);

		if (bind(fd, (struct sockaddr *)&addr, len) == 0)
			return vb_descriptor_adopt(fd);
		if (errno != EADDRINUSE)
			break;
	}
	int err = -errno;

	vb_sys_close(fd);
	return err;
}

static void numbers_add(struct vb_names *names, uint32_t index)
{
	names->free[(names->first + names->num_free++) % VB_MAX_QPS] = index;
}

/* A socket bound to the name of this very block. -errno. */
static int bind_block(uint32_t block)
{
	struct sockaddr_un addr;
	socklen_t len = vb_name_address(&addr, geteuid(), block);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&addr, len) == 0)
		return vb_descriptor_adopt(fd);
	int err = -errno;

	vb_sys_close(fd);
	return err;
}

/* Where the next block goes: also into the place of one that was closed (vb_node_block_close()), none of whose numbers is in use. */
static uint32_t place_for_block(const struct vb_node *node)
{
	uint32_t i = 0;

	while (i < node->names.num_blocks && node->page->header.block[i] != VB_NO_BLOCK)
		i++;
	return i;
}

/* Listens on the name of the block, any if it is 0. The index of its entries, or -errno. */
static int block_listen(struct vb_node *node, uint32_t *name)
{
	struct vb_names *names = &node->names;
	uint32_t block = *name, i = place_for_block(node);

	if (i == VB_MAX_BLOCKS)
		return -ENOMEM;
	int fd = block ? bind_block(block) : bind_random(&block);

	if (fd < 0)
		return fd;
	/* Published before anybody can connect, so that who comes by this name finds it in the page. */
	__atomic_store_n(&node->page->header.block[i], block, __ATOMIC_RELEASE);
	if (i == names->num_blocks)
		__atomic_store_n(&node->page->header.num_blocks, i + 1, __ATOMIC_RELEASE);
	names->listener[i].fd = fd;
	names->listener[i].ready = vb_contact_accept;
	int err = listen(fd, SOMAXCONN)
			  ? -errno
			  : vb_node_source_add(node, &names->listener[i], EPOLLIN | EPOLLET);

	if (err) {
		__atomic_store_n(&node->page->header.block[i], VB_NO_BLOCK, __ATOMIC_RELEASE);
		names->listener[i].fd = -1;
		vb_descriptor_close(fd);
		return err;
	}
	if (i == names->num_blocks)
		names->num_blocks = i + 1;
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

	for (uint32_t n = 0; n < VB_QPN_BLOCK_SIZE; n++)
		numbers_add(names, i * VB_QPN_BLOCK_SIZE + (start + n) % VB_QPN_BLOCK_SIZE);
	vb_log(VB_LOG_INFO, "claimed queue pair numbers 0x%x to 0x%x", block << VB_QPN_BLOCK_BITS,
	       (block << VB_QPN_BLOCK_BITS) + VB_QPN_BLOCK_SIZE - 1);
	return 0;
}

int vb_node_block_open(struct vb_node *node, uint32_t *block)
{
	pthread_mutex_lock(&node->lock);
	int i = block_listen(node, block);

	pthread_mutex_unlock(&node->lock);
	return i < 0 ? i : 0;
}

void vb_node_block_close(struct vb_node *node, uint32_t block)
{
	int i = vb_page_block_index(node->page, block);

	if (i < 0)
		return;
	pthread_mutex_lock(&node->lock);
	/* Peers look for its owner anew from now on. */
	__atomic_store_n(&node->page->header.block[i], VB_NO_BLOCK, __ATOMIC_SEQ_CST);
	vb_node_source_remove(node, &node->names.listener[i]);
	pthread_mutex_unlock(&node->lock);
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

	pthread_mutex_lock(&node->lock);
	if (names->num_free < REST)
		err = block_claim(node);
	if (!names->num_free) {
		pthread_mutex_unlock(&node->lock);
		return vb_refuse(-err, err == -ENOMEM ? VB_REASON_NO_MEMORY : VB_REASON_SYSTEM,
				 "no queue pair number: %s",
				 err == -ENOMEM ? "all are in use" : strerror(-err));
	}
	uint32_t index = names->free[names->first];

	names->first = (names->first + 1) % VB_MAX_QPS;
	names->num_free--;
	names->used[index / 64] |= 1ull << index % 64;
	pthread_mutex_unlock(&node->lock);
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

	pthread_mutex_lock(&node->lock);
	if (node->names.used[index / 64] >> index % 64 & 1) {
		node->names.used[index / 64] &= ~(1ull << index % 64);
		numbers_add(&node->names, index);
	}
	pthread_mutex_unlock(&node->lock);
}

void vb_names_close(struct vb_node *node)
{
	for (uint32_t i = 0; i < node->names.num_blocks; i++)
		vb_node_source_remove(node, &node->names.listener[i]);
}
