/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receiving packets. */
#include "udp/receive.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/mman.h>

#include "base/copy_source.h"
#include "base/reason.h"
#include "base/sys.h"
#include "udp/address.h"
#include "udp/steer.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/packet.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif

#define BATCH          8
#define DATAGRAM_BYTES 65536u /* the socket gives a merged burst as one datagram */
#define CONTROL_BYTES  256

/*
 * The ICRC covers the IPv4 identification, which no socket shows. verbatim sends the packet's place
 * in its burst. A sender that was seen to do so is held to it, and then the whole check holds. Of
 * any other sender every identification that explains the ICRC is accepted.
 */
#define HABITS         256u
#define HABIT_SURE     16u /* this many in a row make a habit */
/* This many packets against a habit end it: another host has the address now. */
#define HABIT_GONE     64u
#define ID_OWN         64u /* packets of a burst */

struct habit {
	uint32_t sender;
	uint8_t kept;
	uint8_t broken;
};

/*
 * A call that reads several datagrams looks once more than there are datagrams, which costs as much
 * as a read that finds none. So a call reads one datagram, and several only while reads go on
 * finding some.
 */
#define STREAM       4u
/*
 * Acknowledgements are sent when a batch was delivered. A batch of long bursts as large as the
 * sender's window would make both sides wait for each other in turn.
 */
#define BATCH_BYTES  65536u

/*
 * Payload of a WRITE goes into memory that the program may have unmapped, so the kernel has to copy
 * it. While WRITEs come, the receiver therefore only looks at a datagram (MSG_PEEK), and the
 * read that takes it out of the queue copies it to where it belongs.
 */
#define PEEK_PACKETS 64u

struct peeked {
	int fd; /* -1: the datagram is not, or no more, in the socket's queue */
	uint32_t bytes;
	bool writes; /* the last datagram had a WRITE in it */
	/* The run that is being handed on, and how it lies in the datagram. */
	const uint8_t *run;
	uint32_t length;
	uint32_t skip; /* bytes in front of the payload of its first packet */
	uint32_t packets;
	uint32_t payload; /* of each packet but the last */
	uint32_t between; /* from the end of one payload to the next one */
	bool uneven;      /* it does not lie so */
};

/*
 * What the socket tells beside the bytes costs as much as the bytes of a short packet. A short
 * datagram of connected queue pairs is therefore first taken for one that came as the last one did:
 * to the same address, as one packet, or as two of which the second is an acknowledgement. The ICRC
 * covers the address and the lengths: if it is right, so is this. The source is always asked for.
 */
#define GLANCE_BYTES 1200u
#define GLANCE_REST  64u /* so many datagrams are asked about after one for which this was wrong */

/* One datagram of the socket, which may hold several packets. */
struct arrival {
	struct vb_flow flow;
	struct vb_path path;
	uint32_t ifindex;
	uint32_t segment; /* bytes of each packet but the last; 0: one packet */
	bool checked;     /* the ICRCs are right */
};

struct vb_udp_receiver {
	struct vb_copy_source source; /* the first member */
	struct peeked peeked;
	struct arrival known[2]; /* by family: the last datagram about which the socket was asked */
	uint32_t glance_rest;
	bool owed[2];    /* by family: the datagram at the head of the queue was handed on */
	uint32_t length; /* of the last datagram */
	uint32_t streak; /* reads in a row that found a datagram */
	struct vb_udp_faults faults;
	struct habit habit[HABITS];
	struct mmsghdr message[BATCH];
	struct iovec piece[BATCH];
	union vb_udp_address from[BATCH];
	_Alignas(struct cmsghdr) uint8_t control[BATCH][CONTROL_BYTES];
	_Alignas(64) uint8_t datagram[BATCH][DATAGRAM_BYTES];
};

/*
 * The pieces of the datagram: the run's payload goes to `to`, packet by packet, its last 8 bytes
 * by themselves; all other bytes go to `waste`. Returns their number.
 */
static uint32_t peeked_pieces(const struct peeked *p, uint64_t to, uint8_t *waste,
			      struct iovec piece[])
{
	uint64_t tail = (to + p->length - 1) & ~(uint64_t)7;
	uint64_t end = to + p->length;
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->packets; i++) {
		uint64_t next = i + 1 == p->packets ? end : to + p->payload;

		piece[n++] = (struct iovec){waste, i ? p->between : p->skip};
		if (to < tail && tail < next) {
			piece[n++] = (struct iovec){(void *)(uintptr_t)to, tail - to};
			to = tail;
		}
		piece[n++] = (struct iovec){(void *)(uintptr_t)to, next - to};
		to = next;
	}
	return n;
}

/* Takes the datagram out of the queue. Returns the bytes that were copied, or -1. */
static ssize_t peeked_take(struct vb_udp_receiver *r, struct iovec *piece, uint32_t count)
{
	struct msghdr m = {.msg_iov = piece, .msg_iovlen = count};
	int fd = r->peeked.fd;

	r->peeked.fd = -1;
	return vb_sys_recvmsg(fd, &m, MSG_DONTWAIT | MSG_TRUNC);
}

static bool peeked_copy(struct vb_copy_source *source, const void *from, uint64_t to,
			uint64_t length)
{
	struct vb_udp_receiver *r = (struct vb_udp_receiver *)(void *)source;
	struct peeked *p = &r->peeked;
	struct iovec piece[2 * PEEK_PACKETS + 1];

	if (p->fd < 0 || from != p->run || length != p->length || !length)
		return false;
	/* MSG_TRUNC: the result is the length of the datagram, whatever lies behind the run. */
	return peeked_take(r, piece, peeked_pieces(p, to, r->datagram[1], piece)) == p->bytes;
}

struct vb_copy_source *vb_udp_receiver_source(struct vb_udp_receiver *r)
{
	return &r->source;
}

struct vb_udp_receiver *vb_udp_receiver_create(void)
{
	struct vb_udp_receiver *r = vb_sys_pages(sizeof(*r));

	if (r == MAP_FAILED)
		return NULL;
	r->source.copy = peeked_copy;
	r->peeked.fd = -1;
	for (int i = 0; i < BATCH; i++) {
		struct msghdr *m = &r->message[i].msg_hdr;

		r->piece[i].iov_base = r->datagram[i];
		r->piece[i].iov_len = DATAGRAM_BYTES;
		m->msg_name = &r->from[i];
		m->msg_iov = &r->piece[i];
		m->msg_iovlen = 1;
		m->msg_control = r->control[i];
		m->msg_namelen = sizeof(r->from[i]);
		m->msg_controllen = CONTROL_BYTES;
	}
	return r;
}

void vb_udp_receiver_destroy(struct vb_udp_receiver *r)
{
	if (r)
		munmap(r, sizeof(*r));
}

static int int_of(struct cmsghdr *c)
{
	int value = 0;

	/* IP_TOS comes as one byte. */
	if (c->cmsg_len == CMSG_LEN(1))
		return *CMSG_DATA(c);
	if (c->cmsg_len >= CMSG_LEN(sizeof(value)))
		memcpy(&value, CMSG_DATA(c), sizeof(value));
	return value;
}

static void take_ipv4(struct arrival *a, struct cmsghdr *c)
{
	struct in_pktinfo info;

	switch (c->cmsg_type) {
	case IP_PKTINFO:
		memcpy(&info, CMSG_DATA(c), sizeof(info));
		vb_udp_gid_of_ipv4(info.ipi_addr, a->path.dgid);
		a->ifindex = (uint32_t)info.ipi_ifindex;
		break;
	case IP_TOS:
		a->path.traffic_class = (uint8_t)int_of(c);
		break;
	case IP_TTL:
		a->path.hop_limit = (uint8_t)int_of(c);
		break;
	default:
		break;
	}
}

static void take_ipv6(struct arrival *a, struct cmsghdr *c)
{
	struct in6_pktinfo info;
	uint32_t word;

	switch (c->cmsg_type) {
	case IPV6_PKTINFO:
		memcpy(&info, CMSG_DATA(c), sizeof(info));
		memcpy(a->path.dgid, &info.ipi6_addr, 16);
		a->ifindex = info.ipi6_ifindex;
		break;
	case IPV6_TCLASS:
		a->path.traffic_class = (uint8_t)int_of(c);
		break;
	case IPV6_HOPLIMIT:
		a->path.hop_limit = (uint8_t)int_of(c);
		break;
	case IPV6_FLOWINFO:
		memcpy(&word, CMSG_DATA(c), sizeof(word));
		a->path.flow_label = ntohl(word) & 0xfffff;
		break;
	default:
		break;
	}
}

/* Fills in what the socket says about the datagram. */
static void arrival_of(struct arrival *a, struct msghdr *m, const union vb_udp_address *from,
		       bool ipv4)
{
	memset(a, 0, sizeof(*a));
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
			a->segment = (uint32_t)int_of(c);
		else if (c->cmsg_level == IPPROTO_IP)
			take_ipv4(a, c);
		else if (c->cmsg_level == IPPROTO_IPV6)
			take_ipv6(a, c);
	}
	vb_udp_gid_of(from, a->path.sgid);
	memcpy(a->flow.source, a->path.sgid, 16);
	memcpy(a->flow.destination, a->path.dgid, 16);
	a->flow.source_port = ntohs(ipv4 ? from->v4.sin_port : from->v6.sin6_port);
	a->flow.destination_port = VB_UDP_PORT;
	a->flow.ipv4 = ipv4;
}

static struct habit *habit_of(struct vb_udp_receiver *r, const struct vb_flow *flow)
{
	uint32_t sender;
	struct habit *h;

	memcpy(&sender, flow->source + 12, sizeof(sender));
	sender ^= (uint32_t)flow->source_port << 16 | 1;
	h = &r->habit[sender * 0x9e3779b1u >> 24];
	if (h->sender != sender)
		*h = (struct habit){.sender = sender};
	return h;
}

static void habit_kept(struct habit *h)
{
	h->kept += h->kept < HABIT_SURE;
	h->broken = 0;
}

static bool icrc_right(struct habit *h, const struct arrival *a, const uint8_t *packet,
		       uint32_t bytes, uint16_t id)
{
	const struct vb_flow *flow = &a->flow;

	if (!a->checked && !vb_icrc_check(flow, packet, bytes, &id))
		return false;
	if (!flow->ipv4)
		return true;
	if (id < ID_OWN) {
		habit_kept(h);
		return true;
	}
	if (h->kept < HABIT_SURE) {
		h->kept = 0;
		return true;
	}
	if (++h->broken >= HABIT_GONE)
		h->kept = 0;
	return false;
}

/* A run that may still grow by the packets behind it. */
struct growing {
	struct vb_run run;
	uint8_t *payload; /* NULL: there is no run */
	struct peeked *peeked;
	uint32_t offset; /* of the present packet in the datagram */
	uint32_t at;     /* of its payload */
	vb_udp_sink sink;
	void *arg;
};

static void hand_on(struct growing *g, const struct arrival *a)
{
	struct peeked *p = g->peeked;

	p->run = p->uneven || g->run.segments > PEEK_PACKETS ? NULL : g->payload;
	p->length = g->run.length;
	p->packets = g->run.segments;
	p->writes |= g->payload && g->run.op == VB_OP_WRITE;
	if (g->payload)
		g->sink(g->arg, &g->run, g->payload, a->ifindex);
	g->payload = NULL;
}

/*
 * Whether the packet continues the run. SEND and WRITE only: the responder executes a part of such
 * a message at any packet boundary. A packet that asks for an acknowledgement ends the run, so that
 * the acknowledgement does not wait for a later packet.
 */
static bool continues(const struct growing *g, const struct vb_run *next)
{
	const struct vb_run *run = &g->run;

	return g->payload && run->op <= VB_OP_WRITE && next->op == run->op &&
	       next->service == run->service && run->service != VB_SERVICE_UD &&
	       next->dest_qpn == run->dest_qpn && next->pkey == run->pkey &&
	       (run->service != VB_SERVICE_XRC || next->srqn == run->srqn) &&
	       next->psn == ((run->psn + run->segments) & VB_QPN_MASK) &&
	       !(run->flags & (VB_RUN_LAST | VB_RUN_ACK_REQ)) && !(next->flags & VB_RUN_FIRST) &&
	       next->length && next->length <= run->length / run->segments &&
	       run->length % run->segments == 0;
}

/* The payload of the next packet of the run, which has had `packets` and `length`, lies at `at`. */
static void lies_at(struct peeked *p, uint32_t packets, uint32_t length, uint32_t at)
{
	if (packets == 1) {
		p->payload = length;
		p->between = at - p->skip - length;
	}
	p->uneven |= at != p->skip + packets * (p->payload + p->between);
}

/*
 * Joins the packets of a burst by one copy of the payload. The protocol, its checks and the copy
 * into the program's memory (a system call) are then needed once for all of them.
 */
static void grow(struct growing *g, const struct arrival *a, const struct vb_run *run,
		 uint8_t *payload)
{
	if (continues(g, run)) {
		lies_at(g->peeked, g->run.segments, g->run.length, g->at);
		memmove(g->payload + g->run.length, payload, run->length);
		g->run.length += run->length;
		g->run.segments++;
		g->run.flags |= run->flags;
		g->run.imm = run->imm;
		return;
	}
	hand_on(g, a);
	g->peeked->skip = g->at;
	g->peeked->uneven = false;
	g->run = *run;
	g->run.path = a->path;
	g->payload = payload;
}

static void packet_in(struct habit *h, const struct arrival *a, uint8_t *packet, uint32_t bytes,
		      uint16_t id, struct growing *g, struct vb_udp_faults *faults)
{
	struct vb_run run;
	const uint8_t *payload;
	enum vb_reason reason = vb_packet_decode(packet, bytes, &run, &payload);

	if (!reason && !icrc_right(h, a, packet, bytes, id))
		reason = VB_REASON_DROP_ICRC;
	if (!reason) {
		g->at = g->offset + (uint32_t)(payload - packet);
		grow(g, a, &run, packet + (payload - packet));
		return;
	}
	if (vb_steer_probe_in(a->flow.ipv4, packet, bytes))
		return;
	faults->packets++;
	faults->icrc += reason == VB_REASON_DROP_ICRC;
	vb_note(reason, "packet of %u bytes from udp port %u: %s", bytes, a->flow.source_port,
		vb_reason_text(reason));
}

static void datagram_in(struct vb_udp_receiver *r, const struct arrival *a, uint8_t *data,
			uint32_t bytes, vb_udp_sink sink, void *arg)
{
	struct habit *h = habit_of(r, &a->flow);
	uint32_t step = a->segment && a->segment < bytes ? a->segment : bytes;
	struct growing g = {.sink = sink, .arg = arg, .peeked = &r->peeked};

	r->peeked.writes = false;
	uint16_t id = 0; /* verbatim counts the identification from 0 in each burst */

	if (!bytes) {
		r->faults.packets++;
		vb_note(VB_REASON_DROP_MALFORMED, "empty datagram from udp port %u",
			a->flow.source_port);
	}
	for (uint32_t at = 0; at < bytes; at += step) {
		g.offset = at;
		packet_in(h, a, data + at, bytes - at < step ? bytes - at : step, id++, &g,
			  &r->faults);
	}
	hand_on(&g, a);
}

struct vb_udp_faults vb_udp_receiver_faults(struct vb_udp_receiver *r)
{
	struct vb_udp_faults faults = r->faults;

	r->faults = (struct vb_udp_faults){0};
	return faults;
}

/* How many datagrams like the last one form a batch. */
static uint32_t batch(const struct vb_udp_receiver *r)
{
	if (r->streak < STREAM)
		return 1;
	/* A datagram is shorter than a batch may be. */
	return r->length > BATCH_BYTES / BATCH ? BATCH_BYTES / r->length : BATCH;
}

static void message_in(struct vb_udp_receiver *r, int i, bool ipv4, vb_udp_sink sink, void *arg)
{
	struct msghdr *m = &r->message[i].msg_hdr;
	struct arrival a;

	r->length = r->message[i].msg_len;
	if (m->msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		r->faults.packets++;
		vb_note(VB_REASON_DROP_MALFORMED, "datagram of more than %u bytes", DATAGRAM_BYTES);
	} else {
		arrival_of(&a, m, &r->from[i], ipv4);
		r->known[ipv4] = a;
		datagram_in(r, &a, r->datagram[i], r->message[i].msg_len, sink, arg);
	}
	m->msg_namelen = sizeof(r->from[i]);
	m->msg_controllen = CONTROL_BYTES;
}

static bool icrc_as_ours(const struct vb_flow *flow, const uint8_t *packet, uint32_t bytes,
			 uint16_t id)
{
	uint16_t found = id;

	return vb_icrc_check(flow, packet, bytes, &found) && found == id;
}

static bool is_ack(const uint8_t *packet)
{
	const struct vb_opcode *o = vb_opcode_find(*packet);

	return o && o->op == VB_OP_ACK;
}

/*
 * Whether the datagram can be what the comment on glances says. *a is then what the socket would
 * have said.
 */
static bool as_before(const struct vb_udp_receiver *r, const union vb_udp_address *from, bool ipv4,
		      uint32_t bytes, struct arrival *a)
{
	const uint8_t *data = r->datagram[0];
	const struct vb_opcode *o = vb_opcode_find(*data);
	uint32_t rest = VB_BTH_BYTES + VB_AETH_BYTES + VB_ICRC_BYTES;
	uint8_t source[16];

	vb_udp_gid_of(from, source);
	*a = r->known[ipv4];
	if (!o || o->service == VB_SERVICE_UD || memcmp(source, a->path.sgid, 16) ||
	    ntohs(ipv4 ? from->v4.sin_port : from->v6.sin6_port) != a->flow.source_port)
		return false;
	a->checked = true;
	a->segment = bytes - rest;
	if (bytes >= 2 * rest && is_ack(data + a->segment))
		return icrc_as_ours(&a->flow, data, a->segment, 0) &&
		       icrc_as_ours(&a->flow, data + a->segment, rest, 1);
	a->segment = 0;
	return icrc_as_ours(&a->flow, data, bytes, 0);
}

/* As peek(), or 2: the socket must be asked more. */
static int glance(struct vb_udp_receiver *r, int fd, bool ipv4, vb_udp_sink sink, void *arg)
{
	union vb_udp_address from;
	socklen_t length = sizeof(from);
	struct arrival a;
	ssize_t n;

	if (r->glance_rest || !r->known[ipv4].flow.source_port) {
		r->glance_rest -= r->glance_rest > 0;
		return 2;
	}
	n = vb_sys_recvfrom(fd, r->datagram[0], GLANCE_BYTES, MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC,
			    &from.any, &length);
	if (n < 0)
		return -1;
	if (n > GLANCE_BYTES || n < (ssize_t)VB_PACKET_LEAST ||
	    !as_before(r, &from, ipv4, (uint32_t)n, &a)) {
		r->glance_rest = GLANCE_REST;
		return 2;
	}
	r->length = (uint32_t)n;
	r->peeked.fd = fd;
	r->peeked.bytes = (uint32_t)n;
	datagram_in(r, &a, r->datagram[0], (uint32_t)n, sink, arg);
	return 1;
}

/* Looks at a datagram and hands on what is in it. 1, 0 or -1, as recvmmsg(2). */
static int peek(struct vb_udp_receiver *r, int fd, bool ipv4, vb_udp_sink sink, void *arg)
{
	int n = glance(r, fd, ipv4, sink, arg);

	if (n == 2) {
		n = vb_sys_recvmmsg(fd, r->message, 1, MSG_DONTWAIT | MSG_PEEK);
		if (n <= 0)
			return n;
		r->peeked.fd = fd;
		r->peeked.bytes = r->message[0].msg_len;
		message_in(r, 0, ipv4, sink, arg);
	}
	if (n < 0)
		return n;
	r->owed[ipv4] = r->peeked.fd >= 0;
	r->peeked.fd = -1;
	return 1;
}

static void owed_take(struct vb_udp_receiver *r, int fd, bool ipv4)
{
	r->peeked.fd = fd;
	if (r->owed[ipv4])
		(void)vb_sys_recv(fd, NULL, 0, MSG_DONTWAIT | MSG_TRUNC);
	r->peeked.fd = -1;
	r->owed[ipv4] = false;
}

static int peek_batch(struct vb_udp_receiver *r, int fd, bool ipv4, vb_udp_sink sink, void *arg)
{
	int most = (int)batch(r), n = 0, more;

	do {
		more = peek(r, fd, ipv4, sink, arg);
		n += more > 0;
		owed_take(r, fd, ipv4);
	} while (more > 0 && r->peeked.writes && n < most);
	return n ? n : more;
}

static int read_batch(struct vb_udp_receiver *r, int fd, bool ipv4, vb_udp_sink sink, void *arg)
{
	int n = vb_sys_recvmmsg(fd, r->message, batch(r), MSG_DONTWAIT);

	for (int i = 0; i < n; i++)
		message_in(r, i, ipv4, sink, arg);
	return n;
}

static int result(struct vb_udp_receiver *r, int n)
{
	if (n < 0) {
		r->streak = 0;
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	}
	r->streak++;
	return n;
}

int vb_udp_look(struct vb_udp_receiver *r, int fd, bool ipv4, vb_udp_sink sink, void *arg)
{
	owed_take(r, fd, ipv4);
	return result(r, peek(r, fd, ipv4, sink, arg));
}

bool vb_udp_is_calm(const struct vb_udp_receiver *r)
{
	return r->streak < STREAM;
}

bool vb_udp_owed(const struct vb_udp_receiver *r, bool ipv4)
{
	return r->owed[ipv4];
}

void vb_udp_forgive(struct vb_udp_receiver *r, bool ipv4)
{
	r->owed[ipv4] = false;
}

int vb_udp_receive(struct vb_udp_receiver *r, int fd, bool ipv4, vb_udp_sink sink, void *arg)
{
	owed_take(r, fd, ipv4);
	int n = r->peeked.writes ? peek_batch(r, fd, ipv4, sink, arg)
				 : read_batch(r, fd, ipv4, sink, arg);

	return result(r, n);
}
