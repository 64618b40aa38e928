/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which address of this host leads to a destination. */
#include "rdmacm/source.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/sys.h"
#include "rdmacm/address.h"

enum { SOME_PORT = 4791 }; /* connect(2) wants one; nothing is sent */

static int open_socket(int family)
{
	int fd = (int)syscall(SYS_socket, family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

static int bind_socket(int fd, const struct sockaddr *addr)
{
	struct sockaddr_storage any_port = {0};

	memcpy(&any_port, addr, vb_cma_address_length(addr));
	vb_cma_address_set_port((struct sockaddr *)&any_port, 0);
	return syscall(SYS_bind, fd, &any_port, vb_cma_address_length(addr)) ? -errno : 0;
}

int vb_cma_source_check(const struct sockaddr *addr)
{
	int fd = open_socket(addr->sa_family);
	int err;

	if (fd < 0)
		return fd;
	err = bind_socket(fd, addr);
	vb_sys_close(fd);
	return err;
}

static int connect_socket(int fd, const struct sockaddr *destination)
{
	struct sockaddr_storage to = {0};

	memcpy(&to, destination, vb_cma_address_length(destination));
	vb_cma_address_set_port((struct sockaddr *)&to, htons(SOME_PORT));
	return vb_sys_connect(fd, (struct sockaddr *)&to, vb_cma_address_length(destination))
		       ? -errno
		       : 0;
}

static void use_tos(int fd, int family, uint8_t tos)
{
	int value = tos;

	if (family == AF_INET)
		(void)syscall(SYS_setsockopt, fd, IPPROTO_IP, IP_TOS, &value, sizeof(value));
	else
		(void)syscall(SYS_setsockopt, fd, IPPROTO_IPV6, IPV6_TCLASS, &value, sizeof(value));
}

int vb_cma_source_find(const struct sockaddr *bound, const struct sockaddr *destination,
		       uint8_t tos, struct sockaddr_storage *source)
{
	socklen_t length = sizeof(*source);
	int fd = open_socket(destination->sa_family);
	int err = 0;

	if (fd < 0)
		return fd;
	memset(source, 0, sizeof(*source));
	if (tos)
		use_tos(fd, destination->sa_family, tos); /* rules of routing may look at it */
	if (bound)
		err = bind_socket(fd, bound);
	if (!err)
		err = connect_socket(fd, destination);
	if (!err && syscall(SYS_getsockname, fd, source, &length))
		err = -errno;
	vb_cma_address_set_port((struct sockaddr *)source, 0);
	vb_sys_close(fd);
	return err;
}

uint32_t vb_cma_interface_mtu(uint32_t ifindex)
{
	struct ifreq request = {.ifr_ifindex = (int)ifindex};
	int fd = open_socket(AF_INET);
	uint32_t mtu = 0;

	if (fd < 0)
		return 0;
	if (!ioctl(fd, SIOCGIFNAME, &request) && !ioctl(fd, SIOCGIFMTU, &request))
		mtu = (uint32_t)request.ifr_mtu;
	vb_sys_close(fd);
	return mtu;
}
