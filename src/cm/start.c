/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The whole: its begin, its timers, its end, and the end of a device. */
#include <string.h>

#include "cm/core.h"

#define MS_NS    1000000ull
#define LEAST_NS MS_NS

#define BY_LOCAL(l) \
	((struct vb_cm_conn *)(void *)((char *)(l)-offsetof(struct vb_cm_conn, by_local)))
#define BY_TIMER(t) ((struct vb_cm_conn *)(void *)((char *)(t)-offsetof(struct vb_cm_conn, timer)))

static uint64_t scaled(uint64_t ms, unsigned int scale)
{
	uint64_t ns = ms * MS_NS / 1000 * scale;

	return ns > LEAST_NS ? ns : LEAST_NS;
}

/* The times of Linux over RoCE, which follow from its codes 18 and 20; 4.096 us stands for 4 us. */
static struct vb_cm_times times(unsigned int scale)
{
	if (!scale || scale > 1000)
		scale = 1000;
	return (struct vb_cm_times){
		.fast = scaled(1000, scale),
		.request = scaled(6144, scale),
		.reply = scaled(4096, scale),
		.timewait = scaled(2048, scale),
		/* Two of a peer's tries. */
		.remember = scaled(14000, scale),
	};
}

void vb_cm_init(struct vb_cm *cm, const struct vb_cm_env *env, const struct vb_cm_setup *setup)
{
	memset(cm, 0, sizeof(*cm));
	cm->env = env;
	cm->owner = setup->owner;
	cm->times = times(setup->scale);
	cm->id_base = setup->id_base;
	cm->id_mask = setup->id_bits < 32 ? (1u << setup->id_bits) - 1 : UINT32_MAX;
	cm->id_next = env->random(cm);
	/* An odd step visits every number of a power of two. */
	cm->id_step = env->random(cm) | 1;
	cm->agent = env->random(cm);
	for (unsigned int i = 0; i < sizeof(cm->key); i += sizeof(uint32_t)) {
		uint32_t word = env->random(cm);

		memcpy(cm->key + i, &word, sizeof(word));
	}
	cm->newest = &cm->oldest;
	cm->senders.latest = &cm->senders.later;
}

static void expired(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now)
{
	switch (conn->state) {
	case VB_CM_REQ_RCVD:
		vb_cm_later_tell(cm, now);
		break;
	case VB_CM_TIMEWAIT:
		vb_cm_conn_idle(cm, conn);
		if (conn->disconnected)
			vb_cm_report_plain(cm, conn, VB_CM_EVENT_TIMEWAIT_EXIT, 0);
		vb_cm_conn_put(cm, conn);
		break;
	default:
		vb_cm_retry_expired(cm, conn, now);
		break;
	}
}

uint64_t vb_cm_expire(struct vb_cm *cm, uint64_t now)
{
	while (cm->timers.root && cm->timers.root->due <= now) {
		struct vb_cm_conn *conn = BY_TIMER(cm->timers.root);

		vb_cm_heap_remove(&cm->timers, &conn->timer);
		expired(cm, conn, now);
	}
	return vb_cm_deadline(cm);
}

void vb_cm_last_words(struct vb_cm *cm)
{
	for (unsigned int i = 0; i < VB_CM_BUCKETS; i++) {
		for (struct vb_cm_link *link = cm->by_local[i]; link; link = link->next)
			vb_cm_send_last_word(cm, BY_LOCAL(link));
	}
}

/* The last word of each connection is sent once, and then it is freed. */
void vb_cm_end(struct vb_cm *cm, uint64_t now)
{
	for (unsigned int i = 0; i < VB_CM_BUCKETS; i++) {
		while (cm->by_local[i]) {
			struct vb_cm_link *first = cm->by_local[i];

			if (!BY_LOCAL(first)->released)
				vb_cm_release(cm, BY_LOCAL(first), now);
			if (cm->by_local[i] != first)
				continue; /* it was freed */
			vb_cm_conn_idle(cm, BY_LOCAL(first));
			vb_cm_conn_put(cm, BY_LOCAL(first));
		}
	}
	for (unsigned int i = 0; i < VB_CM_LISTENER_BUCKETS; i++) {
		while (cm->listeners[i])
			vb_cm_link_remove(cm->listeners[i]);
	}
}

void vb_cm_device_lost(struct vb_cm *cm, uint32_t ifindex)
{
	for (unsigned int i = 0; i < VB_CM_BUCKETS; i++) {
		struct vb_cm_link *link = cm->by_local[i];

		while (link) {
			struct vb_cm_conn *conn = BY_LOCAL(link);

			link = link->next;
			if (conn->path.ifindex == ifindex) {
				vb_cm_conn_idle(cm, conn);
				vb_cm_conn_put(cm, conn);
			}
		}
	}
}
