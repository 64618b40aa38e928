/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Multicast datagrams: both sides attach a queue pair to the group, then each sends to it in its
 * turn. The kernel's device takes what the IP layer accepts, and joins no group there itself
 * (librdmacm does that for programs): here a socket does it for it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exchange.h"

enum { MESSAGES = 20, SLOT = 5000, MULTICAST_QPN = 0xffffff };

static bool is_ipv4(const union ibv_gid *gid)
{
	return gid->raw[10] == 0xff && gid->raw[11] == 0xff && !gid->raw[0];
}

static union ibv_gid group_of(const struct exchange *x)
{
	union ibv_gid group;

	inet_pton(AF_INET6, is_ipv4(&x->gid) ? "::ffff:239.18.2.3" : "ff0e::1802:3", group.raw);
	return group;
}

/* The interface that has the device's address. */
static unsigned int interface_of(const struct exchange *x)
{
	bool ipv4 = is_ipv4(&x->gid);
	unsigned int index = 0;
	struct ifaddrs *list;

	if (getifaddrs(&list))
		fail("getifaddrs: %s", strerror(errno));
	for (struct ifaddrs *i = list; i && !index; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != (ipv4 ? AF_INET : AF_INET6))
			continue;
		if (ipv4 ? !memcmp(&((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr,
				   x->gid.raw + 12, 4)
			 : !memcmp(&((struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr,
				   x->gid.raw, 16))
			index = if_nametoindex(i->ifa_name);
	}
	freeifaddrs(list);
	if (!index)
		fail("no interface has the device's address");
	return index;
}

static int join(const struct exchange *x, const union ibv_gid *group)
{
	struct group_req request = {.gr_interface = interface_of(x)};
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	bool ipv4 = is_ipv4(&x->gid);
	int fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM, 0);

	memcpy(&v4.sin_addr, group->raw + 12, 4);
	memcpy(&v6.sin6_addr, group->raw, 16);
	if (ipv4)
		memcpy(&request.gr_group, &v4, sizeof(v4));
	else
		memcpy(&request.gr_group, &v6, sizeof(v6));
	if (fd < 0 || setsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, MCAST_JOIN_GROUP, &request,
				 sizeof(request)))
		fail("joining the group: %s", strerror(errno));
	return fd;
}

static uint32_t length_of(const struct exchange *x, uint32_t i)
{
	return i == MESSAGES - 1 ? x->mtu : i * 37 % x->mtu;
}

static void post_receives(struct exchange *x, struct end *e)
{
	uint8_t *sink = area_of(x, AREA_SINK);

	for (unsigned int i = 0; i < 2 * MESSAGES; i++) {
		struct ibv_sge sge = {(uintptr_t)sink + i * SLOT, SLOT, x->mr->lkey};
		struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

		must(ibv_post_recv(e->qp, &wr, &bad), "ibv_post_recv");
	}
}

static void send_all(struct exchange *x, struct end *e, struct ibv_ah *ah)
{
	uint8_t *source = area_of(x, AREA_SOURCE);

	for (uint32_t i = 0; i < MESSAGES; i++) {
		struct ibv_sge sge = {(uintptr_t)source, length_of(x, i), x->mr->lkey};
		struct ibv_send_wr wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND_WITH_IMM,
					 .imm_data = htonl(i)},
				   *bad;
		struct ibv_wc wc;

		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = MULTICAST_QPN;
		wr.wr.ud.remote_qkey = UD_QKEY;
		pattern_fill(source, length_of(x, i), x->seed, i);
		must(ibv_post_send(e->qp, &wr, &bad), "ibv_post_send");
		/*
		 * What is sent comes back to a member that sent it, too (IBA 10.5.2.1): not looked
		 * at here.
		 */
		do
			wc = completion(x, "multicast send");
		while (wc.opcode & IBV_WC_RECV);
		if (wc.status)
			fail("multicast send: %s", ibv_wc_status_str(wc.status));
	}
}

static unsigned int receive_all(struct exchange *x, const union ibv_gid *group)
{
	unsigned int got = 0;
	struct ibv_wc wc;

	while (got < MESSAGES && completion_within(x, &wc, x->lossy ? 1 : 5)) {
		const uint8_t *grh = area_of(x, AREA_SINK) + wc.wr_id * SLOT;
		uint32_t i = ntohl(wc.imm_data);

		if (wc.status || i >= MESSAGES || wc.byte_len != GRH_BYTES + length_of(x, i))
			fail("multicast: %s, message %u, %u bytes", ibv_wc_status_str(wc.status), i,
			     wc.byte_len);
		if (memcmp(grh + (is_ipv4(group) ? 36 : 24), group->raw + (is_ipv4(group) ? 12 : 0),
			   is_ipv4(group) ? 4 : 16))
			fail("multicast: message %u was not for the group", i);
		if (pattern_check(grh + GRH_BYTES, length_of(x, i), x->seed, i) != length_of(x, i))
			fail("multicast: message %u is wrong", i);
		got++;
	}
	if (got < (x->lossy ? MESSAGES / 2 : MESSAGES))
		fail("multicast: %u of %d messages came", got, MESSAGES);
	return got;
}

void test_multicast(struct exchange *x)
{
	union ibv_gid group = group_of(x);
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	int fd = strncmp(x->device, "rxe", 3) ? -1 : join(x, &group);
	unsigned int got = 0;
	struct ibv_ah *ah;

	attr.grh.dgid = group;
	attr.grh.sgid_index = (uint8_t)x->gid_index;
	attr.grh.hop_limit = 1;
	ah = ibv_create_ah(x->pd, &attr);
	if (!ah)
		fail("ibv_create_ah: %s", strerror(errno));
	for (int turn = 0; turn < 2; turn++) {
		/*
		 * Each turn has queue pairs of its own, so that no receive holds what the last turn
		 * sent.
		 */
		struct end e = end_connect(x, &ud_profile);

		must(ibv_attach_mcast(e.qp, &group, 0), "ibv_attach_mcast");
		post_receives(x, &e);
		barrier(x, "multicast");
		if ((turn == 0) == (x->server != NULL))
			send_all(x, &e, ah);
		else
			got = receive_all(x, &group);
		barrier(x, "multicast");
		must(ibv_detach_mcast(e.qp, &group, 0), "ibv_detach_mcast");
		end_close(x, &e);
	}
	must(ibv_destroy_ah(ah), "ibv_destroy_ah");
	if (fd >= 0)
		close(fd);
	say("ok multicast: %u of %d messages came here", got, MESSAGES);
}
