/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A second process, whose objects the calls of room_calls.c import or open. */
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "room.h"

struct message {
	uint32_t number;
	bool has_fd;
};

static void tell(int sock, uint32_t number, int fd)
{
	struct message m = {number, fd > 0};
	struct iovec iov = {&m, sizeof(m)};
	_Alignas(struct cmsghdr) char rights[CMSG_SPACE(sizeof(fd))] = {0};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd > 0) {
		struct cmsghdr *c = (struct cmsghdr *)(void *)rights;

		msg.msg_control = rights;
		msg.msg_controllen = sizeof(rights);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	CHECK(sendmsg(sock, &msg, MSG_NOSIGNAL) == sizeof(m));
}

/* Its number; *fd: the descriptor that came along, or 0. */
static uint32_t hear(int sock, int *fd)
{
	struct message m = {0};
	struct iovec iov = {&m, sizeof(m)};
	_Alignas(struct cmsghdr) char rights[CMSG_SPACE(sizeof(*fd))] = {0};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = rights,
			     .msg_controllen = sizeof(rights)};

	*fd = 0;
	if (recvmsg(sock, &msg, 0) != sizeof(m))
		return 0;
	if (m.has_fd)
		memcpy(fd, CMSG_DATA((struct cmsghdr *)(void *)rights), sizeof(*fd));
	return m.number;
}

enum { NO_FILE = 0, NO_FILE_BUT_MEMORY = -1 };

/*
 * In another process: a domain, device memory, or a receive queue pair of the file's XRC domain.
 * Until the socket is closed.
 */
static void peer_live(int sock, int file)
{
	struct ibv_alloc_dm_attr memory = {.length = ROOM_BYTES};
	struct room r = {0};
	char byte;

	if (!room_with_cq(&r))
		_exit(1);
	if (file == NO_FILE_BUT_MEMORY) {
		r.dm = ibv_alloc_dm(r.ctx, &memory);
		r.qp = room_qp_make(&r, IBV_QPT_RC); /* it is reached by that */
		tell(sock, r.dm && r.qp ? r.dm->handle : 0, r.ctx->cmd_fd);
	} else if (file) {
		r.fd = file;
		r.xrcd = room_xrcd_open(&r, file);
		r.qp = r.xrcd ? room_qp_make(&r, IBV_QPT_XRC_RECV) : NULL;
		tell(sock, r.qp ? r.qp->qp_num : 0, 0);
	} else {
		tell(sock, r.pd->handle, r.ctx->cmd_fd);
	}
	(void)!read(sock, &byte, 1);
	_exit(0);
}

/* Before this process has anything of the library's, which a fork would duplicate. */
static bool with_peer(struct room *r, int file, int *cmd_fd)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return false;
	r->peer = fork();
	if (!r->peer) {
		close(pair[0]);
		peer_live(pair[1], file);
	}
	close(pair[1]);
	r->peer_socket = pair[0];
	r->peer_number = r->peer > 0 ? hear(pair[0], cmd_fd) : 0;
	return r->peer_number;
}

static bool view_of_peer(struct room *r, int file)
{
	int fd;

	if (!with_peer(r, file, &fd))
		return false;
	r->view = fd ? ibv_import_device(fd) : NULL;
	return r->view;
}

bool room_with_view_of_peer(struct room *r)
{
	return view_of_peer(r, NO_FILE);
}

bool room_with_memory_of_peer(struct room *r)
{
	return view_of_peer(r, NO_FILE_BUT_MEMORY);
}

bool room_with_receiver_of_peer(struct room *r)
{
	int none;

	r->fd = memfd_create("room", MFD_CLOEXEC);
	if (r->fd < 0 || !with_peer(r, r->fd, &none) || !room_with_cq(r))
		return false;
	r->xrcd = room_xrcd_open(r, r->fd);
	return r->xrcd;
}

void room_peer_end(struct room *r)
{
	close(r->peer_socket);
	EXPECT(waitpid(r->peer, NULL, 0) == r->peer);
}
