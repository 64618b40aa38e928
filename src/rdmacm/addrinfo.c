/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_getaddrinfo(3), rdma_freeaddrinfo(3). One entry: the first that the resolver gives. */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/address.h"
#include "rdmacm/addrinfo.h"
#include "rdmacm/devices.h"
#include "rdmacm/face.h"

enum { KNOWN_FLAGS = RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY };

/* The type of queue pair, the port space and the type of socket follow from each other. */
static void complete(struct rdma_addrinfo *info)
{
	if (!info->ai_qp_type) {
		info->ai_qp_type = info->ai_port_space == RDMA_PS_UDP ||
						   info->ai_port_space == RDMA_PS_IPOIB
					   ? IBV_QPT_UD
					   : IBV_QPT_RC;
	}
	if (!info->ai_port_space)
		info->ai_port_space = info->ai_qp_type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
}

static struct addrinfo hints_of(const struct rdma_addrinfo *info, int flags)
{
	struct addrinfo hints = {
		.ai_family = info->ai_family,
		.ai_socktype = info->ai_qp_type == IBV_QPT_UD ? SOCK_DGRAM : SOCK_STREAM,
		.ai_protocol = info->ai_qp_type == IBV_QPT_UD ? IPPROTO_UDP : IPPROTO_TCP,
	};

	if (flags & RAI_PASSIVE)
		hints.ai_flags |= AI_PASSIVE;
	if (flags & RAI_NUMERICHOST)
		hints.ai_flags |= AI_NUMERICHOST;
	return hints;
}

static int copy_address(const struct sockaddr *from, socklen_t length, struct sockaddr **to,
			socklen_t *to_length)
{
	if (!from || !length)
		return 0;
	*to = calloc(1, length > sizeof(struct sockaddr_storage) ? length
								 : sizeof(struct sockaddr_storage));
	if (!*to)
		return vb_cma_refuse_memory("getaddrinfo");
	memcpy(*to, from, length);
	*to_length = length;
	return 0;
}

static int copy_name(const char *from, char **to)
{
	if (!from)
		return 0;
	*to = strdup(from);
	return *to ? 0 : vb_cma_refuse_memory("getaddrinfo");
}

/* 0, a negative code of getaddrinfo(3), or -errno in *err. */
static int look_up(const char *node, const char *service, int flags, struct rdma_addrinfo *info,
		   int *err)
{
	struct addrinfo hints = hints_of(info, flags), *found = NULL;
	int code = getaddrinfo(node, service, &hints, &found);

	if (code == EAI_SYSTEM) {
		*err = -errno;
		return 0;
	}
	if (code)
		return code;
	info->ai_family = found->ai_family;
	if (flags & RAI_PASSIVE) {
		*err = copy_address(found->ai_addr, found->ai_addrlen, &info->ai_src_addr,
				    &info->ai_src_len);
		if (!*err)
			*err = copy_name(found->ai_canonname, &info->ai_src_canonname);
	} else {
		*err = copy_address(found->ai_addr, found->ai_addrlen, &info->ai_dst_addr,
				    &info->ai_dst_len);
		if (!*err)
			*err = copy_name(found->ai_canonname, &info->ai_dst_canonname);
	}
	freeaddrinfo(found);
	return 0;
}

/* What the hints say and the resolver did not. */
static int copy_hints(const struct rdma_addrinfo *hints, bool looked_up, struct rdma_addrinfo *info)
{
	int err = 0;

	if (!info->ai_src_len)
		err = copy_address(hints->ai_src_addr, hints->ai_src_len, &info->ai_src_addr,
				   &info->ai_src_len);
	if (!err && !looked_up && !info->ai_dst_len)
		err = copy_address(hints->ai_dst_addr, hints->ai_dst_len, &info->ai_dst_addr,
				   &info->ai_dst_len);
	if (!err && !info->ai_family && info->ai_dst_addr)
		info->ai_family = info->ai_dst_addr->sa_family;
	if (!err && !info->ai_family && info->ai_src_addr)
		info->ai_family = info->ai_src_addr->sa_family;
	return err;
}

/*
 * A loopback address to listen on becomes the address that it means to clients of this host
 * (rdma_resolve_addr(3)). Programs that take addresses for names of devices leave loopback ones out,
 * and their port with them (libfabric's verbs provider listens on any port then). Where no device has
 * an address of the family, it stays.
 */
static void name_device(const struct rdma_addrinfo *info)
{
	struct sockaddr *addr = info->ai_src_addr;
	struct vb_cma_place place;

	if (!(info->ai_flags & RAI_PASSIVE) || !addr || !vb_cma_address_is_loopback(addr) ||
	    vb_cma_place_first(addr->sa_family == AF_INET, &place))
		return;
	/* There is room for any address (copy_address). */
	vb_cma_address_make(addr->sa_family, &place.gid, place.ifindex, vb_cma_address_port(addr),
			    (struct sockaddr_storage *)(void *)addr);
	vb_cma_place_put(&place);
}

int vb_cma_addrinfo_copy_hints(const struct rdma_addrinfo *hints, struct rdma_addrinfo *copy)
{
	int err = copy_address(hints->ai_src_addr, hints->ai_src_len, &copy->ai_src_addr,
			       &copy->ai_src_len);

	if (!err)
		err = copy_address(hints->ai_dst_addr, hints->ai_dst_len, &copy->ai_dst_addr,
				   &copy->ai_dst_len);
	copy->ai_flags = hints->ai_flags;
	copy->ai_family = hints->ai_family;
	copy->ai_qp_type = hints->ai_qp_type;
	copy->ai_port_space = hints->ai_port_space;
	return err;
}

int vb_cma_addrinfo_check(const char *node, const char *service, const struct rdma_addrinfo *hints)
{
	if (!node && !service && !hints)
		return vb_cma_refuse_null("getaddrinfo", "each of node, service and hints");
	if (hints && hints->ai_flags & RAI_SA)
		return vb_refuse(EOPNOTSUPP, VB_REASON_UNSUPPORTED,
				 "getaddrinfo: RAI_SA: RoCE has no subnet manager");
	return vb_cma_devices_exist();
}

int vb_cma_addrinfo_make(const char *node, const char *service, const struct rdma_addrinfo *hints,
			 struct rdma_addrinfo **result, int *code)
{
	static const struct rdma_addrinfo none;
	const struct rdma_addrinfo *wish = hints ? hints : &none;
	struct rdma_addrinfo *info;
	int err = 0;

	*code = 0;
	info = calloc(1, sizeof(*info));
	if (!info)
		return vb_cma_refuse_memory("getaddrinfo");
	info->ai_flags = wish->ai_flags & RAI_PASSIVE;
	info->ai_family = wish->ai_family;
	info->ai_qp_type = wish->ai_qp_type;
	info->ai_port_space = wish->ai_port_space;
	complete(info);
	if (node || service)
		*code = look_up(node, service, wish->ai_flags & KNOWN_FLAGS, info, &err);
	if (!err && !*code)
		err = copy_hints(wish, node || service, info);
	if (!err && !*code)
		name_device(info);
	if (err || *code)
		rdma_freeaddrinfo(info);
	else
		*result = info;
	return err;
}

VB_EXPORT int rdma_getaddrinfo(const char *node, const char *service,
			       const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *made = NULL;
	int code = 0, err;

	err = res ? vb_cma_addrinfo_check(node, service, hints)
		  : vb_cma_refuse_null("getaddrinfo", "res");
	if (!err)
		err = vb_cma_addrinfo_make(node, service, hints, &made, &code);
	if (err || code)
		return err ? vb_cma_answer(err) : code;
	*res = made;
	return 0;
}

VB_EXPORT void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	struct rdma_addrinfo *next;

	for (; res; res = next) {
		next = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
	}
}
