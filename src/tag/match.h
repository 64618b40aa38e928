/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The matching list of a tag-matching shared receive queue (ibv_post_srq_ops(3)): tagged buffers in
 * the order in which they were added, and the count of unexpected messages by which program and
 * device agree. Pure; the owner's lock is held around every call.
 *
 * A message that finds no buffer is unexpected: the program will look through its own list for it.
 * A buffer that the program adds before it has seen that message must not take a later one with the
 * same tag. So buffers that are added while the two counts differ rest until the program reports
 * the count that the device has.
 */
#ifndef VB_TAG_MATCH_H
#define VB_TAG_MATCH_H

#include <infiniband/tm_types.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/limits.h"
#include "transport/wqe.h"

#define VB_TM_HEADER 16u /* struct ibv_tmh */

struct vb_qp;

enum vb_tag_state {
	VB_TAG_FREE,
	VB_TAG_LISTED,
	VB_TAG_TAKEN, /* by a message */
};

struct vb_tag_entry {
	uint64_t tag, mask;
	uint64_t matched; /* the message's tag */
	uint64_t order;   /* of adding */
	uint32_t app_ctx; /* of the message, as on the wire */
	uint16_t generation;
	uint8_t state;  /* enum vb_tag_state */
	bool active;    /* it takes messages */
	bool rndv;      /* the message is a rendezvous request, received below */
	uint64_t space; /* bytes of the buffer */
	uint8_t request[VB_TM_RNDV_MAX];
	struct vb_qp *qp;                 /* the queue pair whose message it took */
	struct vb_tag_entry *next, *prev; /* the list, in the order of adding */
	struct vb_tag_entry *rndv_next;   /* in the queue pair's list of rendezvous to be read */
	/* The receive that the protocol sees; its elements follow. */
	_Alignas(8) struct vb_recv_wqe wqe;
};

struct vb_tag_list {
	char *mem;
	uint32_t stride, size, max_sge;
	struct vb_tag_entry *first, *last;
	struct vb_tag_entry *free;
	uint64_t order;
	uint32_t unexpected; /* messages without a buffer, as counted by the device */
	uint32_t reported;   /* the same as reported by the program */
};

/* -ENOMEM. */
int vb_tag_list_init(struct vb_tag_list *list, uint32_t max_tags, uint32_t max_sge);
void vb_tag_list_fini(struct vb_tag_list *list);

static inline bool vb_tag_list_agrees(const struct vb_tag_list *list)
{
	return list->unexpected == list->reported;
}

/*
 * The program reports how many unexpected messages it has handled. Buffers that rested become
 * active when the counts agree.
 */
void vb_tag_list_report(struct vb_tag_list *list, uint32_t count);

/*
 * Adds the buffer that wr->tm.add describes. NULL: the list is full. *handle names the entry until
 * it is taken or removed.
 */
struct vb_tag_entry *vb_tag_list_add(struct vb_tag_list *list, const struct ibv_ops_wr *wr,
				     uint32_t *handle);
/* False: no such entry, or a message has taken it. */
bool vb_tag_list_remove(struct vb_tag_list *list, uint32_t handle);
/* Whether this can ever have been a handle of the list. */
bool vb_tag_list_knows(const struct vb_tag_list *list, uint32_t handle);

/*
 * The oldest active buffer for the tag, which the message then has. NULL: the message is unexpected
 * (the caller counts it).
 */
struct vb_tag_entry *vb_tag_list_match(struct vb_tag_list *list, uint64_t tag);
/* The message was given up: puts the entry back into its old place. */
void vb_tag_list_untake(struct vb_tag_list *list, struct vb_tag_entry *entry);
/* The message is in the buffer: frees the entry. */
void vb_tag_list_release(struct vb_tag_list *list, struct vb_tag_entry *entry);

/* The entry that the protocol's receive belongs to. NULL: an ordinary receive. */
static inline struct vb_tag_entry *vb_tag_entry_of(const struct vb_tag_list *list,
						   const struct vb_recv_wqe *wqe)
{
	const char *at = (const char *)wqe;

	if (at < list->mem || at >= list->mem + (size_t)list->size * list->stride)
		return NULL;
	return (struct vb_tag_entry *)(void *)((char *)(uintptr_t)at -
					       offsetof(struct vb_tag_entry, wqe));
}

static inline struct vb_tag_entry *vb_tag_entry_at(const struct vb_tag_list *list, uint32_t index)
{
	return (struct vb_tag_entry *)(void *)(list->mem + (size_t)index * list->stride);
}

#endif
