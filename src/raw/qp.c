/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Raw packet queue pairs: their sockets, creation and end, and sending frames. raw/receive.c
 * receives.
 */
#include "raw/qp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if_arp.h>
#include <net/ethernet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "process/limits.h"
#include "base/reason.h"
#include "base/sys.h"
#include "object/context.h"
#include "engine/cq.h"
#include "device/device.h"
#include "qp/env.h"
#include "qp/qp.h"
#include "raw/private.h"
#include "raw/wq.h"
#include "wire/frame_checksum.h"
#include "host/descriptor.h"

static int refuse(const char *what, uint64_t value)
{
	return vb_refuse(EINVAL, VB_REASON_ARG, "create_qp: raw packet: %s (0x%llx)", what,
			 (unsigned long long)value);
}

/* A hash can have at most one address family and one of TCP, UDP (ibv_create_qp_ex(3)). */
static int hash_check(const struct ibv_rx_hash_conf *conf)
{
	uint64_t fields = conf->rx_hash_fields_mask;
	uint64_t ipv4 = fields & (IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4);
	uint64_t ipv6 = fields & (IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6);
	uint64_t tcp = fields & (IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP);
	uint64_t udp = fields & (IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP);

	if (conf->rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ)
		return vb_refuse(EOPNOTSUPP, VB_REASON_UNSUPPORTED,
				 "create_qp: hash function 0x%x, only Toeplitz is offered",
				 conf->rx_hash_function);
	if (conf->rx_hash_key_len != VB_TOEPLITZ_KEY || !conf->rx_hash_key)
		return refuse("a Toeplitz key has 40 bytes", conf->rx_hash_key_len);
	if (fields & ~VB_RAW_HASH_FIELDS)
		return vb_refuse(EOPNOTSUPP, VB_REASON_UNSUPPORTED,
				 "create_qp: rx_hash_fields_mask 0x%llx",
				 (unsigned long long)fields);
	if ((ipv4 && ipv6) || (tcp && udp))
		return refuse("the hash has fields that no frame has at once", fields);
	return 0;
}

static int check(const struct ibv_qp_init_attr_ex *attr)
{
	uint32_t both = IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
	uint32_t mask = attr->comp_mask & both;

	if (attr->srq)
		return refuse("no shared receive queue", 0);
	if (!mask)
		return 0;
	if (mask != both || !attr->rwq_ind_tbl)
		return refuse("indirection table and hash go together", mask);
	if (attr->cap.max_send_wr || attr->cap.max_recv_wr)
		return refuse("with an indirection table it has no queues of its own", mask);
	return hash_check(&attr->rx_hash_conf);
}

static int socket_open(void)
{
	int fd = vb_descriptor_adopt(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));

	if (fd >= 0)
		return fd;
	if (errno == EPERM || errno == EACCES)
		return vb_refuse(EPERM, VB_REASON_PERMISSION,
				 "create_qp: raw packet: a packet socket needs CAP_NET_RAW");
	return vb_refuse(vb_system_is_short(-errno) ? errno : EOPNOTSUPP, VB_REASON_SYSTEM,
			 "create_qp: raw packet: packet socket: %s", strerror(errno));
}

/*
 * Frames leave through the interface of the device. What is received is decided when a rule is
 * made.
 */
static int sender_open(struct vb_raw *raw)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = raw->ifindex};
	int fd = socket_open();

	if (fd < 0)
		return fd;
	raw->tx = fd;
	/* Protocol 0: the socket is bound and receives nothing. */
	if (bind(fd, (const struct sockaddr *)&to, sizeof(to)))
		return vb_refuse(vb_system_is_short(-errno) ? errno : ENODEV, VB_REASON_SYSTEM,
				 "create_qp: raw packet: bind: %s", strerror(errno));
	return 0;
}

static int link_find(struct vb_raw *raw, struct ibv_context *ctx)
{
	struct vb_link_state link;
	struct ifreq request = {0};

	vb_device_link(vb_context_of(ctx)->device, &link);
	raw->ifindex = link.ifindex;
	raw->mtu = link.mtu;
	memcpy(request.ifr_name, link.ifname, sizeof(request.ifr_name));
	if (ioctl(raw->rx, SIOCGIFHWADDR, &request))
		return vb_refuse(ENODEV, VB_REASON_SYSTEM, "create_qp: raw packet: %s: %s",
				 link.ifname, strerror(errno));
	raw->loopback = request.ifr_hwaddr.sa_family == ARPHRD_LOOPBACK;
	if (!raw->loopback && request.ifr_hwaddr.sa_family != ARPHRD_ETHER)
		return vb_refuse(EOPNOTSUPP, VB_REASON_UNSUPPORTED,
				 "create_qp: raw packet: %s carries no Ethernet frames",
				 link.ifname);
	memcpy(raw->mac, request.ifr_hwaddr.sa_data, sizeof(raw->mac));
	return 0;
}

static int spread_open(struct vb_raw *raw, struct ibv_context *ctx,
		       const struct ibv_qp_init_attr_ex *attr)
{
	raw->table = vb_rwq_table_get(ctx, attr->rwq_ind_tbl);
	if (!raw->table)
		return -ENOENT;
	raw->fields = attr->rx_hash_conf.rx_hash_fields_mask;
	memcpy(raw->key, attr->rx_hash_conf.rx_hash_key, sizeof(raw->key));
	return 0;
}

/* -EPERM without CAP_NET_RAW, -EOPNOTSUPP where packet sockets do not exist. */
static int open_sockets(struct vb_qp *qp, struct ibv_context *ctx,
			const struct ibv_qp_init_attr_ex *attr)
{
	struct vb_raw *raw = calloc(1, sizeof(*raw));
	int err;

	if (!raw)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "create_qp: raw packet");
	qp->own = raw;
	raw->qp = qp;
	raw->tx = -1;
	raw->strip = (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
		     (attr->create_flags & IBV_QP_CREATE_CVLAN_STRIPPING);
	raw->rx = socket_open();
	err = raw->rx < 0 ? raw->rx : link_find(raw, ctx);
	if (!err)
		err = sender_open(raw);
	if (!err && (attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE)) {
		err = spread_open(raw, ctx, attr);
		if (!err)
			qp->scq = qp->rcq = vb_rwq_table_cq(raw->table);
	}
	if (!err) {
		raw->out = malloc(VB_RAW_FRAME);
		raw->in = malloc(VB_RAW_FRAME + VB_VLAN_BYTES);
		if (!raw->out || !raw->in)
			err = vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "create_qp: raw packet");
	}
	/* A frame is what the interface carries, and the headers in front. */
	qp->t.mtu = raw->mtu + VB_ETH_BYTES + VB_VLAN_BYTES;
	if (qp->t.mtu > VB_RAW_FRAME)
		qp->t.mtu = VB_RAW_FRAME;
	qp->t.least = VB_ETH_BYTES;
	return err;
}

static int spread_attach(struct vb_qp *qp)
{
	return vb_rwq_table_attach(vb_raw_of(qp)->table, qp->engine);
}

static void spread_detach(struct vb_qp *qp)
{
	vb_rwq_table_detach(vb_raw_of(qp)->table, qp->engine);
}

static void close_sockets(struct vb_qp *qp)
{
	struct vb_raw *raw = vb_raw_of(qp);

	if (!raw)
		return;
	if (raw->table)
		vb_rwq_table_put(raw->table);
	vb_descriptor_close(raw->rx);
	vb_descriptor_close(raw->tx);
	free(raw->out);
	free(raw->in);
	free(raw);
	qp->own = NULL;
}

static int spread_may_modify(const struct vb_qp *qp)
{
	return vb_refuse(EOPNOTSUPP, VB_REASON_UNSUPPORTED,
			 "modify_qp: qp 0x%x has no state: its work queues have", qp->t.qpn);
}

static int retire(struct vb_qp *qp, struct vb_events_got *got)
{
	if (atomic_load(&vb_raw_of(qp)->rules))
		return vb_refuse(EBUSY, VB_REASON_BUSY, "destroy_qp 0x%x: flows steer to it",
				 qp->t.qpn);
	return vb_qp_ordinary_retire(qp, got);
}

/* Peers need not know of the queue pair. */
static void publish(struct vb_qp *qp)
{
	atomic_store(&qp->state, qp->t.state);
}

/* The program may have closed the socket and use its number: another socket is opened. */
static bool sender_there(struct vb_raw *raw)
{
	if (vb_descriptor_still(raw->tx))
		return true;
	vb_note(VB_REASON_DESCRIPTORS_GONE, "qp 0x%x: socket to send frames", raw->qp->t.qpn);
	vb_descriptor_close(raw->tx);
	raw->tx = -1;
	return !sender_open(raw);
}

/* True: the socket has taken the frame, or never will. */
static bool send_frame(struct vb_raw *raw, uint32_t length)
{
	ssize_t n;

	if (!sender_there(raw))
		return true;
	do
		n = vb_sys_send(raw->tx, raw->out, length, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == ENOBUFS))
		return false;
	if (n < 0)
		vb_note(VB_REASON_DROP_UNREACHABLE, "qp 0x%x: frame of %u bytes: %s",
			raw->qp->t.qpn, length, strerror(errno));
	return true;
}

/* At most one frame waits. While it does, there is no room. */
static void *raw_reserve(struct vb_tqp *t, const struct vb_send_wqe *wqe, const struct vb_run *run)
{
	struct vb_raw *raw = vb_raw_of(vb_qp_of_tqp(t));

	struct vb_pace *pace = &raw->qp->pace;

	if (!wqe || run->length > VB_RAW_FRAME)
		return NULL;
	if (pace->kbps && !vb_pace_ready(pace, vb_clock_ns()))
		return NULL;
	if (raw->stuck) {
		if (!send_frame(raw, raw->stuck))
			return NULL;
		raw->stuck = 0;
	}
	return raw->out;
}

static void raw_commit(struct vb_tqp *t, const struct vb_send_wqe *wqe, const struct vb_run *run)
{
	struct vb_raw *raw = vb_raw_of(vb_qp_of_tqp(t));

	if (wqe->ip_csum)
		vb_frame_checksum_fill(raw->out, run->length);
	if (raw->qp->pace.kbps)
		vb_pace_spend(&raw->qp->pace, run->length);
	if (!send_frame(raw, run->length))
		raw->stuck = run->length;
}

/* All members but the link are those of other queue pairs. */
static const struct vb_env raw_env = {
	.link = {.reserve = raw_reserve, .commit = raw_commit},
	.memory = {VB_ENV_MEMORY, .scatter_response = vb_env_scatter_response},
	.queue =
		{
			VB_ENV_QUEUE,
			.send_done = vb_env_send_done,
			.recv_take = vb_env_recv_take,
			.recv_untake = vb_env_recv_untake,
			.recv_scatter = vb_env_recv_scatter,
			.recv_done = vb_env_recv_done,
		},
};

#define RAW_KIND                                                                        \
	.env = &raw_env, .frames = true, .check = check, .open = open_sockets,          \
	.close = close_sockets, .psns = vb_qp_ordinary_psns, .retire = retire,          \
	.free = vb_qp_ordinary_free, .publish = publish, .event = vb_qp_ordinary_event, \
	.clear = vb_qp_ordinary_clear, .receive = vb_qp_ordinary_receive

const struct vb_qp_kind vb_raw_own = {RAW_KIND};

const struct vb_qp_kind vb_raw_spread = {
	RAW_KIND,
	.attach = spread_attach,
	.detach = spread_detach,
	.may_modify = spread_may_modify,
};
