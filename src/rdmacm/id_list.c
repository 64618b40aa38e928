/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* All ids of the process. */
#include "rdmacm/id_list.h"

#include <pthread.h>

#include "base/lock.h"
#include "rdmacm/id.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_cma_id *first;

void vb_cma_id_list_add(struct vb_cma_id *id)
{
	vb_mutex_take(&list_lock, VB_ORDER_CM_IDS);
	id->list_next = first;
	id->list_place = &first;
	if (first)
		first->list_place = &id->list_next;
	first = id;
	vb_mutex_release(&list_lock);
}

void vb_cma_id_list_remove(struct vb_cma_id *id)
{
	vb_mutex_take(&list_lock, VB_ORDER_CM_IDS);
	if (id->list_place) {
		*id->list_place = id->list_next;
		if (id->list_next)
			id->list_next->list_place = id->list_place;
		id->list_place = NULL;
	}
	vb_mutex_release(&list_lock);
}

void vb_cma_id_list_each(void (*visit)(struct vb_cma_id *id, void *arg), void *arg)
{
	vb_mutex_take(&list_lock, VB_ORDER_CM_IDS);
	for (struct vb_cma_id *id = first; id; id = id->list_next)
		visit(id, arg);
	vb_mutex_release(&list_lock);
}

void vb_cma_id_list_forget(void)
{
	pthread_mutex_init(&list_lock, NULL);
	first = NULL;
}
