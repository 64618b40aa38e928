/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Taking a port for an id. */
#include "rdmacm/port.h"

#include <arpa/inet.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <string.h>

#include "base/sys.h"
#include "gsi/gsi.h"
#include "rdmacm/address.h"
#include "rdmacm/face.h"
#include "rdmacm/id.h"

enum { FIRST_FREE = 1024 }; /* ports below need CAP_NET_BIND_SERVICE */

static bool may_have_low_ports(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	return !syscall(SYS_capget, &header, data) &&
	       data[0].effective & (1u << CAP_NET_BIND_SERVICE);
}

/* net.ipv6.bindv6only is the default of RDMA_OPTION_ID_AFONLY. */
static bool v6_only_by_default(void)
{
	char value = '0';
	int fd = vb_sys_open("/proc/sys/net/ipv6/bindv6only", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		(void)!vb_sys_read(fd, &value, 1);
		vb_sys_close(fd);
	}
	return value == '1';
}

static void set_remote(struct vb_gsi_binding *binding, const struct sockaddr *remote)
{
	union ibv_gid gid;

	if (!remote)
		return;
	gid = vb_cma_address_gid(remote);
	memcpy(binding->remote, gid.raw, sizeof(binding->remote));
	binding->remote_port = ntohs(vb_cma_address_port(remote));
}

static int refuse(int err, const struct vb_cma_id *id, const struct sockaddr *addr,
		  const char *call)
{
	char text[VB_CMA_ADDRESS_TEXT];

	return vb_refuse(-err, VB_REASON_CMA_PORT, "%s: port %u of %s in the port space 0x%x: %s",
			 call, ntohs(vb_cma_address_port(addr)), vb_cma_address_text(addr, text),
			 id->pub.ps, strerror(-err));
}

int vb_cma_port_take(struct vb_cma_id *id, struct sockaddr *addr, const struct sockaddr *remote)
{
	struct vb_gsi_binding binding = {
		.space = (uint16_t)id->pub.ps,
		.port = ntohs(vb_cma_address_port(addr)),
		.scope = vb_cma_address_scope(addr),
		.reuse = id->options.reuse,
	};
	union ibv_gid gid = vb_cma_address_gid(addr);
	int err;

	if (binding.port && binding.port < FIRST_FREE && !may_have_low_ports())
		return refuse(-EACCES, id, addr, "bind_addr");
	if (addr->sa_family == AF_INET)
		id->options.afonly = true;
	else if (!id->options.afonly_set)
		id->options.afonly = v6_only_by_default();
	binding.afonly = id->options.afonly;
	memcpy(binding.address, gid.raw, sizeof(binding.address));
	set_remote(&binding, remote);
	err = vb_gsi_bind(&binding, &id->port);
	if (err)
		return refuse(err, id, addr, "bind_addr");
	vb_cma_address_set_port(addr, htons(binding.port));
	return 0;
}

int vb_cma_port_listen(struct vb_cma_id *id)
{
	int err = vb_gsi_listen(id->port);

	return err ? refuse(err, id, &id->pub.route.addr.src_addr, "listen") : 0;
}

int vb_cma_port_change(struct vb_cma_id *id, const struct sockaddr *remote)
{
	struct vb_gsi_binding binding = {0};

	if (!id->port)
		return 0;
	set_remote(&binding, remote);
	return vb_gsi_rebind(id->port, binding.remote, binding.remote_port, id->options.reuse,
			     id->options.afonly);
}

void vb_cma_port_release(struct vb_cma_id *id)
{
	if (id->port)
		vb_gsi_unbind(id->port);
	id->port = 0;
}
