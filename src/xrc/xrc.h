/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * XRC domains (IBA annex A14): shared receive queues that have a number and a CQ of their own, and
 * receive queue pairs that have neither CQ nor protection domain. Each request names the queue that
 * gives receives, keys and completions.
 *
 * ibv_open_xrcd(3) returns a struct vb_xrcd. All of one inode lead to one struct vb_xrc_domain of
 * the process. A receive queue pair is one "body", which runs the protocol in the domain's engine,
 * and one "handle" for each ibv_create_qp_ex(3) and ibv_open_qp(3), which the program holds. The
 * CQs of the domain's queues drive the domain's engine.
 */
#ifndef VB_XRC_XRC_H
#define VB_XRC_XRC_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/reason.h"
#include "engine/hook.h"
#include "xrc/file.h"
#include "xrc/seats.h"
#include "verbs/ops.h"

struct vb_commons;
struct vb_cq;
struct vb_device;
struct vb_engine;
struct vb_qp;
struct vb_srq;
struct vb_tqp;
struct vb_xrc_domain;
struct vb_xrc_table;

/*
 * Bits of a number that name the place. The others distinguish queues that used the place one after
 * another.
 */
#define VB_XRC_SRQ_BITS 16u
#define VB_XRC_SRQS     (1u << VB_XRC_SRQ_BITS)
#define VB_XRC_BLOCKS   64u /* its own, and those of members that had it before */

struct vb_xrcd {
	struct ibv_xrcd xrcd;
	uint32_t handle;
	uint32_t users; /* SRQs and queue pairs made with it; under vb_xrc_lock */
	struct vb_xrc_domain *domain;
	struct vb_xrcd *next; /* of the domain */
};

struct vb_xrc_domain {
	const struct vb_device *device;
	bool named; /* it has a file */
	bool busy;  /* one call is joining it, others wait; under vb_xrc_lock */
	struct vb_xrc_file file;
	struct ibv_context *context; /* of one of the xrcds: bodies see the device through it */
	struct vb_engine *engine;    /* made with the first queue or queue pair */
	struct vb_engine_hook hook;
	struct vb_xrcd *xrcds; /* under vb_xrc_lock */
	struct vb_xrc_domain *next;
	/* Under the engine's lock. */
	struct vb_qp *bodies;
	struct vb_srq **srq; /* index: the low bits of the number */
	uint32_t num_srqs;
	uint32_t next_srq; /* under vb_xrc_lock */
	/* With a file: what is shared with other processes (xrc/table.h). */
	struct vb_commons *commons;
	struct vb_xrc_table *table;
	uint32_t seat; /* this process's */
	uint32_t contact_qpn;
	uint32_t num_blocks;
	uint32_t block[VB_XRC_BLOCKS]; /* of queue pair numbers */
	struct vb_xrc_seats news;      /* members that are to look at the table */
	struct vb_xrc_seats met;       /* members that this process has been in contact with */
	bool drops; /* bodies wait for the table's lock to give their places back */
};

static inline struct vb_xrcd *vb_xrcd_of(struct ibv_xrcd *xrcd)
{
	return (struct vb_xrcd *)(void *)xrcd;
}

/* Guards domains, their users, and the handles of each body. Taken before any engine's lock. */
extern pthread_mutex_t vb_xrc_lock;

/* xrcd.c */
int vb_xrcd_open(struct ibv_context *ctx, const struct ibv_xrcd_init_attr *attr,
		 struct ibv_xrcd **xrcd);
int vb_xrcd_close(struct ibv_xrcd *xrcd);
/* Counts one more user and makes the engine. -ENOENT. */
int vb_xrcd_get(struct ibv_context *ctx, struct ibv_xrcd *xrcd);
void vb_xrcd_put(struct vb_xrcd *xrcd);
/*
 * A process has ended or closed something: finds out whether it was a member of a domain. Without
 * any lock.
 */
void vb_xrc_survey(void);
/* Something could not be done now: to be tried again soon. Any thread. */
void vb_xrc_look_again(void);

/* xrc/srq.c */
extern const struct vb_srq_kind vb_xrc_srq;
int vb_srq_number(struct ibv_srq *srq, uint32_t *number);

/* xrc/qp.c */
extern const struct vb_qp_kind vb_xrc_handle;
int vb_xrc_qp_open(struct ibv_context *ctx, const struct ibv_qp_open_attr *attr,
		   struct ibv_qp **qp);
/* The context of the bodies is about to be closed: from now on it is this one. */
void vb_xrc_bodies_rebase(struct vb_xrc_domain *domain, struct ibv_context *ctx);

struct vb_object_type;
extern const struct vb_object_type vb_xrcd_type;

#endif
