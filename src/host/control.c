/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Control messages on a socket, with descriptors (unix(7), SCM_RIGHTS). */
#include "host/control.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "base/sys.h"
#include "host/descriptor.h"

_Static_assert(sizeof(struct vb_control) == 128, "a control message has one size");

const struct vb_control vb_control_short = {
	.magic = VB_CONTROL_MAGIC,
	.version = VB_CONTROL_VERSION,
	.type = VB_CONTROL_SHORT,
};

union rights {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int) * VB_CONTROL_FDS) + CMSG_SPACE(sizeof(struct ucred))];
};

void vb_control_name_senders(int sock)
{
	int on = 1;

	setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
}

int vb_control_send(int sock, const struct vb_control *msg, const int *fds, int num_fds)
{
	struct iovec iov = {(void *)(uintptr_t)msg, sizeof(*msg)};
	union rights rights;
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (num_fds) {
		memset(&rights, 0, sizeof(rights));
		m.msg_control = &rights;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)num_fds);
		rights.head.cmsg_level = SOL_SOCKET;
		rights.head.cmsg_type = SCM_RIGHTS;
		rights.head.cmsg_len = CMSG_LEN(sizeof(int) * (size_t)num_fds);
		memcpy(CMSG_DATA(&rights.head), fds, sizeof(int) * (size_t)num_fds);
	}
	if (vb_sys_sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	return errno == ETOOMANYREFS || errno == EINTR || errno == ENOBUFS ? -EAGAIN : -errno;
}

int vb_control_ring(int sock)
{
	ssize_t n =
		vb_sys_send(sock, &vb_control_short, VB_CONTROL_RINGS, MSG_DONTWAIT | MSG_NOSIGNAL);

	return n < 0 ? -errno : 0;
}

/*
 * Adopts the descriptors that arrived. The kernel has closed those that did not fit (MSG_CTRUNC).
 */
static void rights_take(struct msghdr *m, struct ucred *from, int *fds, int *num_fds)
{
	*num_fds = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS && from)
			memcpy(from, CMSG_DATA(c), sizeof(*from));
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		for (size_t i = 0; i < n && *num_fds < VB_CONTROL_FDS; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			fds[(*num_fds)++] = vb_descriptor_adopt(fd);
		}
	}
}

int vb_control_receive(int sock, struct vb_control *msg, struct ucred *from, int *fds, int *num_fds)
{
	struct iovec iov = {msg, sizeof(*msg)};
	union rights rights;
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &rights,
		.msg_controllen = sizeof(rights.room),
	};
	int reset = 0;
	ssize_t n;

	memset(msg, 0, sizeof(*msg));
	if (from)
		*from = (struct ucred){.pid = -1, .uid = (uid_t)-1, .gid = (gid_t)-1};
	*num_fds = 0;
	/*
	 * The peer closed its end before it had read what was sent: the error is reported once, and
	 * the messages that the peer sent before come after it.
	 */
	do {
		n = vb_sys_recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && (errno == EINTR || (errno == ECONNRESET && !reset++)));
	if (n < 0)
		return -errno;
	rights_take(&m, from, fds, num_fds);
	if (n == 0 && *num_fds == 0)
		return 0;
	bool lost = m.msg_flags & MSG_CTRUNC;
	bool ours = n >= 8 && msg->magic == VB_CONTROL_MAGIC && msg->version == VB_CONTROL_VERSION;

	if (ours && n == VB_CONTROL_RINGS && !*num_fds && !lost) {
		msg->type = VB_CONTROL_RING;
		return 1;
	}
	bool whole = ours && n == sizeof(*msg) && !(m.msg_flags & MSG_TRUNC);

	msg->text[sizeof(msg->text) - 1] = '\0';
	if (whole && !lost)
		return 1;
	while (*num_fds)
		vb_descriptor_close(fds[--*num_fds]);
	/* Descriptors are lost when this process has no number left for them. */
	return whole && lost ? -EMFILE : -EPROTO;
}
