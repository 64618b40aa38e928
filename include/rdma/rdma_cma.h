/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The communication manager at the level of RDMACM_1.5: finding addresses and routes, connecting
 * queue pairs, datagram services and multicast groups by IP address and port.
 *
 * Each function has its manual page in section 3; rdma_cm(7) is the overview. Unless said otherwise
 * a function that returns int gives 0, or -1 with errno, and one that returns a pointer gives NULL
 * with errno. All may be called from any thread; one id must not be used by a thread while another
 * one destroys it.
 */
#if !defined(RDMA_CMA_H)
#define RDMA_CMA_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <infiniband/sa.h>
#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an event says; the comment names the call or the message that it answers. */
enum rdma_cm_event_type {
	RDMA_CM_EVENT_ADDR_RESOLVED,     /* rdma_resolve_addr(3) */
	RDMA_CM_EVENT_ADDR_ERROR,        /* the same, failed */
	RDMA_CM_EVENT_ROUTE_RESOLVED,    /* rdma_resolve_route(3) */
	RDMA_CM_EVENT_ROUTE_ERROR,       /* the same, failed */
	RDMA_CM_EVENT_CONNECT_REQUEST,   /* passive side: a peer's request, with a new id */
	RDMA_CM_EVENT_CONNECT_RESPONSE,  /* active side without id->qp: rdma_establish(3) is next */
	RDMA_CM_EVENT_CONNECT_ERROR,     /* the connection could not be completed on this side */
	RDMA_CM_EVENT_UNREACHABLE,       /* the peer does not answer */
	RDMA_CM_EVENT_REJECTED,          /* the peer refused */
	RDMA_CM_EVENT_ESTABLISHED,       /* both sides may send */
	RDMA_CM_EVENT_DISCONNECTED,      /* the connection has ended */
	RDMA_CM_EVENT_DEVICE_REMOVAL,    /* the id's device is gone; the id must be destroyed */
	RDMA_CM_EVENT_MULTICAST_JOIN,    /* rdma_join_multicast(3) */
	RDMA_CM_EVENT_MULTICAST_ERROR,   /* the same, failed; or membership was lost */
	RDMA_CM_EVENT_ADDR_CHANGE,       /* the address moved to another interface */
	RDMA_CM_EVENT_TIMEWAIT_EXIT,     /* the queue pair number may be used again */
	RDMA_CM_EVENT_ADDRINFO_RESOLVED, /* rdma_resolve_addrinfo(3) */
	RDMA_CM_EVENT_ADDRINFO_ERROR,    /* the same, failed */
	RDMA_CM_EVENT_USER,              /* rdma_write_cm_event(3) */
	RDMA_CM_EVENT_INTERNAL,          /* never handed out */
};

/* Each port space has port numbers of its own, and they are not those of sockets. */
enum rdma_port_space {
	RDMA_PS_IPOIB = 0x0002, /* datagrams to groups of IP over InfiniBand */
	RDMA_PS_TCP = 0x0106,   /* connections */
	RDMA_PS_UDP = 0x0111,   /* datagrams */
	RDMA_PS_IB = 0x013F,    /* service ids; the type of queue pair is the program's choice */
};

/* Service ids of the port spaces: the lower 16 bits are the port. */
#define RDMA_IB_IP_PS_MASK   0xFFFFFFFFFFFF0000ULL
#define RDMA_IB_IP_PORT_MASK 0x000000000000FFFFULL
#define RDMA_IB_IP_PS_TCP    0x0000000001060000ULL
#define RDMA_IB_IP_PS_UDP    0x0000000001110000ULL
#define RDMA_IB_PS_IB        0x00000000013F0000ULL

/* The Q_Key of datagram queue pairs and groups of the communication manager. */
#define RDMA_UDP_QKEY        0x01234567

struct rdma_ib_addr {
	union ibv_gid sgid;
	union ibv_gid dgid;
	__be16 pkey;
};

/* The two ends; a family of 0 (AF_UNSPEC) means that the address is not known yet. */
struct rdma_addr {
	union {
		struct sockaddr src_addr;
		struct sockaddr_in src_sin;
		struct sockaddr_in6 src_sin6;
		struct sockaddr_storage src_storage;
	};
	union {
		struct sockaddr dst_addr;
		struct sockaddr_in dst_sin;
		struct sockaddr_in6 dst_sin6;
		struct sockaddr_storage dst_storage;
	};
	union {
		struct rdma_ib_addr ibaddr;
	} addr;
};

struct rdma_route {
	struct rdma_addr addr;
	struct ibv_sa_path_rec
		*path_rec; /* num_paths of them, the id's; NULL before the route is known */
	int num_paths;
};

struct rdma_event_channel {
	int fd; /* readable while an event waits; close-on-exec; the program may set O_NONBLOCK */
};

/*
 * One end of a conversation; made by the library, which owns every member. A program may write
 * context at any time, and qp, pd, srq and the completion queues where its manual pages say so.
 */
struct rdma_cm_id {
	struct ibv_context *verbs; /* NULL while no device is chosen */
	struct rdma_event_channel *channel;
	void *context;
	struct ibv_qp *qp;
	struct rdma_route route;
	enum rdma_port_space ps;
	uint8_t port_num; /* of the device; 0 while none is chosen */
	struct rdma_cm_event
		*event; /* of a synchronous id: the last one, valid until the next call */
	struct ibv_comp_channel *send_cq_channel;
	struct ibv_cq *send_cq;
	struct ibv_comp_channel *recv_cq_channel;
	struct ibv_cq *recv_cq;
	struct ibv_srq *srq;
	struct ibv_pd *pd; /* the default one of the device, shared by all ids of the process */
	enum ibv_qp_type qp_type;
};

/* As many as the device can do. */
enum { RDMA_MAX_RESP_RES = 0xFF, RDMA_MAX_INIT_DEPTH = 0xFF };

/* rdma_connect(3), rdma_accept(3); in an event: as the peer wants it, seen from this side. */
struct rdma_conn_param {
	const void *private_data;
	uint8_t private_data_len;    /* bytes */
	uint8_t responder_resources; /* RDMA READs and atomics of the peer at a time */
	uint8_t initiator_depth;     /* own ones at a time */
	uint8_t flow_control;
	uint8_t retry_count;     /* 0..7 */
	uint8_t rnr_retry_count; /* 0..7, 7 for ever */
	/* These two count where the id has no queue pair. */
	uint8_t srq;
	uint32_t qp_num;
};

/* An event of a datagram id: where to send. */
struct rdma_ud_param {
	const void *private_data;
	uint8_t private_data_len; /* bytes */
	struct ibv_ah_attr ah_attr;
	uint32_t qp_num;
	uint32_t qkey;
};

/* Valid until rdma_ack_cm_event(3). */
struct rdma_cm_event {
	struct rdma_cm_id *id;        /* of CONNECT_REQUEST: the new one */
	struct rdma_cm_id *listen_id; /* of CONNECT_REQUEST: the listening one; else NULL */
	enum rdma_cm_event_type event;
	int status; /* 0, a negative errno, or of REJECTED and datagrams: the peer's reason */
	union {
		struct rdma_conn_param conn;
		struct rdma_ud_param ud;
		uint64_t arg; /* of USER */
	} param;
};

/* Flags of rdma_addrinfo. */
#define RAI_PASSIVE     0x00000001 /* an address to listen on */
#define RAI_NUMERICHOST 0x00000002 /* node is a number, no name */
#define RAI_NOROUTE     0x00000004 /* without routing information */
#define RAI_FAMILY      0x00000008 /* ai_family says how node is written */
#define RAI_SA          0x00000010 /* rdma_resolve_addrinfo(3): ask the subnet manager */
#define RAI_DNS         0x00000020 /* rdma_resolve_addrinfo(3): as rdma_getaddrinfo(3) does */

/* rdma_getaddrinfo(3); freed as a whole by rdma_freeaddrinfo(3). */
struct rdma_addrinfo {
	int ai_flags; /* RAI_* */
	int ai_family;
	int ai_qp_type;
	int ai_port_space;
	socklen_t ai_src_len;
	socklen_t ai_dst_len;
	struct sockaddr *ai_src_addr;
	struct sockaddr *ai_dst_addr;
	char *ai_src_canonname;
	char *ai_dst_canonname;
	size_t ai_route_len;
	void *ai_route; /* struct ibv_path_data[] */
	size_t ai_connect_len;
	void *ai_connect; /* private data that rdma_connect(3) is to send first */
	struct rdma_addrinfo *ai_next;
};

enum rdma_cm_join_mc_attr_mask {
	RDMA_CM_JOIN_MC_ATTR_ADDRESS = 1 << 0,
	RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS = 1 << 1,
	RDMA_CM_JOIN_MC_ATTR_RESERVED = 1 << 2,
};

enum rdma_cm_mc_join_flags {
	RDMA_MC_JOIN_FLAG_FULLMEMBER,
	RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
	RDMA_MC_JOIN_FLAG_RESERVED,
};

struct rdma_cm_join_mc_attr_ex {
	uint32_t comp_mask;  /* enum rdma_cm_join_mc_attr_mask */
	uint32_t join_flags; /* enum rdma_cm_mc_join_flags */
	struct sockaddr *addr;
};

/* Event channels. ids that are still there when their channel goes get no more events. */
struct rdma_event_channel *rdma_create_event_channel(void);
void rdma_destroy_event_channel(struct rdma_event_channel *channel);

/*
 * ids. Without a channel the id is synchronous: its calls wait for their event and leave it in
 * id->event. destroy waits until each event of the id that was handed out is acknowledged.
 */
int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps);
int rdma_destroy_id(struct rdma_cm_id *id);
int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel);

/* A synchronous id with its queue pair in one step: ready to connect, or to listen. */
int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *qp_init_attr);
void rdma_destroy_ep(struct rdma_cm_id *id);

/* Addresses and routes. timeout_ms is in milliseconds. */
int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr);
int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr,
		      int timeout_ms);
int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms);

/* Queue pairs of ids: their members qp, send_cq, recv_cq and the channels of these. */
int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr);
int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *qp_init_attr);
void rdma_destroy_qp(struct rdma_cm_id *id);
/* For queue pairs that the program made itself: set qp_attr->qp_state before. */
int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask);

/* Connections. Private data: at most 56 bytes to connect, 196 to accept, 148 to reject. */
int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param);
int rdma_establish(struct rdma_cm_id *id);
int rdma_listen(struct rdma_cm_id *id, int backlog);
int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id);
int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param);
int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);
int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);
int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event);
int rdma_disconnect(struct rdma_cm_id *id);

/* Extended connection options (ibv_query_ece(3)) of a connection. */
int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece);
int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece);

/* Multicast groups of datagram ids; `context` comes back in the event's private_data pointer. */
int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context);
int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr);
int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *mc_join_attr,
			   void *context);

/* Events: get waits unless the channel's descriptor is set to O_NONBLOCK; each is acknowledged once. */
int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);
int rdma_ack_cm_event(struct rdma_cm_event *event);
/* Queues an event of type RDMA_CM_EVENT_USER. */
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			uint64_t arg);
const char *rdma_event_str(enum rdma_cm_event_type event); /* never NULL */

/* Ports in network byte order, 0 while there is none. */
__be16 rdma_get_src_port(struct rdma_cm_id *id);
__be16 rdma_get_dst_port(struct rdma_cm_id *id);

/* The addresses inside the id. */
static inline struct sockaddr *rdma_get_local_addr(struct rdma_cm_id *id)
{
	return &id->route.addr.src_addr;
}

static inline struct sockaddr *rdma_get_peer_addr(struct rdma_cm_id *id)
{
	return &id->route.addr.dst_addr;
}

/* The devices, opened once per process: ids name the same contexts. The list ends with NULL. */
struct ibv_context **rdma_get_devices(int *num_devices);
void rdma_free_devices(struct ibv_context **list);

/* Options: the level and the names of each. */
enum { RDMA_OPTION_ID = 0, RDMA_OPTION_IB = 1 };

enum {
	RDMA_OPTION_ID_TOS = 0,        /* uint8_t: type of service of the connection's packets */
	RDMA_OPTION_ID_REUSEADDR = 1,  /* int: bind to a port that others use likewise */
	RDMA_OPTION_ID_AFONLY = 2,     /* int: an IPv6 id takes no IPv4 requests */
	RDMA_OPTION_ID_ACK_TIMEOUT = 3 /* uint8_t: 4.096 us * 2^value, 0 for ever */
};

enum {
	RDMA_OPTION_IB_PATH = 1 /* struct ibv_path_data[]: the route, instead of resolving it */
};

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen);

/*
 * Names to addresses. A failure of getaddrinfo(3) is returned as its (negative) code, for
 * gai_strerror(3); any other is -1 with errno. resolve and query are the same in two steps, with an
 * event between them; what query hands out is the caller's to free.
 */
int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res);
void rdma_freeaddrinfo(struct rdma_addrinfo *res);
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints);
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);

#ifdef __cplusplus
}
#endif

#endif
