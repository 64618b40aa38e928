/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Network namespaces, and the ip(8) that changes what is in them. */
#include "support/network.h"

#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"

static void loopback_up(void)
{
	struct ifreq lo = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && !ioctl(fd, SIOCGIFFLAGS, &lo));
	lo.ifr_flags |= IFF_UP;
	CHECK_ZERO(ioctl(fd, SIOCSIFFLAGS, &lo));
	close(fd);
	unsetenv("VB_TEST_DEVICE");
}

void network_leave(void)
{
	if (geteuid() != 0 || unshare(CLONE_NEWNET))
		SKIP("a network namespace and a second user need root");
	loopback_up();
}

bool ip(const char *format, ...)
{
	char command[400] = "ip ";
	va_list args;
	int status;

	va_start(args, format);
	vsnprintf(command + 3, sizeof(command) - 3, format, args);
	va_end(args);
	status = system(command);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* An ordinary user is root of a user namespace of its own, or ip(8) would lose the rights there. */
static bool own_namespaces(void)
{
	unsigned int uid = (unsigned int)geteuid();
	FILE *map;

	if (!unshare(CLONE_NEWNET))
		return true;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	map = fopen("/proc/self/uid_map", "w");
	if (!map)
		return false;
	fprintf(map, "0 %u 1\n", uid);
	return !fclose(map);
}

void network_with_pair(void)
{
	if (!own_namespaces())
		SKIP("no network namespace of its own: %s", strerror(errno));
	if (!ip("link set lo up") || !ip("link add v0 type veth peer name v1"))
		SKIP("ip(8) cannot make a veth pair here");
	CHECK(ip("link set v0 addrgenmode none") && ip("link set v1 addrgenmode none"));
	CHECK(ip("addr add 192.0.2.1/24 dev v0"));
	CHECK(ip("link set v0 up") && ip("link set v1 up"));
}

void network_apart(void)
{
	if (own_namespaces())
		loopback_up();
}
