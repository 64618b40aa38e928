/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The published page: making ours, judging a peer's. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "host/private.h"
#include "host/shared.h"

_Static_assert(sizeof(struct vb_page_header) == 4096, "the header is one memory page");
_Static_assert(sizeof(struct vb_page_engine) == 128,
	       "an engine's words and its mark have a cache line each");
_Static_assert(sizeof(struct vb_page_qp) == 64, "a queue pair's entry is one cache line");
_Static_assert(sizeof(struct vb_key) == 64, "a key's entry is one cache line");
_Static_assert(sizeof(struct vb_page) % 4096 == 0, "the page is whole memory pages");

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
	return vb_alive_init(page);
}

const char *vb_page_defect(const struct vb_page *page)
{
	struct vb_page_header head;

	memcpy(&head, &page->header, offsetof(struct vb_page_header, block));
	if (head.magic != VB_PAGE_MAGIC)
		return "its page does not begin as one";
	if (head.version != VB_PAGE_VERSION || head.size_of_page != sizeof(struct vb_page) >> 12)
		return "its page has another layout";
	if (head.uid != geteuid())
		return "its page names another user";
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
