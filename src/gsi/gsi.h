/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The General Services Interface (queue pair 1): carries the connection manager's datagrams (MADs)
 * between processes and hosts, and keeps the host's table of ports.
 *
 * This is what librdmacm uses of libibverbs (symbols of VERBATIM_PRIVATE_1). Functions return 0 or
 * a negative errno with the reason recorded (base/reason.h). They are thread-safe, and none may be
 * called from the program's fork handlers or signal handlers. docs/architecture/connections.md says
 * how it works.
 *
 * A process has one GSI, from its first vb_gsi_open() to its end. A forked child has none until it
 * opens its own; the parent's goes on. Queue pair 1 exists once for each host, and its packets may
 * come to any process that has the port; each process has a *GSI number* besides, a number of a
 * block of queue pair numbers that is its own. All communication ids of a process have the block
 * in their upper 14 bits. So whoever has a MAD finds the process that it is for.
 */
#ifndef VB_GSI_GSI_H
#define VB_GSI_GSI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/export.h"

struct ibv_device;

#define VB_GSI_MAD_BYTES    256u
#define VB_GSI_COMM_ID_BITS 18u /* lower bits of a communication id, which the process chooses */

/*
 * A MAD with its addresses: GIDs as RoCE has them (IPv4 a.b.c.d is ::ffff:a.b.c.d), numbers in host
 * byte order.
 */
struct vb_gsi_mad {
	/*
	 * Of the sender, and of the receiver. In vb_gsi_send() sgid is an address of this host. An
	 * answer to a MAD has them exchanged.
	 */
	uint8_t sgid[16], dgid[16];
	uint32_t flow_label;
	uint8_t traffic_class;
	uint8_t hop_limit; /* sending: 0 and 1 mean as many as the route needs */
	/* The following are set on receiving, and ignored on sending. */
	bool wire;        /* it came by UDP; else through a ring of this host */
	uint32_t src_qpn; /* 1 by UDP; else the GSI number of the sending process */
	/* The interface that has dgid; 0: none has it any more. A device is found by its GIDs. */
	uint32_t ifindex;
	uint8_t data[VB_GSI_MAD_BYTES];
};

/*
 * What the progress thread calls, without any lock of the library held and one function at a time.
 * They may call every function of this header but those that say that they wait.
 */
struct vb_gsi_events {
	/*
	 * A MAD has come. Nothing of its content was judged, but for what chose this process. It
	 * is valid during the call.
	 */
	void (*mad)(void *arg, const struct vb_gsi_mad *mad);
	/*
	 * In each turn of the thread, after the MADs of that turn: does what is due. Returns when
	 * it is to be called at the latest (CLOCK_MONOTONIC ns), 0: no such time.
	 */
	uint64_t (*serve)(void *arg);
	/* Something that vb_gsi_device_look() tells has changed for some device. May be NULL. */
	void (*changed)(void *arg);
	/*
	 * A process of this host has ended, and all MADs that it had sent to this one were handed
	 * out. Its communication ids were comm_id_base + [0, 1 << VB_GSI_COMM_ID_BITS). Told of
	 * processes with which MADs were exchanged. May be NULL.
	 */
	void (*ended)(void *arg, uint32_t comm_id_base);
	void *arg;
};

/* What a process is by its GSI. */
struct vb_gsi_identity {
	uint32_t qpn; /* its GSI number */
	/*
	 * Its communication ids are comm_id_base + [0, 1 << VB_GSI_COMM_ID_BITS), without 0. A block
	 * of a process that ended lately is not taken, so ids are not used again for some seconds.
	 * The caller begins at a random one.
	 */
	uint32_t comm_id_base;
};

/*
 * Opens the GSI of the process and joins the host's table of ports; starts the progress thread.
 * Where it is open already, only fills *identity in. Waits (vb_commons_join: 2 s at most, when
 * processes of the user stand still; as long again if this one is joining to pass packets on).
 * -ETIMEDOUT: these stand still; -EUSERS: the table has its most members (512 processes); -errno.
 */
VB_SHARED int vb_gsi_open(const struct vb_gsi_events *events, struct vb_gsi_identity *identity);

/* An earlier deadline was made: the progress thread calls serve() soon. Any thread; does not wait. */
VB_SHARED void vb_gsi_kick(void);
/*
 * A deadline was made (ns; 0: none), and serve() finds it where it looks: as vb_gsi_kick(), unless
 * serve() is called by then anyway.
 */
VB_SHARED void vb_gsi_expect(uint64_t at);

/* What has become of the interface of a device, and of an address that it had. */
struct vb_gsi_device_state {
	bool gone;
	bool has_address;
	uint32_t moves; /* how often its hardware address has changed */
};

/* Any thread; does not wait. */
VB_SHARED void vb_gsi_device_look(struct ibv_device *device, const uint8_t gid[16],
				  struct vb_gsi_device_state *state);

/*
 * Whether MADs to the address stay on this host: it is an address of this network namespace, and
 * VERBATIM_LINK does not say otherwise.
 */
VB_SHARED bool vb_gsi_is_near(const uint8_t gid[16]);

/*
 * Makes ready to send to, and to receive from, the address: nothing for a near one, else the
 * sockets of its family, which stay open. All zero: both families as far as they can be had, as a
 * listener needs. Waits (2.1 s at most, and only where VERBATIM_DOMAIN is set). -EADDRINUSE: port
 * 4791 is in other hands, and the reason names the holder; -errno. Near addresses are reached all
 * the same. Where a listener does not get the port, the progress thread tries again: after a second,
 * then in pauses that grow to half a minute.
 */
VB_SHARED int vb_gsi_reach(const uint8_t gid[16]);

/*
 * Sends mad->data to the queue pair 1 of mad->dgid: to the process of this host that the content
 * names, or by UDP. Any thread; does not wait. 0: it was sent, or is kept until there is contact or
 * room; as with every datagram nothing tells of its loss (drops are counted by reason).
 * -EADDRNOTAVAIL: sgid is no address of a device; -EADDRINUSE, -errno: as vb_gsi_reach(), which is
 * not called by this function; -ENOBUFS: too many are kept.
 */
VB_SHARED int vb_gsi_send(const struct vb_gsi_mad *mad);

/* A connection with another host. */
struct vb_gsi_connection {
	uint32_t comm_id;    /* one of this process's */
	uint32_t remote_id;  /* the peer's */
	uint32_t remote_qpn; /* the peer's queue pair */
	uint8_t sgid[16], dgid[16];
};

/*
 * From now on another process of this user tells the peer, with a DREQ, if this one ends without
 * vb_gsi_withdraw(). Returns the connection's place; 0: there is none left, and the peer will have
 * to find out by itself. Any thread; does not wait.
 */
VB_SHARED uint32_t vb_gsi_publish(const struct vb_gsi_connection *connection);
VB_SHARED void vb_gsi_withdraw(uint32_t place);

/*
 * A binding of a port: what is asked for. Ports are numbers of this network namespace and user, and
 * of the port space, and have nothing to do with those of sockets.
 */
struct vb_gsi_binding {
	uint16_t space; /* enum rdma_port_space */
	uint16_t port;  /* host order; 0: any, of net.ipv4.ip_local_port_range */
	/*
	 * As a GID. ::ffff:0.0.0.0 is the wildcard of IPv4, :: of IPv6. Who asks has checked that it
	 * is an address of this host, and that it may have the port (below 1024).
	 */
	uint8_t address[16];
	uint32_t scope; /* interface of a link-local address, else 0 */
	/*
	 * Where the connection goes. With port 0 a port can be had that others have too, if their
	 * address or destination differs. remote_port 0: not known.
	 */
	uint8_t remote[16];
	uint16_t remote_port;
	bool reuse;  /* RDMA_OPTION_ID_REUSEADDR */
	bool afonly; /* RDMA_OPTION_ID_AFONLY; true for IPv4 */
};

/*
 * Enters the binding; binding->port gets the port, *handle stands for it until vb_gsi_unbind(). The
 * bindings of a process that ends vanish. Waits (1 s at most, when a process stands still that was
 * changing the table). -EADDRINUSE, -EADDRNOTAVAIL: the port is another's (cm/port_rule.h says
 * which), or all are; -ENOMEM: the table is full; -EBUSY: a process stands still; -ENOTCONN: no
 * GSI is open.
 */
VB_SHARED int vb_gsi_bind(struct vb_gsi_binding *binding, uint64_t *handle);
/*
 * From now on requests for the port come to this process. The rules are asked again, without
 * REUSEADDR. As vb_gsi_bind(); -ENOENT: there is no such binding of this process.
 */
VB_SHARED int vb_gsi_listen(uint64_t handle);
/* The destination of a binding has become known, or has changed. */
VB_SHARED int vb_gsi_rebind(uint64_t handle, const uint8_t remote[16], uint16_t remote_port,
			    bool reuse, bool afonly);
/* Does not fail: where the table stands still, the entry goes with the process. */
VB_SHARED void vb_gsi_unbind(uint64_t handle);

#endif
