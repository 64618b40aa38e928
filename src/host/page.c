/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The published page: making this process's, judging a peer's. */
#include "host/page.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "host/shared.h"

_Static_assert(sizeof(struct vb_page_header) == 4096, "the header is one memory page");
_Static_assert(sizeof(struct vb_page_engine) == 128,
	       "an engine's words and its mark have a cache line each");
_Static_assert(sizeof(struct vb_page_qp) == 64, "a queue pair's entry is one cache line");
_Static_assert(sizeof(struct vb_key) == 64, "a key's entry is one cache line");
_Static_assert(sizeof(struct vb_page_bells) == 8192, "the bells are two memory pages");
_Static_assert(sizeof(struct vb_page) % 4096 == 0, "the page is whole memory pages");
_Static_assert(VB_PAGE_FIRST % 4096 == 0 && VB_KEYRING_FIRST % 4096 == 0, "and so are their parts");
_Static_assert(offsetof(struct vb_keyring, key) == 4096, "keys begin with a memory page");

int vb_page_create(uint64_t nonce, struct vb_page **out, int *fd)
{
	void *map;
	int err = vb_shared_create("verbatim-page", sizeof(struct vb_page), &map, fd);

	if (err)
		return err;
	struct vb_page *page = map;

	page->header.magic = VB_PAGE_MAGIC;
	page->header.version = VB_PAGE_VERSION;
	page->header.size_of_page = sizeof(struct vb_page) >> 12;
	page->header.nonce = nonce;
	page->header.pid = (uint32_t)getpid();
	page->header.uid = (uint32_t)geteuid();
	*out = page;
	return 0;
}

int vb_keyring_create(uint64_t nonce, struct vb_keyring **out, int *fd)
{
	void *map;
	int err = vb_shared_create("verbatim-keys", sizeof(struct vb_keyring), &map, fd);

	if (err)
		return err;
	struct vb_keyring *keys = map;

	keys->magic = VB_KEYRING_MAGIC;
	keys->nonce = nonce;
	*out = keys;
	return 0;
}

int vb_keyring_map(int fd, uint64_t nonce, const struct vb_keyring **out, const char **defect)
{
	void *map;
	int err = vb_shared_map_part(fd, sizeof(struct vb_keyring), VB_KEYRING_FIRST, false, &map,
				     defect);

	if (err)
		return err;
	const struct vb_keyring *keys = map;

	if (__atomic_load_n(&keys->magic, __ATOMIC_RELAXED) != VB_KEYRING_MAGIC ||
	    __atomic_load_n(&keys->nonce, __ATOMIC_RELAXED) != nonce) {
		*defect = "its keys are not its own";
		vb_shared_unmap(map, VB_KEYRING_FIRST);
		return -EBADMSG;
	}
	*out = keys;
	return 0;
}

const char *vb_page_defect(const struct vb_page *page)
{
	struct vb_page_header head;

	memcpy(&head, &page->header, offsetof(struct vb_page_header, block));
	if (head.magic != VB_PAGE_MAGIC)
		return "its page does not begin as one";
	if (head.version != VB_PAGE_VERSION || head.size_of_page != sizeof(struct vb_page) >> 12)
		return "its page has another layout";
	if (!head.nonce)
		return "its page names no process";
	return NULL;
}

int vb_page_block_index(const struct vb_page *page, uint32_t block)
{
	uint32_t n = __atomic_load_n(&page->header.num_blocks, __ATOMIC_ACQUIRE);

	if (n > VB_MAX_BLOCKS)
		n = VB_MAX_BLOCKS;
	for (uint32_t i = 0; i < n; i++) {
		if (__atomic_load_n(&page->header.block[i], __ATOMIC_RELAXED) == block)
			return (int)i;
	}
	return -1;
}
