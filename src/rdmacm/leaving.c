/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The end of the process: whoever is connected hears of it at once, and not by retries that run out. */
#include <pthread.h>

#include "base/clock.h"
#include "base/lock.h"
#include "rdmacm/fork.h"
#include "rdmacm/id.h"
#include "rdmacm/id_list.h"
#include "rdmacm/manager.h"

static pthread_mutex_t ids_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_cma_id *ids;

void vb_cma_id_list_forget(void)
{
	pthread_mutex_init(&ids_lock, NULL);
	ids = NULL;
}

void vb_cma_id_list_add(struct vb_cma_id *id)
{
	vb_mutex_take(&ids_lock, VB_ORDER_CM_IDS);
	id->next_id = ids;
	id->id_place = &ids;
	if (ids)
		ids->id_place = &id->next_id;
	ids = id;
	vb_mutex_release(&ids_lock);
}

void vb_cma_id_list_remove(struct vb_cma_id *id)
{
	if (id->generation != vb_cma_generation())
		return;
	vb_mutex_take(&ids_lock, VB_ORDER_CM_IDS);
	*id->id_place = id->next_id;
	if (id->next_id)
		id->next_id->id_place = id->id_place;
	vb_mutex_release(&ids_lock);
}

/* The connection stays what it is here: other threads of the program may still use their ids. */
static void part(struct vb_cm *cm, struct vb_cma_id *id, uint64_t now)
{
	const struct vb_cm_sidr_reply refusal = {.status = VB_CM_SIDR_REJECTED};

	if (!id->requested)
		(void)vb_cm_disconnect(cm, id->conn, now);
	else if (vb_cma_id_is_datagram(id))
		(void)vb_cm_sidr_reply(cm, id->conn, &refusal, now);
	else
		(void)vb_cm_reject(cm, id->conn, VB_CM_REJ_CONSUMER, NULL, 0, now);
}

__attribute__((destructor)) static void leave(void)
{
	struct vb_cm *cm;

	if (!vb_cma_manager_is_open())
		return;
	cm = vb_cma_manager_take();
	vb_mutex_take(&ids_lock, VB_ORDER_CM_IDS);
	for (struct vb_cma_id *id = ids; id; id = id->next_id) {
		if (id->conn)
			part(cm, id, vb_clock_ns());
	}
	vb_mutex_release(&ids_lock);
	vb_cma_manager_release();
}
