/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Doubly linked lists whose links lie in the entries, which are of any type: `next` and `prev` are
 * the names of its links in this list. An entry is in a list at most once; that it is, its owner
 * knows. The list is a pointer to its first entry, NULL when it is empty, and one to its last where
 * entries are added there. No entry's links are read while it is in no list.
 */
#ifndef VB_BASE_LIST_H
#define VB_BASE_LIST_H

#include <stddef.h>

/* In front of the others. */
#define VB_LIST_PUSH(first, entry, next, prev)   \
	do {                                     \
		(entry)->prev = NULL;            \
		(entry)->next = (first);         \
		if (first)                       \
			(first)->prev = (entry); \
		(first) = (entry);               \
	} while (0)

/* Behind the others. */
#define VB_LIST_APPEND(first, last, entry, next, prev) \
	do {                                           \
		(entry)->next = NULL;                  \
		(entry)->prev = (last);                \
		if (last)                              \
			(last)->next = (entry);        \
		else                                   \
			(first) = (entry);             \
		(last) = (entry);                      \
	} while (0)

/* Of a list without a last one. */
#define VB_LIST_REMOVE(first, entry, next, prev)             \
	do {                                                 \
		if ((entry)->prev)                           \
			(entry)->prev->next = (entry)->next; \
		else                                         \
			(first) = (entry)->next;             \
		if ((entry)->next)                           \
			(entry)->next->prev = (entry)->prev; \
	} while (0)

/* Of a list with a last one. */
#define VB_LIST_REMOVE_FROM(first, last, entry, next, prev) \
	do {                                                \
		if (!(entry)->next)                         \
			(last) = (entry)->prev;             \
		VB_LIST_REMOVE(first, entry, next, prev);   \
	} while (0)

#endif
