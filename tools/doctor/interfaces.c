/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Network interfaces: a device stands for each that is up and has an address. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "doctor/checks.h"
#include "doctor/finding.h"

/* An IP packet of RoCEv2 with the smallest path MTU: 256 bytes and all headers (IBA A17). */
#define SMALLEST_MTU 384

static bool is_address(const struct ifaddrs *a)
{
	return a->ifa_addr &&
	       (a->ifa_addr->sa_family == AF_INET || a->ifa_addr->sa_family == AF_INET6);
}

static bool has_address(const struct ifaddrs *all, const char *name)
{
	for (; all; all = all->ifa_next) {
		if (is_address(all) && !strcmp(all->ifa_name, name))
			return true;
	}
	return false;
}

static int mtu_of(const char *name)
{
	struct ifreq request = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int mtu = -1;

	if (fd < 0)
		return -1;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (!ioctl(fd, SIOCGIFMTU, &request))
		mtu = request.ifr_mtu;
	close(fd);
	return mtu;
}

/* Words separated by commas, cut off where the room ends. */
struct words {
	char text[256];
	size_t used;
};

static void add(struct words *w, const char *name, const char *why)
{
	if (w->used < sizeof(w->text))
		w->used += (size_t)snprintf(w->text + w->used, sizeof(w->text) - w->used, "%s%s%s",
					    w->used ? ", " : "", name, why);
}

static void judge(const struct ifaddrs *all, const struct ifaddrs *i, struct words *good,
		  struct words *bad)
{
	char cure[128];
	int mtu = mtu_of(i->ifa_name);

	if (!(i->ifa_flags & IFF_UP)) {
		add(bad, i->ifa_name, " is down");
	} else if (!has_address(all, i->ifa_name)) {
		add(bad, i->ifa_name, " has no address");
	} else if (mtu >= 0 && mtu < SMALLEST_MTU) {
		snprintf(cure, sizeof(cure), "ip link set %s mtu 1500 (as root)", i->ifa_name);
		finding_problem(cure, "interface %s: MTU %d is too small for any packet of RoCEv2",
				i->ifa_name, mtu);
	} else {
		if (!(i->ifa_flags & (IFF_RUNNING | IFF_LOOPBACK)))
			finding_note("connect the cable, or bring up the other end",
				     "interface %s: no carrier, so the port of its device is down",
				     i->ifa_name);
		add(good, i->ifa_name, "");
	}
}

static bool seen_before(const struct ifaddrs *all, const struct ifaddrs *i)
{
	for (; all != i; all = all->ifa_next) {
		if (!strcmp(all->ifa_name, i->ifa_name))
			return true;
	}
	return false;
}

void check_interfaces(void)
{
	struct ifaddrs *all = NULL;
	struct words good = {.used = 0};
	struct words bad = {.used = 0};

	if (getifaddrs(&all)) {
		finding_problem(
			"allow netlink sockets (AF_NETLINK) in the seccomp profile or the sandbox",
			"interfaces: the kernel gives no list: %s", strerror(errno));
		return;
	}
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (!seen_before(all, i))
			judge(all, i, &good, &bad);
	}
	freeifaddrs(all);
	if (good.used)
		finding_ok("interfaces: %s up, with an address", good.text);
	else
		finding_problem(
			"ip link set lo up (as root; in a new network namespace lo is down)",
			"interfaces: none is up and has an address, so there is no device");
	if (bad.used)
		finding_note(
			"ip link set IFACE up; ip address add ADDRESS/LENGTH dev IFACE (as root), if it is to have a device",
			"interfaces without a device: %s", bad.text);
}
