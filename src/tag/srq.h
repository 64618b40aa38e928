/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tag-matching shared receive queues. Messages to their queue pairs begin with a struct ibv_tmh. An
 * eager message is put into the buffer that its tag matches. A rendezvous request makes the device
 * READ the data into that buffer and answer FIN.
 */
#ifndef VB_TAG_SRQ_H
#define VB_TAG_SRQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/srq.h"

extern const struct vb_srq_kind vb_tm_srq;

/* ibv_post_srq_ops(3); on failure *bad is the first operation that was not done. */
int vb_tm_post_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad);

#endif
