/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The sending sockets: opened, found by their port, replaced, closed. */
#include "remote/senders.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/fork.h"
#include "base/lock.h"
#include "base/reason.h"
#include "host/descriptor.h"
#include "remote/sockets.h"
#include "udp/socket.h"

#define SENDERS 32u

static struct senders {
	uint32_t count;
	struct vb_udp_sender sender[SENDERS];
} senders[VB_UDP_FAMILIES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct senders *of(unsigned int family)
{
	return &senders[family == VB_UDP_IPV4 ? 0 : 1];
}

/* Under the lock. */
static int sender_open(struct senders *all, bool ipv4, uint16_t port, struct vb_udp_sender **sender)
{
	struct vb_udp_sender *s = &all->sender[all->count];
	int fd = vb_descriptor_adopt(vb_udp_open_sender(ipv4, &port));

	if (fd < 0)
		return fd;
	s->fd = fd;
	s->port = port;
	s->ipv4 = ipv4;
	s->gso_refused = false;
	all->count++;
	*sender = s;
	return 0;
}

int vb_udp_sender(unsigned int family, uint16_t port, struct vb_udp_sender **sender)
{
	struct senders *all = of(family);
	struct vb_udp_sender *s = NULL;
	int err = 0;

	vb_mutex_take(&lock, VB_ORDER_SENDERS);
	for (uint32_t i = 0; i < all->count && !s; i++) {
		if (all->sender[i].port == port)
			s = &all->sender[i];
	}
	if (!s && all->count < SENDERS)
		err = sender_open(all, family == VB_UDP_IPV4, port, &s);
	if (!s && all->count)
		s = &all->sender[port % all->count];
	vb_mutex_release(&lock);
	*sender = s;
	return s ? 0 : err;
}

int vb_udp_sender_mend(struct vb_udp_sender *s)
{
	uint16_t port = s->port;
	int fd = -1;

	vb_mutex_take(&lock, VB_ORDER_SENDERS);
	bool lost = !vb_descriptor_still(s->fd); /* and not replaced by another thread meanwhile */

	if (lost) {
		vb_note(VB_REASON_DESCRIPTORS_GONE, "udp socket of source port %u", port);
		fd = vb_descriptor_adopt(vb_udp_open_sender(s->ipv4, &port));
	}
	if (fd >= 0) {
		vb_descriptor_close(s->fd);
		s->fd = fd;
		s->port = port;
	}
	vb_mutex_release(&lock);
	return lost && fd < 0 ? -EBADF : 0;
}

void vb_udp_senders_close(unsigned int family)
{
	struct senders *all = of(family);

	vb_mutex_take(&lock, VB_ORDER_SENDERS);
	for (uint32_t i = 0; i < all->count; i++)
		vb_descriptor_close(all->sender[i].fd);
	all->count = 0;
	vb_mutex_release(&lock);
}

/* In a forked child: the sockets are the parent's. */
static void forked(void)
{
	memset(senders, 0, sizeof(senders));
	pthread_mutex_init(&lock, NULL);
}

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);
