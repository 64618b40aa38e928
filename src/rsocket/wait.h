/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Waiting for one connected socket. */
#ifndef VB_RSOCKET_WAIT_H
#define VB_RSOCKET_WAIT_H

#include "rsocket/socket.h"

/* Takes what has come, on either kind of socket. */
bool vb_rs_progress(struct vb_rsocket *rs);
/* Before and after a sleep on vb_rs_wake_fd(); `fired`: the descriptor was readable. */
bool vb_rs_arm(struct vb_rsocket *rs);
void vb_rs_woken(struct vb_rsocket *rs, bool fired);
int vb_rs_wake_fd(struct vb_rsocket *rs);

typedef bool (*vb_rs_ready)(struct vb_rsocket *rs);

/*
 * Until `ready`: looks for as long as the configuration says, then sleeps. `deadline` in ns; 0: none.
 * 0; -EBADF: the socket was closed; -EINTR; -EAGAIN: the time is over.
 */
int vb_rs_wait(struct vb_rsocket *rs, vb_rs_ready ready, uint64_t deadline);

bool vb_rs_can_send(struct vb_rsocket *rs);
bool vb_rs_can_receive(struct vb_rsocket *rs);

#endif
