/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the files of this room share. */
#ifndef VB_GSI_PRIVATE_H
#define VB_GSI_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/reason.h"
#include "engine/hook.h"
#include "gsi/gsi.h"
#include "gsi/mad_queue.h"
#include "host/commons.h"

#define VB_GSI_QKEY 0x80010000u /* of every queue pair 1 (IBA 3.5.3) */

struct vb_engine;
struct vb_peer;
struct vb_port_table;
struct vb_run;

/*
 * The GSI of the process. A process that only passes packets on has the engine and the table, and
 * no number.
 */
struct vb_gsi {
	pthread_mutex_t opening;              /* held to open, to join, to get sockets */
	_Atomic(struct vb_engine *) engine;   /* NULL: none was needed yet */
	_Atomic(struct vb_commons *) commons; /* the table; NULL: not joined */
	_Atomic uint32_t number;              /* 0: not open */
	_Atomic uint32_t families;            /* whose sockets it holds (VB_UDP_IPV4 ...) */
	_Atomic uint32_t lacks;               /* families that a listener wants, and others have */
	struct vb_gsi_events events;
	struct vb_engine_hook hook;
	_Atomic uint32_t psn; /* of the next MAD by UDP; nobody looks at it */

	struct vb_mad_queue arrived;  /* by UDP for queue pair 1: their process is to be found */
	struct vb_mad_queue kept;     /* wait for contact or room */
	struct vb_mad_queue received; /* for this process */
	_Atomic bool kicked;
	_Atomic uint64_t due; /* of events.serve(), 0: none, or it is being found out */
	/* The following are the progress thread's. */
	uint32_t changes;    /* of devices, as events.changed() was told */
	uint64_t epoch;      /* epoch of contact when kept MADs were tried last */
	uint64_t again_at;   /* when they are tried without news */
	uint64_t seek_at;    /* what is lacking is tried again then; 0: not planned */
	uint64_t seek_pause; /* before the next try */
	bool wants_table;    /* a packet needs the table, and this process has not joined it */
	/* Joining, to pass packets on: a thread of its own does it. */
	_Atomic bool joining;
	_Atomic bool joined;         /* since the progress thread looked last */
	_Atomic uint64_t join_after; /* not before then */
};

extern struct vb_gsi vb_gsi;

/* turn.c: something waits for the progress thread, which looks in each of its turns. Any thread. */
void vb_gsi_wake(void);

/* receive.c: a MAD for this process has come. Any thread; drops it where too many wait. */
void vb_gsi_receive(const struct vb_gsi_mad *mad);
/* A packet has come by UDP for queue pair 1. Under the lock of some engine. */
void vb_gsi_arrived(const struct vb_run *run, const uint8_t *payload);
/* struct vb_engine_hook, of this room's engine. */
bool vb_gsi_numbered(struct vb_engine_hook *hook, const struct vb_run *run, const void *payload,
		     bool wire);

/* members.c */
/*
 * Under `opening`: makes the engine, and joins the table. -ENOENT: nobody has one and `create` is
 * false; -errno as vb_commons_join(), with the reason recorded.
 */
int vb_gsi_engine(void);
int vb_gsi_join(bool create);
/* Under `opening`: takes a block of numbers that does not rest, and tells all who take part. */
int vb_gsi_number_take(uint32_t *number);
/* The process ends: so does its number. Does not wait. */
void vb_gsi_number_drop(void);
/* The table; NULL: this process has not joined. */
struct vb_port_table *vb_gsi_table(void);
/* Under the lock: whether the process that the table has on this seat has ended. */
bool vb_gsi_seat_ended(const struct vb_commons *commons, uint32_t seat);
/*
 * The process of that seat was not found. Removes what it has in the table, if it has ended. False:
 * it has not, or the table's lock is not to be had.
 */
bool vb_gsi_reap(uint32_t seat);

enum vb_mad_reach {
	VB_MAD_REACHED, /* sent, or in the queue of this process */
	VB_MAD_DROPPED,
	VB_MAD_LATER,  /* there is no contact, no room or no table yet */
	VB_MAD_ABSENT, /* no process has the number */
};

/* kept.c */
/*
 * Brings a MAD to its process, or keeps it until that can be done, or drops it. Any thread; does
 * not wait; takes the item. -ENOBUFS: too many are kept.
 */
int vb_gsi_bring(struct vb_mad_item *item);
/* Progress thread: tries kept MADs again, if there are news of contact or `again_at` has come. */
void vb_gsi_bring_kept(uint64_t now);
/* Whether one is still kept. */
bool vb_gsi_keeps(void);
/* In a forked child. */
void vb_gsi_kept_forget(void);

/* pass.c: one attempt to bring it; never ABSENT. */
enum vb_mad_reach vb_gsi_pass(struct vb_mad_item *item);
/* Notes why. */
enum vb_mad_reach vb_gsi_drop(enum vb_reason reason, const char *why);

/* ring.c: to the process that has the number, which is another one. */
enum vb_mad_reach vb_gsi_to_ring(struct vb_mad_item *item, uint32_t number);
/* Makes contact with that process. REACHED: there is contact. */
enum vb_mad_reach vb_gsi_meet(uint32_t number);
/* Whether the number is that of the peer's GSI. */
bool vb_gsi_is_number(struct vb_peer *peer, uint32_t number);

/* publish.c: the process ends, and has said its last words. */
void vb_gsi_withdraw_all(void);

/* ended.c. Progress thread: tells of processes that have ended; does what is due, and returns when again. */
void vb_gsi_ended_tell(void);
uint64_t vb_gsi_ended_serve(uint64_t now);

/* watch.c: another process may have to be watched. Any thread. */
void vb_gsi_watch_soon(void);
/* Progress thread: as above. */
uint64_t vb_gsi_watch_serve(uint64_t now);

/* wire.c: `mad` goes to another host. */
int vb_gsi_wire_send(const struct vb_gsi_mad *mad, uint32_t ifindex);
/*
 * Progress thread: makes ready to send to the address, if that can be done without waiting. -EAGAIN:
 * it cannot; -errno as vb_gsi_reach().
 */
int vb_gsi_hold_now(const uint8_t gid[16]);
/*
 * Progress thread: tries again to get sockets that a listener could not have, if it is time to.
 * Returns when that is next.
 */
uint64_t vb_gsi_reach_serve(uint64_t now);

/* CLOCK_BOOTTIME in ns: processes compare it. */
uint64_t vb_gsi_boot_ns(void);

#endif
