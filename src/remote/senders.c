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
#include "udp/address.h"
#include "udp/socket.h"

#define SENDERS 32u

#define BOUND   32u

/* A bound sender, and for whom it is. */
struct bound {
	struct vb_udp_sender sender; /* the first member */
	const struct vb_engine *engine;
	uint32_t users;  /* 0: the place is free */
	uint16_t wanted; /* port */
	uint32_t ifindex;
	struct vb_path path;
};

static struct senders {
	uint32_t count;
	struct vb_udp_sender sender[SENDERS];
	struct bound bound[BOUND];
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
	s->bound = false;
	s->gso = 0;
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

static bool serves(const struct bound *b, const struct vb_engine *engine,
		   const struct vb_path *path, uint32_t ifindex)
{
	return b->users && b->engine == engine && b->ifindex == ifindex &&
	       !memcmp(b->path.sgid, path->sgid, 16) && b->path.hop_limit == path->hop_limit &&
	       b->path.traffic_class == path->traffic_class;
}

/* Under the lock. */
static struct bound *bound_open(struct bound *b, uint16_t port)
{
	int fd = vb_descriptor_adopt(vb_udp_open_bound_sender(&b->path, b->ifindex, &port));

	if (fd < 0)
		return NULL;
	b->sender = (struct vb_udp_sender){
		.fd = fd, .port = port, .ipv4 = vb_udp_is_ipv4(b->path.sgid), .bound = true};
	b->users = 1;
	return b;
}

/* Under the lock: one with this port, or a new one, or one with another port. */
static struct bound *bound_get(struct senders *all, const struct bound *like)
{
	struct bound *other = NULL, *place = NULL;

	for (struct bound *b = all->bound; b < all->bound + BOUND; b++) {
		if (serves(b, like->engine, &like->path, like->ifindex)) {
			other = b;
			if (b->wanted == like->wanted)
				break;
		} else if (!b->users) {
			place = b;
		}
	}
	if (place && (!other || other->wanted != like->wanted)) {
		*place = *like;
		return bound_open(place, like->wanted);
	}
	if (other)
		other->users++;
	return other;
}

struct vb_udp_sender *vb_udp_sender_bound(const struct vb_engine *engine, uint16_t port,
					  const struct vb_path *path, uint32_t ifindex)
{
	struct bound like = {.engine = engine, .wanted = port, .ifindex = ifindex, .path = *path};

	if (path->flow_label || vb_udp_is_group(path->dgid))
		return NULL;
	vb_mutex_take(&lock, VB_ORDER_SENDERS);
	struct bound *b =
		bound_get(of(vb_udp_is_ipv4(path->sgid) ? VB_UDP_IPV4 : VB_UDP_IPV6), &like);

	vb_mutex_release(&lock);
	return b ? &b->sender : NULL;
}

void vb_udp_sender_put(struct vb_udp_sender *s)
{
	struct bound *b = (struct bound *)(void *)s;

	if (!s || !s->bound)
		return;
	vb_mutex_take(&lock, VB_ORDER_SENDERS);
	if (b->users && --b->users == 0)
		vb_descriptor_close(b->sender.fd);
	vb_mutex_release(&lock);
}

static int open_like(const struct vb_udp_sender *s, uint16_t *port)
{
	const struct bound *b = (const struct bound *)(const void *)s;

	return s->bound ? vb_udp_open_bound_sender(&b->path, b->ifindex, port)
			: vb_udp_open_sender(s->ipv4, port);
}

int vb_udp_sender_mend(struct vb_udp_sender *s)
{
	uint16_t port = s->port;
	int fd = -1;

	vb_mutex_take(&lock, VB_ORDER_SENDERS);
	bool lost = !vb_descriptor_still(s->fd); /* and not replaced by another thread meanwhile */

	if (lost) {
		vb_note(VB_REASON_DESCRIPTORS_GONE, "udp socket of source port %u", port);
		fd = vb_descriptor_adopt(open_like(s, &port));
	}
	if (fd >= 0) {
		s->gso = 0;
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
	for (struct bound *b = all->bound; b < all->bound + BOUND; b++) {
		if (b->users)
			vb_descriptor_close(b->sender.fd);
		b->users = 0;
	}
	vb_mutex_release(&lock);
}

/* In a forked child: the sockets are the parent's. */
static void forked(void)
{
	memset(senders, 0, sizeof(senders));
	pthread_mutex_init(&lock, NULL);
}

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);
