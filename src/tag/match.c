/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The matching list: adding, removing, matching, and the counts of unexpected messages. */
#include "tag/match.h"

#include <errno.h>
#include <stdlib.h>

#define INDEX_BITS 16u /* of a handle; the rest is the entry's generation */

static uint32_t index_of(const struct vb_tag_list *list, const struct vb_tag_entry *e)
{
	return (uint32_t)((size_t)((const char *)e - list->mem) / list->stride);
}

int vb_tag_list_init(struct vb_tag_list *list, uint32_t max_tags, uint32_t max_sge)
{
	*list = (struct vb_tag_list){.size = max_tags, .max_sge = max_sge};
	list->stride = (uint32_t)(sizeof(struct vb_tag_entry) +
				  (max_sge ? max_sge : 1) * sizeof(struct ibv_sge));
	list->mem = calloc(max_tags, list->stride);
	if (!list->mem)
		return -ENOMEM;
	for (uint32_t i = max_tags; i-- > 0;) {
		struct vb_tag_entry *e = vb_tag_entry_at(list, i);

		e->next = list->free;
		list->free = e;
	}
	return 0;
}

void vb_tag_list_fini(struct vb_tag_list *list)
{
	free(list->mem);
	list->mem = NULL;
	list->size = 0;
}

static void link_before(struct vb_tag_list *list, struct vb_tag_entry *e,
			struct vb_tag_entry *before)
{
	struct vb_tag_entry *prev = before ? before->prev : list->last;

	e->prev = prev;
	e->next = before;
	if (prev)
		prev->next = e;
	else
		list->first = e;
	if (before)
		before->prev = e;
	else
		list->last = e;
	e->state = VB_TAG_LISTED;
}

static void unlink_entry(struct vb_tag_list *list, struct vb_tag_entry *e)
{
	if (e->prev)
		e->prev->next = e->next;
	else
		list->first = e->next;
	if (e->next)
		e->next->prev = e->prev;
	else
		list->last = e->prev;
	e->next = e->prev = NULL;
}

void vb_tag_list_report(struct vb_tag_list *list, uint32_t count)
{
	list->reported = count;
	if (!vb_tag_list_agrees(list))
		return;
	for (struct vb_tag_entry *e = list->last; e && !e->active; e = e->prev)
		e->active = true;
}

struct vb_tag_entry *vb_tag_list_add(struct vb_tag_list *list, const struct ibv_ops_wr *wr,
				     uint32_t *handle)
{
	struct vb_tag_entry *e = list->free;
	struct ibv_recv_wr recv = {
		.wr_id = wr->tm.add.recv_wr_id,
		.sg_list = wr->tm.add.sg_list,
		.num_sge = wr->tm.add.num_sge,
	};

	if (!e)
		return NULL;
	list->free = e->next;
	e->tag = wr->tm.add.tag;
	e->mask = wr->tm.add.mask;
	e->order = list->order++;
	e->active = vb_tag_list_agrees(list);
	e->qp = NULL;
	vb_recv_wqe_fill(&e->wqe, &recv);
	e->space = e->wqe.length;
	link_before(list, e, NULL);
	*handle = (uint32_t)e->generation << INDEX_BITS | index_of(list, e);
	return e;
}

bool vb_tag_list_knows(const struct vb_tag_list *list, uint32_t handle)
{
	return (handle & ((1u << INDEX_BITS) - 1)) < list->size;
}

bool vb_tag_list_remove(struct vb_tag_list *list, uint32_t handle)
{
	struct vb_tag_entry *e;

	if (!vb_tag_list_knows(list, handle))
		return false;
	e = vb_tag_entry_at(list, handle & ((1u << INDEX_BITS) - 1));
	if (e->state != VB_TAG_LISTED || e->generation != handle >> INDEX_BITS)
		return false;
	unlink_entry(list, e);
	vb_tag_list_release(list, e);
	return true;
}

struct vb_tag_entry *vb_tag_list_match(struct vb_tag_list *list, uint64_t tag)
{
	for (struct vb_tag_entry *e = list->first; e; e = e->next) {
		if (!e->active || (tag & e->mask) != e->tag)
			continue;
		unlink_entry(list, e);
		e->state = VB_TAG_TAKEN;
		e->matched = tag;
		return e;
	}
	return NULL;
}

void vb_tag_list_untake(struct vb_tag_list *list, struct vb_tag_entry *entry)
{
	struct vb_tag_entry *before = list->first;

	while (before && before->order < entry->order)
		before = before->next;
	link_before(list, entry, before);
	entry->qp = NULL;
	entry->wqe.length = entry->space;
}

void vb_tag_list_release(struct vb_tag_list *list, struct vb_tag_entry *entry)
{
	entry->state = VB_TAG_FREE;
	entry->generation++;
	entry->qp = NULL;
	entry->next = list->free;
	list->free = entry;
}
