/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Datagram sockets: a UDP socket, and an UD queue pair for each own address. */
#ifndef VB_RSOCKET_DATAGRAM_H
#define VB_RSOCKET_DATAGRAM_H

#include "rsocket/socket.h"

int vb_datagram_open(struct vb_rsocket *rs);
void vb_datagram_close(struct vb_rsocket *rs);

int vb_datagram_bind(struct vb_rsocket *rs, const struct sockaddr *addr, socklen_t length);
int vb_datagram_connect(struct vb_rsocket *rs, const struct sockaddr *addr, socklen_t length);

/* What can be done at once; -EAGAIN. `addr` NULL: the connected address. */
ssize_t vb_datagram_send(struct vb_rsocket *rs, const struct iovec *iov, int count,
			 const struct sockaddr *addr, socklen_t length);
ssize_t vb_datagram_receive(struct vb_rsocket *rs, const struct iovec *iov, int count, bool peek,
			    struct sockaddr *addr, socklen_t *length);

bool vb_datagram_can_send(struct vb_rsocket *rs);
bool vb_datagram_can_receive(struct vb_rsocket *rs);
bool vb_datagram_progress(struct vb_rsocket *rs);

/* As vb_stream_arm() and vb_stream_woken(). */
bool vb_datagram_arm(struct vb_rsocket *rs);
bool vb_datagram_woken(struct vb_rsocket *rs);
/* The descriptor that is readable when something has come; -1: none yet. */
int vb_datagram_wake_fd(struct vb_rsocket *rs);

/* In the service thread: reads the UDP socket. */
void vb_datagram_serve(struct vb_rsocket *rs);

#endif
