/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A link of a hash chain; the chain's head is a pointer to the first link. */
#ifndef VB_CM_CHAIN_H
#define VB_CM_CHAIN_H

#include <stdbool.h>
#include <stddef.h>

/* All zero: in no chain. */
struct vb_cm_link {
	struct vb_cm_link *next;
	struct vb_cm_link **place; /* what points to this one */
};

static inline void vb_cm_link_add(struct vb_cm_link **head, struct vb_cm_link *link)
{
	link->next = *head;
	link->place = head;
	if (*head)
		(*head)->place = &link->next;
	*head = link;
}

static inline void vb_cm_link_remove(struct vb_cm_link *link)
{
	if (!link->place)
		return;
	*link->place = link->next;
	if (link->next)
		link->next->place = link->place;
	*link = (struct vb_cm_link){NULL, NULL};
}

static inline bool vb_cm_linked(const struct vb_cm_link *link)
{
	return link->place != NULL;
}

#endif
