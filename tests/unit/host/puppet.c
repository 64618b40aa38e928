/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A peer that a test plays by hand (puppet.h). */
#include "unit/host/puppet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/random.h"
#include "host/descriptor.h"
#include "host/names.h"
#include "host/shared.h"

int puppet_dial(uint32_t block)
{
	struct sockaddr_un addr;
	socklen_t len = vb_name_address(&addr, block);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	return connect(fd, (struct sockaddr *)&addr, len) ? -errno : fd;
}

int puppet_listen(uint32_t *block)
{
	struct sockaddr_un addr;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	do {
		*block = 1 + vb_random32() % 16000;
	} while (bind(fd, (struct sockaddr *)&addr, vb_name_address(&addr, *block)));
	return listen(fd, 1) ? -1 : fd;
}

int puppet_next(int sock, struct vb_control *msg, int *kept)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	int fds[VB_CONTROL_FDS], n;

	*msg = (struct vb_control){0};
	if (poll(&p, 1, END_PATIENCE_MS) != 1)
		return -ETIMEDOUT;
	int r = vb_control_receive(sock, msg, NULL, fds, &n);

	if (kept)
		*kept = n ? fds[0] : -1;
	for (int i = kept ? 1 : 0; i < n; i++)
		vb_descriptor_close(fds[i]);
	return r == -ECONNRESET || r == -EPIPE ? 0 : r;
}

void puppet_send(int sock, enum vb_control_type type, struct vb_control msg, const int *fds, int n)
{
	msg.magic = VB_CONTROL_MAGIC;
	msg.version = VB_CONTROL_VERSION;
	msg.type = type;
	vb_control_send(sock, &msg, fds, n);
}

struct vb_page *puppet_page(int *fd)
{
	struct vb_page *page;

	assert_int_equal(vb_page_create(vb_random64(), &page, fd), 0);
	*(uint32_t *)(void *)&page->header.alive = 1234;
	page->header.num_engines = 1;
	return page;
}

void puppet_hello(int sock, uint64_t nonce, int fd)
{
	puppet_send(sock, VB_CONTROL_HELLO, (struct vb_control){.nonce = nonce}, &fd,
		    fd < 0 ? 0 : 1);
}

int puppet_call(uint32_t block, const struct puppet *p)
{
	struct vb_control msg;
	int sock = puppet_dial(block);

	puppet_hello(sock, p->page->header.nonce, p->page_fd);
	assert_int_equal(puppet_next(sock, &msg, NULL), 1);
	assert_int_equal(puppet_next(sock, &msg, NULL), 1);
	assert_int_equal(msg.type, VB_CONTROL_GRANT);
	return sock;
}

void puppet_grant_send(int sock)
{
	void *lock;
	int lock_fd;

	assert_int_equal(vb_shared_create_common("lock", 4096, &lock, &lock_fd), 0);
	puppet_send(sock, VB_CONTROL_GRANT,
		    (struct vb_control){.parts = VB_CONTROL_LOCK, .text = "puppet"}, &lock_fd, 1);
	vb_descriptor_close(lock_fd);
	vb_shared_unmap(lock, 4096);
}

void puppet_grant(struct end *end, int sock)
{
	int changes = atomic_load(&end->changes);

	puppet_grant_send(sock);
	assert_true(end_await(&end->changes, changes + 1, END_PATIENCE_MS));
}

void puppet_make(struct end *end, uint32_t block, struct puppet *p)
{
	p->page = puppet_page(&p->page_fd);
	p->page->header.block[0] = (block ^ 1) & 0x3fff;
	p->page->header.num_blocks = 1;
	p->qpn = p->page->header.block[0] << VB_QPN_BLOCK_BITS | 5;
	p->page->qp[5].qpn = p->qpn;
	p->sock = puppet_call(block, p);
	puppet_grant(end, p->sock);
}

void puppet_drop(struct puppet *p)
{
	close(p->sock);
	vb_descriptor_close(p->page_fd);
	vb_shared_unmap(p->page, sizeof(*p->page));
}

struct vb_control puppet_expect(int sock, enum vb_control_type type)
{
	struct vb_control msg = {0};

	for (int i = 0; i < 20 && msg.type != type; i++)
		assert_int_equal(puppet_next(sock, &msg, NULL), 1);
	assert_int_equal(msg.type, type);
	return msg;
}
