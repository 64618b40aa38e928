/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A network namespace for a test. */
#include "unit/udp/net.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "udp/address.h"

#define SETTLE_PORT 6000

static void stay_on_processor(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		abort();
}

void net_enter(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int flags = CLONE_NEWNET | (geteuid() ? CLONE_NEWUSER : 0);

	if (unshare(flags)) {
		fprintf(stderr, "a network namespace may not be created here: %s\n",
			strerror(errno));
		exit(77);
	}
	stay_on_processor();
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request))
		abort();
	close(fd);
}

void net_gid(bool ipv4, uint8_t last, uint8_t gid[16])
{
	memset(gid, 0, 16);
	if (ipv4) {
		gid[10] = gid[11] = 0xff;
		gid[12] = 127;
	}
	gid[15] = ipv4 ? last : 1;
}

void net_settle(void)
{
	int in = net_bound(true, SETTLE_PORT);
	int out = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct pollfd p = {.fd = in, .events = POLLIN};
	union vb_udp_address to;
	uint8_t gid[16];

	net_gid(true, 1, gid);
	socklen_t length = vb_udp_address_of(&to, gid, SETTLE_PORT, 0);

	if (out < 0 || sendto(out, "", 1, 0, &to.any, length) != 1 || poll(&p, 1, 10000) != 1)
		abort();
	close(in);
	close(out);
}

int net_bound(bool ipv4, uint16_t port)
{
	union vb_udp_address a = {.any.sa_family = ipv4 ? AF_INET : AF_INET6};
	int fd = socket(a.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	a.v4.sin_port = htons(port); /* at the same place in both */
	if (fd < 0 || bind(fd, &a.any, ipv4 ? sizeof(a.v4) : sizeof(a.v6)))
		abort();
	return fd;
}
