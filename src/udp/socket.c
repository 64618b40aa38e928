/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening the link's sockets, with the options that the rest of the room relies on. */
#include "udp/socket.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/reason.h"
#include "base/sys.h"
#include "transport/run.h"
#include "udp/address.h"
#include "udp/holder.h"
#include "wire/packet.h"

/* Some C libraries' headers are older than this option. */
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif
#ifndef IPV6_AUTOFLOWLABEL
#define IPV6_AUTOFLOWLABEL 70
#endif
#ifndef IPV6_FLOWINFO_SEND
#define IPV6_FLOWINFO_SEND 33
#endif
#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif

#define BUFFER_WANTED (16 << 20)
#define SENDER_TRIES  64

/* Sets an option without which only speed or a detail is lost, not correctness. */
static void want(int fd, int level, int name, int value)
{
	(void)setsockopt(fd, level, name, &value, sizeof(value));
}

static int need(int fd, int level, int name, int value, const char *what)
{
	int err;

	if (!setsockopt(fd, level, name, &value, sizeof(value)))
		return 0;
	err = errno;
	return vb_refuse(err, VB_REASON_SYSTEM, "udp socket: %s: %s", what, strerror(err));
}

static int open_any(bool ipv4)
{
	int fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err = errno;

	if (fd < 0)
		return vb_refuse(err, VB_REASON_SYSTEM, "udp socket for IPv%d: %s", ipv4 ? 4 : 6,
				 strerror(err));
	return fd;
}

static int bind_wildcard(int fd, bool ipv4, uint16_t port)
{
	union vb_udp_address a = {0};

	if (ipv4) {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons(port);
	} else {
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_port = htons(port);
	}
	return bind(fd, &a.any, ipv4 ? sizeof(a.v4) : sizeof(a.v6)) ? -errno : 0;
}

/*
 * Sets a buffer size and returns the granted one: with CAP_NET_ADMIN any size, otherwise up to
 * net.core.rmem_max (or wmem_max).
 */
static uint32_t set_buffer(int fd, int forced, int plain, int wanted)
{
	uint32_t granted = 0;
	socklen_t length = sizeof(granted);

	if (setsockopt(fd, SOL_SOCKET, forced, &wanted, sizeof(wanted)))
		want(fd, SOL_SOCKET, plain, wanted);
	if (getsockopt(fd, SOL_SOCKET, plain, &granted, &length))
		return 0;
	return granted;
}

static int buffer_wanted(void)
{
	const char *text = secure_getenv("VERBATIM_UDP_BUFFER");
	long bytes = text ? strtol(text, NULL, 10) : 0;

	/* The kernel doubles the size that it is asked for. */
	return bytes > 0 && bytes < 1l << 30 ? (int)(bytes / 2) : BUFFER_WANTED;
}

static int set_ipv4(int fd)
{
	int err = need(fd, IPPROTO_IP, IP_PKTINFO, 1, "IP_PKTINFO");

	/*
	 * Without this option the socket gets every group that any socket of the host has joined
	 * (ip(7)).
	 */
	if (!err)
		err = need(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0, "IP_MULTICAST_ALL");
	want(fd, IPPROTO_IP, IP_RECVTOS, 1);
	want(fd, IPPROTO_IP, IP_RECVTTL, 1);
	return err;
}

static int set_ipv6(int fd)
{
	int err = need(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1, "IPV6_RECVPKTINFO");

	want(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
	want(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
	want(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
	want(fd, IPPROTO_IPV6, IPV6_FLOWINFO, 1);
	/* Other implementations leave the UDP checksum out, on IPv6 as well (RFC 6935). */
	want(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
	return err;
}

/* What a receiving socket must have set, and what it should have. */
static int set_receiver(int fd, bool ipv4, uint32_t *buffer)
{
	int err = ipv4 ? set_ipv4(fd) : set_ipv6(fd);

	if (err)
		return err;
	want(fd, IPPROTO_UDP, UDP_GRO, 1);
	*buffer = set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, buffer_wanted());
	return 0;
}

int vb_udp_refuse_port(bool ipv4, const char *cure)
{
	char holder[160];

	return vb_refuse(EADDRINUSE, VB_REASON_PORT_TAKEN, "udp port %u (IPv%d) is held by %s%s%s",
			 VB_UDP_PORT, ipv4 ? 4 : 6,
			 vb_udp_holder(ipv4, VB_UDP_PORT, holder, sizeof(holder)),
			 *cure ? "; " : "", cure);
}

static int bind_port(int fd, bool ipv4)
{
	int err = bind_wildcard(fd, ipv4, VB_UDP_PORT);

	if (err && err != -EADDRINUSE)
		return vb_refuse(-err, VB_REASON_SYSTEM, "udp port %u (IPv%d): %s", VB_UDP_PORT,
				 ipv4 ? 4 : 6, strerror(-err));
	return err;
}

int vb_udp_open_receiver(bool ipv4, uint32_t *buffer)
{
	int fd = open_any(ipv4);
	int err;

	if (fd < 0)
		return fd;
	err = need(fd, SOL_SOCKET, SO_REUSEPORT, 1, "SO_REUSEPORT");
	if (!err && !ipv4)
		err = need(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1, "IPV6_V6ONLY");
	if (!err)
		err = set_receiver(fd, ipv4, buffer);
	if (!err)
		err = bind_port(fd, ipv4);
	if (err) {
		vb_sys_close(fd);
		return err;
	}
	return fd;
}

static int int_option(int fd, int level, int name)
{
	int value = -1;
	socklen_t length = sizeof(value);

	return getsockopt(fd, level, name, &value, &length) ? -1 : value;
}

/* Whether the address is the wildcard address with the port. */
static bool is_wildcard(const union vb_udp_address *a, bool ipv4)
{
	if (ipv4)
		return a->any.sa_family == AF_INET && a->v4.sin_port == htons(VB_UDP_PORT) &&
		       a->v4.sin_addr.s_addr == htonl(INADDR_ANY);
	return a->any.sa_family == AF_INET6 && a->v6.sin6_port == htons(VB_UDP_PORT) &&
	       IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr);
}

/* NULL, or why the socket is of no use for receiving. */
static const char *receiver_defect(int fd, bool ipv4)
{
	union vb_udp_address own = {0}, peer;
	socklen_t length = sizeof(own), peer_length = sizeof(peer), filter = 0;

	if (int_option(fd, SOL_SOCKET, SO_DOMAIN) != (ipv4 ? AF_INET : AF_INET6) ||
	    int_option(fd, SOL_SOCKET, SO_TYPE) != SOCK_DGRAM ||
	    int_option(fd, SOL_SOCKET, SO_PROTOCOL) != IPPROTO_UDP)
		return "it is no UDP socket of this family";
	if (getsockname(fd, &own.any, &length) || !is_wildcard(&own, ipv4))
		return "it is not bound to the port at the wildcard address";
	if (!ipv4 && int_option(fd, IPPROTO_IPV6, IPV6_V6ONLY) != 1)
		return "it takes IPv4 as well";
	if (!getpeername(fd, &peer.any, &peer_length))
		return "it is connected";
	/* The length is that of the filter, in instructions (socket(7)). */
	if (getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, NULL, &filter) || filter ||
	    int_option(fd, SOL_SOCKET, SO_LOCK_FILTER) > 0)
		return "it has a filter";
	return NULL;
}

int vb_udp_take_receiver(int fd, bool ipv4, uint32_t *buffer, const char **defect)
{
	*defect = receiver_defect(fd, ipv4);
	return *defect ? -EBADMSG : set_receiver(fd, ipv4, buffer);
}

/*
 * What leaves a socket leaves it in the name of the process that opened it, for firewalls that
 * judge by user or by control group. ENOTCONN is how the kernel says that it is done.
 */
void vb_udp_mute(int fd)
{
	(void)shutdown(fd, SHUT_WR);
}

void vb_udp_leave(int fd, bool ipv4)
{
	union vb_udp_address nobody = {0};

	/*
	 * A connected socket gets packets of its peer alone. The peer here is this host's discard
	 * port, which sends none.
	 */
	if (ipv4) {
		nobody.v4.sin_family = AF_INET;
		nobody.v4.sin_port = htons(9);
		nobody.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	} else {
		nobody.v6.sin6_family = AF_INET6;
		nobody.v6.sin6_port = htons(9);
		nobody.v6.sin6_addr = in6addr_loopback;
	}
	(void)vb_sys_connect(fd, &nobody.any, ipv4 ? sizeof(nobody.v4) : sizeof(nobody.v6));
}

/* No thread reads from a sender: packets that arrive there are dropped at once. */
static void drop_incoming(int fd)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = {.len = 1, .filter = &nothing};

	(void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

/*
 * Packets leave whole, up to the interface's MTU (ip(7), ipv6(7)). PROBE and not DO: what the kernel
 * has cached for the route does not count, because any host can forge the ICMP message that lowers
 * it, and a queue pair has its path MTU for life.
 */
static int send_whole(int fd, bool ipv4)
{
	return ipv4 ? need(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, "IP_MTU_DISCOVER")
		    : need(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE,
			   "IPV6_MTU_DISCOVER");
}

static int set_sender(int fd, bool ipv4)
{
	drop_incoming(fd);
	(void)set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, BUFFER_WANTED);
	if (ipv4) {
		want(fd, IPPROTO_IP, IP_MULTICAST_LOOP, 1);
		return send_whole(fd, ipv4);
	}
	want(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1);
	want(fd, IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0);
	want(fd, IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1);
	int err = need(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1, "IPV6_V6ONLY");

	return err ? err : send_whole(fd, ipv4);
}

static int bind_sender(int fd, const union vb_udp_address *from, uint16_t *port)
{
	bool ipv4 = from->any.sa_family == AF_INET;
	union vb_udp_address at = *from;
	uint32_t span = 0x10000 - VB_UDP_SOURCE_LEAST;
	uint32_t first = *port % span;
	int err = 0;

	for (uint32_t i = 0; i < SENDER_TRIES; i++) {
		*port = (uint16_t)(VB_UDP_SOURCE_LEAST + (first + i) % span);
		if (ipv4)
			at.v4.sin_port = htons(*port);
		else
			at.v6.sin6_port = htons(*port);
		err = bind(fd, &at.any, ipv4 ? sizeof(at.v4) : sizeof(at.v6)) ? -errno : 0;
		if (err != -EADDRINUSE)
			break;
	}
	return err ? vb_refuse(-err, VB_REASON_SYSTEM, "no udp source port: %s", strerror(-err))
		   : 0;
}

static int finish_sender(int fd, int err, const union vb_udp_address *from, uint16_t *port)
{
	if (!err)
		err = bind_sender(fd, from, port);
	if (!err)
		return fd;
	vb_sys_close(fd);
	return err;
}

int vb_udp_open_sender(bool ipv4, uint16_t *port)
{
	union vb_udp_address any = {.any.sa_family = ipv4 ? AF_INET : AF_INET6};
	int fd = open_any(ipv4);

	return fd < 0 ? fd : finish_sender(fd, set_sender(fd, ipv4), &any, port);
}

static int set_path(int fd, bool ipv4, const struct vb_path *path)
{
	int level = ipv4 ? IPPROTO_IP : IPPROTO_IPV6, err = 0;

	if (path->hop_limit != VB_HOP_LIMIT_ROUTE)
		err = need(fd, level, ipv4 ? IP_TTL : IPV6_UNICAST_HOPS, path->hop_limit,
			   "hop limit");
	if (!err && path->traffic_class)
		err = need(fd, level, ipv4 ? IP_TOS : IPV6_TCLASS, path->traffic_class,
			   "traffic class");
	return err;
}

int vb_udp_open_bound_sender(const struct vb_path *path, uint32_t ifindex, uint16_t *port)
{
	bool ipv4 = vb_udp_is_ipv4(path->sgid);
	union vb_udp_address from;
	int fd = open_any(ipv4);

	if (fd < 0)
		return fd;
	(void)vb_udp_address_of(&from, path->sgid, 0, ifindex);
	int err = set_sender(fd, ipv4);

	if (!err)
		err = set_path(fd, ipv4, path);
	return finish_sender(fd, err, &from, port);
}
