/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receiving frames. While a queue pair has rules, its socket receives the frames of the interface.
 * A thread that drives its engine reads the socket, and so does the progress thread, which the
 * sockets wake.
 *
 * On the loopback interface a frame is received once. On other interfaces the frames that this host
 * sends arrive as well. Of these an adapter would return the ones to several destinations or to
 * itself, and the same is done here.
 *
 * A frame that finds no receive is dropped, as by an adapter. But a program that polls may have
 * lost its processor for longer than its receives last, which no sender can know. So frames first
 * stay in the socket's buffer for a while.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/fork.h"
#include "base/lock.h"
#include "base/reason.h"
#include "base/sys.h"
#include "engine/cq.h"
#include "engine/engine.h"
#include "qp/env.h"
#include "raw/flow.h"
#include "process/process.h"
#include "qp/qp.h"
#include "raw/private.h"
#include "raw/qp.h"
#include "raw/wq.h"
#include "host/descriptor.h"
#include "transport/responder.h"
#include "wire/frame_checksum.h"
#include "engine/engine_channel.h"
#include "engine/engines.h"
#include "engine/progress.h"
#include "engine/settle.h"

#define BATCH        32
#define CATCH_UP     64 /* batches; a flood has no end */
#define BUFFER_BYTES (4 << 20)
#define HOLD_NS      2000000000ull /* the longest time for which frames wait for a receive */
/* Interval of looking whether there is a receive: posting wakes no thread. */
#define LOOK_NS      2000000ull

static struct {
	pthread_mutex_t lock; /* taken before any engine's */
	struct vb_raw *list;
	int epoll; /* has the sockets, and is in the progress thread's set */
	/* Frames are held, or were left for the next pass: when to look again; 0: no. */
	_Atomic uint64_t due;
} receiving = {.lock = PTHREAD_MUTEX_INITIALIZER, .epoll = -1};

static bool is_multicast(const uint8_t *mac)
{
	return mac[0] & 1;
}

/* Puts a tag that the kernel has taken off back into its place, unless the tag is to stay off. */
static uint32_t frame_whole(struct vb_raw *raw, struct msghdr *msg, uint32_t length,
			    uint16_t *cvlan, uint8_t **data)
{
	uint8_t *frame = raw->in + VB_VLAN_BYTES;

	*data = frame;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		struct tpacket_auxdata aux;

		if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA)
			continue;
		memcpy(&aux, CMSG_DATA(c), sizeof(aux));
		if (!(aux.tp_status & TP_STATUS_VLAN_VALID) || length < 12)
			continue;
		uint16_t tag[2] = {htons(aux.tp_status & TP_STATUS_VLAN_TPID_VALID
						 ? aux.tp_vlan_tpid
						 : ETHERTYPE_VLAN),
				   htons(aux.tp_vlan_tci)};

		*cvlan = aux.tp_vlan_tci;
		*data = raw->in;
		memmove(raw->in, frame, 12);
		memcpy(raw->in + 12, tag, sizeof(tag));
		return length + VB_VLAN_BYTES;
	}
	return length;
}

/*
 * A file that the program has opened under the number is not read. Memberships and filters are
 * lost: nothing more is received.
 */
static bool receiver_there(struct vb_raw *raw)
{
	if (vb_descriptor_still(raw->rx))
		return true;
	if (raw->rx >= 0)
		vb_note(VB_REASON_DESCRIPTORS_GONE,
			"qp 0x%x: socket that frames come from: it receives no more",
			raw->qp->t.qpn);
	vb_descriptor_close(raw->rx);
	raw->rx = -1;
	return false;
}

/* 0: no frame. A frame that is not for this queue pair has length 0 in *length. */
static bool frame_read(struct vb_raw *raw, uint8_t **data, uint32_t *length, uint16_t *cvlan)
{
	struct sockaddr_ll from;
	struct iovec iov = {.iov_base = raw->in + VB_VLAN_BYTES, .iov_len = VB_RAW_FRAME};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	struct msghdr msg = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = -1;

	*cvlan = 0;
	*length = 0;
	if (!receiver_there(raw))
		return false;
	n = vb_sys_recvmsg(raw->rx, &msg, MSG_DONTWAIT);
	if (n < 0)
		return errno == EINTR;
	bool outgoing = from.sll_pkttype == PACKET_OUTGOING;

	if (n < (ssize_t)VB_ETH_BYTES || (msg.msg_flags & MSG_TRUNC) || (outgoing && raw->loopback))
		return true;
	const uint8_t *to = raw->in + VB_VLAN_BYTES;

	if (outgoing && !is_multicast(to) && memcmp(to, raw->mac, sizeof(raw->mac)) != 0)
		return true;
	*length = frame_whole(raw, &msg, (uint32_t)n, cvlan, data);
	return true;
}

/* Takes the tag off: 4 bytes behind the addresses. */
static void strip(uint8_t **data, uint32_t *length)
{
	memmove(*data + VB_VLAN_BYTES, *data, 12);
	*data += VB_VLAN_BYTES;
	*length -= VB_VLAN_BYTES;
}

static void drop(const struct vb_qp *qp, uint32_t length, enum vb_reason reason)
{
	vb_note(reason, "qp 0x%x: frame of %u bytes: %s", qp->t.qpn, length,
		vb_reason_text(reason));
}

static void deliver_own(struct vb_raw *raw, const uint8_t *data, uint32_t length, uint32_t flags,
			const struct vb_cqe_more *more)
{
	struct vb_qp *qp = raw->qp;
	struct vb_tqp *t = &qp->t;
	struct vb_recv_done done = {.status = IBV_WC_SUCCESS,
				    .opcode = IBV_WC_RECV,
				    .byte_len = length,
				    .wc_flags = flags};
	struct vb_recv_wqe *wqe;

	if (t->state < IBV_QPS_RTR || t->state == IBV_QPS_ERR) {
		drop(qp, length, VB_REASON_DROP_STATE);
		return;
	}
	wqe = t->env->queue.recv_take(t);
	if (!wqe) {
		drop(qp, length, VB_REASON_DROP_NO_RECEIVE);
		return;
	}
	if (wqe->length < length) {
		t->env->queue.recv_untake(t, wqe);
		drop(qp, length, VB_REASON_DROP_TOO_LONG);
		return;
	}
	done.wqe = wqe;
	done.reason = t->env->queue.recv_scatter(t, wqe, 0, data, length);
	if (done.reason)
		done.status = IBV_WC_LOC_PROT_ERR;
	vb_env_recv_done_more(t, &done, more);
	if (done.reason)
		vb_responder_error(t);
	vb_qp_settle(qp);
}

static void deliver(struct vb_raw *raw, uint8_t *data, uint32_t length, uint16_t cvlan)
{
	struct vb_cqe_more more = {.cvlan = cvlan};
	struct vb_frame frame;
	bool off = raw->strip;
	uint32_t hash = 0;
	uint32_t flags;
	bool hashed;

	vb_frame_parse(&frame, data, length);
	if (!vb_flow_steer(raw->qp, &frame, &more.flow_tag))
		return;
	flags = vb_frame_checksum_good(&frame) ? IBV_WC_IP_CSUM_OK : 0;
	if (raw->table) {
		hash = vb_frame_hash(&frame, raw->fields, raw->key, &hashed);
		off |= vb_rwq_table_strips(raw->table, hash);
	}
	if (off && frame.layer[0].tagged)
		strip(&data, &length);
	if (raw->table)
		vb_rwq_table_receive(raw->table, raw->qp->engine, hash, data, length, flags, &more);
	else
		deliver_own(raw, data, length, flags, &more);
}

static void look_again(uint64_t at)
{
	uint64_t due = atomic_load_explicit(&receiving.due, memory_order_relaxed);

	while ((!due || at < due) && !atomic_compare_exchange_weak(&receiving.due, &due, at))
		;
}

/* Notes the frames for which the socket's buffer had no room. */
static void losses_note(const struct vb_raw *raw)
{
	struct tpacket_stats lost = {0};
	socklen_t size = sizeof(lost);

	if (vb_descriptor_still(raw->rx) &&
	    !getsockopt(raw->rx, SOL_PACKET, PACKET_STATISTICS, &lost, &size) && lost.tp_drops)
		vb_note(VB_REASON_DROP_SOCKET_FULL, "qp 0x%x: %u of %u frames", raw->qp->t.qpn,
			lost.tp_drops, lost.tp_packets);
}

static bool can_receive(struct vb_raw *raw)
{
	struct vb_recv_queue *rq = &raw->qp->rq;

	/*
	 * In another state the frame is dropped for that reason. A table has many queues, and none
	 * of them may hold up the others.
	 */
	return raw->table || raw->qp->t.state < IBV_QPS_RTR || raw->qp->t.state == IBV_QPS_ERR ||
	       rq->taken != atomic_load_explicit(&rq->posted, memory_order_acquire);
}

/* No receive is posted. True if the next frame stays where it is. */
static bool hold(struct vb_raw *raw)
{
	char byte;

	if (can_receive(raw)) {
		raw->held_since = 0;
		raw->held_enough = false;
		return false;
	}
	if (raw->held_enough || !receiver_there(raw))
		return false;
	if (vb_sys_recv(raw->rx, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) < 0)
		return true; /* there is no frame */
	uint64_t now = vb_clock_ns();

	if (!raw->held_since)
		raw->held_since = now;
	if (now - raw->held_since >= HOLD_NS) {
		raw->held_enough = true;
		losses_note(raw);
		return false;
	}
	look_again(now + LOOK_NS);
	vb_progress_expect(now + LOOK_NS);
	return true;
}

static bool drain(struct vb_raw *raw, bool may_hold)
{
	uint8_t *data;
	uint32_t length;
	uint16_t cvlan;
	int n = 0;

	while (n < BATCH && !(may_hold && hold(raw)) && frame_read(raw, &data, &length, &cvlan)) {
		n++;
		if (length)
			deliver(raw, data, length, cvlan);
	}
	return n > 0;
}

static bool engine_drains(struct vb_engine_hook *hook)
{
	return drain((struct vb_raw *)(void *)((char *)hook - offsetof(struct vb_raw, hook)), true);
}

/* Under the list's lock. */
static void drain_all(int most, bool may_hold)
{
	for (struct vb_raw *raw = receiving.list; raw; raw = raw->next) {
		vb_engine_take(raw->qp->engine);
		int i = 0;

		while (i < most && drain(raw, may_hold))
			i++;
		if (i == most)
			look_again(1);
		vb_engine_flush(raw->qp->engine);
		vb_lock_release(&raw->qp->engine->lock);
	}
}

/* The progress thread: frames wait, and it may be that no thread polls. */
static void sockets_ready(void *arg)
{
	(void)arg;
	vb_mutex_take(&receiving.lock, VB_ORDER_RAW_SOCKETS);
	/*
	 * The sockets report new frames only. Otherwise frames that are held would be reported all
	 * the time.
	 */
	drain_all(CATCH_UP, true);
	vb_mutex_release(&receiving.lock);
}

/* Looks at frames that wait for a receive. */
static uint64_t serve(void)
{
	uint64_t due = atomic_load_explicit(&receiving.due, memory_order_relaxed);

	if (due && due <= vb_clock_ns()) {
		atomic_store(&receiving.due, 0);
		sockets_ready(NULL);
		due = atomic_load(&receiving.due);
	}
	return due;
}

void vb_raw_catch_up(void)
{
	vb_mutex_take(&receiving.lock, VB_ORDER_RAW_SOCKETS);
	drain_all(CATCH_UP, false);
	vb_mutex_release(&receiving.lock);
}

/* Under the list's lock. */
static int epoll_start(struct vb_node *node)
{
	int err;

	if (vb_descriptor_ours(receiving.epoll))
		return 0;
	vb_descriptor_close(receiving.epoll);
	receiving.epoll = vb_descriptor_adopt(epoll_create1(EPOLL_CLOEXEC));
	if (receiving.epoll < 0)
		return vb_refuse(errno, VB_REASON_SYSTEM, "raw packet: epoll_create1: %s",
				 strerror(errno));
	err = vb_node_watch(node, receiving.epoll, sockets_ready, NULL);
	if (!err)
		return 0;
	vb_descriptor_close(receiving.epoll);
	receiving.epoll = -1;
	return vb_refuse(-err, VB_REASON_SYSTEM, "raw packet: watching its sockets: %s",
			 strerror(-err));
}

static int membership_add(const struct vb_raw *raw, enum vb_raw_frames what, const uint8_t *mac)
{
	struct packet_mreq request = {.mr_ifindex = raw->ifindex};

	switch (what) {
	case VB_RAW_FRAMES_OWN:
		return 0;
	case VB_RAW_FRAMES_ADDRESS:
		request.mr_type = is_multicast(mac) ? PACKET_MR_MULTICAST : PACKET_MR_UNICAST;
		request.mr_alen = 6;
		memcpy(request.mr_address, mac, 6);
		break;
	case VB_RAW_FRAMES_MULTICAST:
		request.mr_type = PACKET_MR_ALLMULTI;
		break;
	case VB_RAW_FRAMES_ALL:
		request.mr_type = PACKET_MR_PROMISC;
		break;
	}
	if (raw->loopback) /* it receives everything */
		return 0;
	if (setsockopt(raw->rx, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof(request)))
		return vb_refuse(errno, VB_REASON_SYSTEM, "create_flow: membership: %s",
				 strerror(errno));
	return 0;
}

static int socket_bind(const struct vb_raw *raw, uint16_t protocol)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(protocol),
		.sll_ifindex = raw->ifindex,
	};

	if (!vb_descriptor_ours(raw->rx))
		return -EBADF;
	if (bind(raw->rx, (const struct sockaddr *)&at, sizeof(at)))
		return vb_refuse(errno, VB_REASON_SYSTEM, "create_flow: bind: %s", strerror(errno));
	return 0;
}

/* Under the list's lock. */
static int receiving_begin(struct vb_raw *raw)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	struct vb_engine *e = raw->qp->engine;
	int on = 1, bytes = BUFFER_BYTES;
	int err = epoll_start(e->node);

	if (err)
		return err;
	if (setsockopt(raw->rx, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(raw->rx, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (setsockopt(raw->rx, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)))
		vb_note(VB_REASON_SYSTEM, "raw packet: no PACKET_AUXDATA: VLAN tags get lost");
	err = socket_bind(raw, ETH_P_ALL);
	if (!err && epoll_ctl(receiving.epoll, EPOLL_CTL_ADD, raw->rx, &event))
		err = vb_refuse(errno, VB_REASON_SYSTEM, "create_flow: epoll_ctl: %s",
				strerror(errno));
	if (err) {
		socket_bind(raw, 0); /* otherwise frames would gather that no thread reads */
		return err;
	}
	raw->next = receiving.list;
	receiving.list = raw;
	vb_engine_take(e);
	raw->hook.drain = engine_drains;
	vb_engine_hook_add(e, &raw->hook);
	vb_lock_release(&e->lock);
	return 0;
}

/* Under the list's lock. */
static void receiving_end(struct vb_raw *raw)
{
	struct vb_engine *e = raw->qp->engine;

	if (vb_descriptor_ours(receiving.epoll) && vb_descriptor_ours(raw->rx))
		epoll_ctl(receiving.epoll, EPOLL_CTL_DEL, raw->rx, NULL);
	losses_note(raw);
	socket_bind(raw, 0);
	for (struct vb_raw **at = &receiving.list; *at; at = &(*at)->next) {
		if (*at == raw) {
			*at = raw->next;
			break;
		}
	}
	vb_engine_take(e);
	vb_engine_hook_remove(e, &raw->hook);
	vb_lock_release(&e->lock);
}

int vb_raw_receive_begin(struct vb_qp *qp, enum vb_raw_frames what, const uint8_t *mac)
{
	struct vb_raw *raw = vb_raw_of(qp);
	int err;

	if (!vb_descriptor_ours(raw->rx))
		return vb_refuse(EBADF, VB_REASON_DESCRIPTORS_GONE,
				 "create_flow: the program closed the socket of qp 0x%x",
				 qp->t.qpn);
	vb_mutex_take(&receiving.lock, VB_ORDER_RAW_SOCKETS);
	err = membership_add(raw, what, mac);
	if (!err && !atomic_load(&raw->rules))
		err = receiving_begin(raw);
	if (!err)
		atomic_fetch_add(&raw->rules, 1);
	vb_mutex_release(&receiving.lock);
	return err;
}

void vb_raw_receive_end(struct vb_qp *qp)
{
	vb_mutex_take(&receiving.lock, VB_ORDER_RAW_SOCKETS);
	if (atomic_fetch_sub(&vb_raw_of(qp)->rules, 1) == 1)
		receiving_end(vb_raw_of(qp));
	vb_mutex_release(&receiving.lock);
}

/*
 * In the child the sockets are the parent's; the child's copies of the descriptors have been
 * closed.
 */
static void forked(void)
{
	pthread_mutex_init(&receiving.lock, NULL);
	receiving.list = NULL;
	receiving.epoll = -1;
}

VB_PROGRESS_HOOK(.serve = serve);

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);
