/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tag-matching shared receive queues. Their queue pairs' messages begin with a struct ibv_tmh; an eager one is put into the
 * buffer that its tag matches, a rendezvous request makes the device READ the data into that buffer and answer FIN.
 */
#ifndef VB_TAG_SRQ_H
#define VB_TAG_SRQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/env.h"

struct vb_qp;
struct vb_srq;
struct vb_tm;

/* Requests of the device's own that one queue pair may have unfinished: a READ and a FIN for each rendezvous. */
#define VB_TM_REQUESTS 16u

/* attr is checked; s->tm and s->cq are set on success. */
int vb_tm_create(struct vb_srq *s, struct ibv_context *ctx,
		 const struct ibv_srq_init_attr_ex *attr);
void vb_tm_destroy(struct vb_srq *s);

/* ibv_post_srq_ops(3); on failure *bad is the first operation that was not done. */
int vb_tm_post_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad);

/* A queue pair uses the queue: its environment; its engine feeds the CQ of the queue. */
const struct vb_env *vb_tm_env(void);
int vb_tm_attach(struct vb_qp *qp);
void vb_tm_detach(struct vb_qp *qp);
/* Under the engine's lock. Starts what is to be read. True: it has to wait for the program to finish posting. */
bool vb_tm_pump(struct vb_qp *qp);
/* Under the engine's lock: the queue pair forgets everything. */
void vb_tm_forget(struct vb_qp *qp);

#endif
