/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The functions that programs call through ibv_context.ops without passing the face: posting,
 * polling, arming. They follow the public convention at once: post_* return a positive errno and
 * set *bad_wr; poll_cq returns a count or a negative value.
 */
#ifndef VB_ENGINE_FASTPATH_H
#define VB_ENGINE_FASTPATH_H

#include <infiniband/verbs.h>

int vb_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int vb_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int vb_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int vb_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int vb_req_notify_cq(struct ibv_cq *cq, int solicited_only);

#endif
