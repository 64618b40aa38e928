/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sending runs. */
#include "udp/send.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/uio.h>

#include "base/reason.h"
#include "base/sys.h"
#include "udp/address.h"
#include "udp/fault.h"
#include "wire/icrc.h"
#include "wire/packet.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define CONTROL_BYTES 160
#define BATCH         32u /* three pieces for each packet must fit struct burst */
#define PACKET_EXTRA  (VB_PACKET_HEADER_MOST + 3u + VB_ICRC_BYTES)

/* The fields that are the same for all packets of a run. */
struct job {
	struct vb_udp_sender *sender;
	const struct vb_run *run;
	const uint8_t *payload;
	uint32_t mtu;
	struct vb_flow flow;
	union vb_udp_address to;
	socklen_t to_length;
	_Alignas(struct cmsghdr) uint8_t control[CONTROL_BYTES];
	size_t control_length; /* without UDP_SEGMENT, which is appended */
};

/*
 * The packets of one burst. Each has three pieces; the trailer of one and the header of the next
 * are adjacent and form one piece.
 */
struct burst {
	struct iovec piece[2 * VB_UDP_BURST_PACKETS + 1];
	uint32_t pieces;
	uint8_t extra[VB_UDP_BURST_PACKETS * PACKET_EXTRA];
	size_t used;
	size_t bytes; /* bytes of all packets so far */
};

static void burst_begin(struct burst *b)
{
	b->pieces = 0;
	b->used = 0;
	b->bytes = 0;
}

static void put_control(struct job *j, int level, int type, const void *data, size_t length)
{
	struct cmsghdr *c = (struct cmsghdr *)(void *)(j->control + j->control_length);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(length);
	memcpy(CMSG_DATA(c), data, length);
	j->control_length += CMSG_SPACE(length);
}

static void control_ipv4(struct job *j, const struct vb_path *path, uint32_t ifindex)
{
	struct in_pktinfo info = {0};
	int ttl = path->hop_limit;
	int tos = path->traffic_class;

	memcpy(&info.ipi_spec_dst, path->sgid + 12, 4);
	if (vb_udp_is_group(path->dgid))
		info.ipi_ifindex = (int)ifindex;
	put_control(j, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	if (ttl != VB_HOP_LIMIT_ROUTE)
		put_control(j, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl));
	if (tos)
		put_control(j, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
}

static void control_ipv6(struct job *j, const struct vb_path *path, uint32_t ifindex)
{
	struct in6_pktinfo info = {0};
	int hops = path->hop_limit;
	int class = path->traffic_class;

	memcpy(&info.ipi6_addr, path->sgid, 16);
	if (vb_udp_is_group(path->dgid) || vb_udp_is_link_scope(path->dgid))
		info.ipi6_ifindex = ifindex;
	put_control(j, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
	if (hops != VB_HOP_LIMIT_ROUTE)
		put_control(j, IPPROTO_IPV6, IPV6_HOPLIMIT, &hops, sizeof(hops));
	put_control(j, IPPROTO_IPV6, IPV6_TCLASS, &class, sizeof(class));
}

static void job_begin(struct job *j, const struct vb_path *path, uint32_t ifindex)
{
	memcpy(j->flow.source, path->sgid, 16);
	memcpy(j->flow.destination, path->dgid, 16);
	j->flow.source_port = j->sender->port;
	j->flow.destination_port = VB_UDP_PORT;
	j->flow.ipv4 = j->sender->ipv4;
	j->to_length = vb_udp_address_of(&j->to, path->dgid, VB_UDP_PORT, ifindex);
	j->control_length = 0;
	if (j->sender->bound)
		return;
	if (j->sender->ipv4) {
		control_ipv4(j, path, ifindex);
		return;
	}
	j->to.v6.sin6_flowinfo = htonl(path->flow_label & 0xfffff);
	control_ipv6(j, path, ifindex);
}

/* `from`: index of the first piece of the message. */
static void put_piece(struct burst *b, uint32_t from, const void *at, size_t length)
{
	struct iovec *last = b->pieces > from ? &b->piece[b->pieces - 1] : NULL;

	if (!length)
		return;
	if (last && (const uint8_t *)last->iov_base + last->iov_len == at) {
		last->iov_len += length;
		return;
	}
	b->piece[b->pieces].iov_base = (void *)(uintptr_t)at;
	b->piece[b->pieces].iov_len = length;
	b->pieces++;
}

/*
 * Appends packet `segment` to the message whose first piece is `from`. `id` is the IPv4
 * identification that the kernel will give the packet.
 */
static void put_packet(const struct job *j, struct burst *b, uint32_t from, uint32_t segment,
		       uint16_t id)
{
	uint8_t *header = b->extra + b->used;
	size_t head = vb_packet_header(j->run, segment, j->mtu, header);
	uint32_t data = vb_packet_payload(j->run, segment, j->mtu);
	uint32_t pad = vb_packet_pad(data);
	size_t bytes = head + data + pad + VB_ICRC_BYTES;
	const uint8_t *payload = j->payload + (size_t)segment * j->mtu;
	uint32_t crc = vb_icrc_begin(&j->flow, id, bytes, header, head);

	crc = vb_icrc_add(crc, payload, data);
	size_t tail = vb_icrc_end(crc, pad, header + head);

	put_piece(b, from, header, head);
	put_piece(b, from, payload, data);
	put_piece(b, from, header + head, tail);
	b->used += head + tail;
	b->bytes += bytes;
}

static void message_of(struct job *j, struct burst *b, uint32_t from, struct msghdr *m)
{
	memset(m, 0, sizeof(*m));
	m->msg_name = &j->to;
	m->msg_namelen = j->to_length;
	m->msg_iov = b->piece + from;
	m->msg_iovlen = b->pieces - from;
	m->msg_control = j->control;
	m->msg_controllen = j->control_length;
}

static int note_failure(const struct job *j, int err)
{
	if (err == EAGAIN || err == ENOBUFS || err == ENOMEM)
		vb_note(VB_REASON_DROP_SEND_BUFFER, "run for qp 0x%x psn 0x%x: %s",
			j->run->dest_qpn, j->run->psn, strerror(err));
	else
		vb_note(VB_REASON_DROP_UNREACHABLE, "run for qp 0x%x psn 0x%x, %u bytes: %s",
			j->run->dest_qpn, j->run->psn, j->run->length, strerror(err));
	return -err;
}

/*
 * A short packet, or two, is copied into one piece and sent with the fewest arguments: for such a
 * packet each piece and each control message costs more than its bytes.
 */
#define SHORT_BYTES 1024u
#define SEGMENT_ROW 8u /* so many pairs of one size in a row make it the socket's */

/* Appends a packet to the piece at `to`; returns its length. */
static size_t put_short(const struct job *j, uint8_t *to, uint16_t id)
{
	size_t head = vb_packet_header(j->run, 0, j->mtu, to);
	uint32_t data = vb_packet_payload(j->run, 0, j->mtu);
	uint32_t pad = vb_packet_pad(data);
	size_t bytes = head + data + pad + VB_ICRC_BYTES;

	memcpy(to + head, j->payload, data);
	memset(to + head + data, 0, pad);
	uint32_t crc = vb_icrc_begin(&j->flow, id, bytes, to, head);

	crc = vb_icrc_add(crc, to + head, data + pad);
	vb_icrc_end(crc, 0, to + head + data + pad);
	return bytes;
}

/* False: the socket would go on cutting what is sent. */
static bool segment_set(struct vb_udp_sender *s, size_t size)
{
	int value = (int)size;

	if (setsockopt(s->fd, IPPROTO_UDP, UDP_SEGMENT, &value, sizeof(value)))
		return false;
	s->gso = (uint16_t)size;
	s->others = 0;
	return true;
}

/* A message of so many bytes that is one packet must not be cut. */
static bool leaves_whole(struct vb_udp_sender *s, size_t bytes)
{
	return bytes <= s->gso || !s->gso || segment_set(s, 0);
}

/* Whether the socket cuts a message into packets of this size by itself. */
static bool cuts(struct vb_udp_sender *s, size_t size)
{
	if (s->gso == size)
		return true;
	if (s->other_gso != size) {
		s->other_gso = (uint16_t)size;
		s->others = 0;
	}
	return ++s->others >= SEGMENT_ROW && segment_set(s, size);
}

static int send_piece(const struct job *j, const uint8_t *piece, size_t bytes)
{
	return vb_sys_sendto(j->sender->fd, piece, bytes, MSG_DONTWAIT | MSG_NOSIGNAL, &j->to.any,
			     j->to_length) < 0
		       ? -errno
		       : 0;
}

static bool is_short(const struct job *j)
{
	return j->sender->bound && j->run->length <= SHORT_BYTES && !vb_udp_fault_active();
}

/* Sends one packet by itself: identification 0. */
static int send_one(struct job *j, uint32_t segment)
{
	struct burst b;
	struct msghdr m;
	int err = 0;

	if (!leaves_whole(j->sender, VB_PACKET_MOST))
		return note_failure(j, errno);

	burst_begin(&b);
	put_packet(j, &b, 0, segment, 0);
	message_of(j, &b, 0, &m);
	if (vb_udp_fault_active())
		err = vb_udp_fault_send(j->sender->fd, &m);
	else if (vb_sys_sendmsg(j->sender->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		err = -errno;
	return err ? note_failure(j, -err) : 0;
}

/* Sends packets without bursts: each by itself, several in one call. */
static int send_batch(struct job *j, uint32_t segment, uint32_t count)
{
	struct mmsghdr m[BATCH];
	struct burst b;
	uint32_t sent = 0;

	if (!leaves_whole(j->sender, VB_PACKET_MOST))
		return note_failure(j, errno);
	burst_begin(&b);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t from = b.pieces;

		put_packet(j, &b, from, segment + i, 0);
		message_of(j, &b, from, &m[i].msg_hdr);
	}
	while (sent < count) {
		int n = vb_sys_sendmmsg(j->sender->fd, m + sent, count - sent,
					MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n <= 0)
			return note_failure(j, n ? errno : EAGAIN);
		sent += (uint32_t)n;
	}
	return 0;
}

static int send_singly(struct job *j, uint32_t segment, uint32_t count)
{
	int err = 0;

	for (uint32_t i = 0; i < count && !err;) {
		uint32_t n = count - i < BATCH ? count - i : BATCH;

		if (vb_udp_fault_active())
			n = 1;
		err = n == 1 ? send_one(j, segment + i) : send_batch(j, segment + i, n);
		i += n;
	}
	return err;
}

/*
 * Whether the error means that the kernel or the interface cannot cut bursts, and not that the
 * packets are wrong.
 */
static bool refuses_segments(int err)
{
	return err == EINVAL || err == EIO || err == EOPNOTSUPP || err == ENOPROTOOPT;
}

/*
 * Sends the packets of `b`. All have `size` bytes but the last, which may be shorter. The kernel
 * counts their identifications from 0.
 */
static int burst_send(struct job *j, struct burst *b, size_t size)
{
	struct msghdr m;
	size_t plain = j->control_length;
	uint16_t gso = (uint16_t)size;

	put_control(j, IPPROTO_UDP, UDP_SEGMENT, &gso, sizeof(gso));
	message_of(j, b, 0, &m);
	j->control_length = plain;
	return vb_sys_sendmsg(j->sender->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Sends `count` packets of `size` bytes (the last may be shorter) as one burst. */
static int send_burst(struct job *j, uint32_t segment, uint32_t count, size_t size)
{
	struct burst b;

	burst_begin(&b);
	for (uint32_t i = 0; i < count; i++)
		put_packet(j, &b, 0, segment + i, (uint16_t)i);
	return burst_send(j, &b, size);
}

static bool may_burst(const struct job *j)
{
	return !__atomic_load_n(&j->sender->gso_refused, __ATOMIC_RELAXED) &&
	       !vb_udp_fault_active();
}

/* Returns 0, an error that was noted, or 1: the packets are to be sent singly. */
static int burst_end(struct job *j, int err)
{
	if (err && refuses_segments(-err)) {
		__atomic_store_n(&j->sender->gso_refused, true, __ATOMIC_RELAXED);
		if (j->sender->gso)
			(void)segment_set(j->sender, 0);
		return 1;
	}
	return err ? note_failure(j, -err) : 0;
}

/* As send_one(), for a run of one packet. */
static int send_short(struct job *j)
{
	uint8_t piece[SHORT_BYTES + PACKET_EXTRA];
	size_t bytes = put_short(j, piece, 0);
	int err = leaves_whole(j->sender, bytes) ? send_piece(j, piece, bytes) : -errno;

	return err ? note_failure(j, -err) : 0;
}

static int send_several(struct job *j, uint32_t segment, uint32_t count, size_t size)
{
	int err = 1;

	if (j->run->segments == 1 && is_short(j))
		return send_short(j);
	if (count == 1)
		return send_one(j, segment);
	if (may_burst(j))
		err = burst_end(j, send_burst(j, segment, count, size));
	return err > 0 ? send_singly(j, segment, count) : err;
}

/* As burst_send() of two packets. 1: the socket does not cut. */
static int send_short_pair(const struct job *first, const struct job *second)
{
	uint8_t piece[SHORT_BYTES + 2 * PACKET_EXTRA];
	size_t size = put_short(first, piece, 0);

	if (!cuts(first->sender, size))
		return 1;
	return send_piece(first, piece, size + put_short(second, piece + size, 1));
}

int vb_udp_send_pair(struct vb_udp_sender *sender, const struct vb_path *path, uint32_t ifindex,
		     const struct vb_run *run, uint32_t mtu, const uint8_t *payload,
		     const struct vb_run *ack)
{
	struct job first = {.sender = sender, .run = run, .payload = payload, .mtu = mtu};
	struct job second;
	struct burst b;
	size_t size;
	int err = 1;

	job_begin(&first, path, ifindex);
	second = first;
	second.run = ack;
	size = vb_packet_bytes(run, 0, mtu);
	if (size < vb_packet_bytes(ack, 0, mtu) || !may_burst(&first)) {
		err = send_one(&first, 0);
		return err ? err : send_one(&second, 0);
	}
	if (is_short(&first))
		err = send_short_pair(&first, &second);
	if (err > 0) {
		burst_begin(&b);
		put_packet(&first, &b, 0, 0, 0);
		put_packet(&second, &b, 0, 0, 1);
		err = burst_send(&first, &b, size);
	}
	err = burst_end(&first, err);
	if (err <= 0)
		return err;
	err = send_one(&first, 0);
	return err ? err : send_one(&second, 0);
}

uint32_t vb_udp_run_bytes(uint32_t mtu, uint32_t most)
{
	uint32_t packets = VB_UDP_BURST_BYTES / (mtu + PACKET_EXTRA);

	if (packets > VB_UDP_BURST_PACKETS)
		packets = VB_UDP_BURST_PACKETS;
	if (packets > most / mtu)
		packets = most / mtu;
	return (packets ? packets : 1) * mtu;
}

int vb_udp_send(struct vb_udp_sender *sender, const struct vb_path *path, uint32_t ifindex,
		const struct vb_run *run, uint32_t mtu, const uint8_t *payload)
{
	struct job j = {.sender = sender, .run = run, .payload = payload, .mtu = mtu};

	job_begin(&j, path, ifindex);
	for (uint32_t segment = 0; segment < run->segments;) {
		size_t size;
		uint32_t count = vb_packet_burst(run, segment, mtu, VB_UDP_BURST_PACKETS, &size);
		int err;

		if (!size)
			return 0; /* VB_OP_DROP, which only a ring carries */
		if (count > VB_UDP_BURST_BYTES / size)
			count = VB_UDP_BURST_BYTES / (uint32_t)size;
		err = send_several(&j, segment, count, size);
		if (err)
			return err;
		segment += count;
	}
	return 0;
}
