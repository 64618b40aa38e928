/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device's limits: reported by ibv_query_device(3) and enforced where objects are made. */
#ifndef VB_PROCESS_LIMITS_H
#define VB_PROCESS_LIMITS_H

#include <infiniband/verbs.h>

#include "host/page.h"
#include "transport/run.h"

#define VB_MAX_QP            65535u /* one number of the blocks stays free */
#define VB_MAX_CQ            65535u
#define VB_MAX_SRQ           65535u
#define VB_MAX_PD            65535u
#define VB_MAX_AH            65535u
#define VB_MAX_TD            65535u
#define VB_MAX_XRCD          65535u
#define VB_MAX_MR            1000000u
#define VB_MAX_MW            32768u        /* with the regions not more than there are keys */
#define VB_MAX_DM_BYTES      (64ull << 20) /* per device and process */
#define VB_MAX_DM            32768u
#define VB_MAX_DM_LOG_ALIGN  12u
#define VB_MAX_BUF           65536u
#define VB_MAX_DMAH          65536u
#define VB_MAX_QP_WR         32768u
#define VB_MAX_SGE           32u
#define VB_MAX_SGE_RD        32u
#define VB_MAX_CQE           4194303u
#define VB_MAX_SRQ_WR        65536u
#define VB_MAX_SRQ_SGE       32u
#define VB_MAX_RD_ATOMIC     128u /* per QP, either side */
#define VB_MAX_INLINE        512u
#define VB_MAX_MSG_BYTES     VB_MESSAGE_MOST
#define VB_MAX_PKEYS         1u
/* Groups of IPv4 are limited by net.ipv4.igmp_max_memberships besides. */
#define VB_MAX_MCAST_GRP     8192u
#define VB_MAX_MCAST_QP      65536u /* of one group */
#define VB_GID_TABLE         64u
#define VB_NUM_COMP_VECTORS  8u
#define VB_VENDOR_ID         0x7662u /* no adapter maker's: docs/architecture/objects.md */
#define VB_VENDOR_PART_ID    1u

/* Raw packets: rules, their counters, receive work queues and the tables over them. */
#define VB_MAX_FLOW          4096u
#define VB_MAX_COUNTERS      4096u
#define VB_MAX_WQ            65535u
#define VB_MAX_RWQ_TABLE     4096u
#define VB_MAX_LOG_RWQ_TABLE 10u

#define VB_MAX_COMP_CNTR     65535u

/*
 * Tag matching: buffers on one list, operations that wait (they are done at once), elements of a
 * buffer.
 */
#define VB_MAX_TAGS          1024u
#define VB_MAX_TAG_OPS       65536u
#define VB_MAX_TAG_SGE       32u
#define VB_TM_RNDV_MAX       64u /* struct ibv_tmh, struct ibv_rvh, and the program's own bytes */

/* Types of queue pairs that can have a rate limit. */
#define VB_PACE_TYPES \
	(1u << IBV_QPT_RC | 1u << IBV_QPT_UC | 1u << IBV_QPT_UD | 1u << IBV_QPT_RAW_PACKET)
#define VB_PACE_MIN_KBPS 1u
#define VB_PACE_MAX_KBPS 4000000000u

/* The fields that may enter the hash of a queue pair with an indirection table. */
#define VB_RAW_HASH_FIELDS                                                              \
	((uint64_t)IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_IPV6 | \
	 IBV_RX_HASH_DST_IPV6 | IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP |   \
	 IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP | IBV_RX_HASH_IPSEC_SPI |  \
	 (uint64_t)IBV_RX_HASH_INNER)

/*
 * The types of objects that have handles. When a context is closed, objects of the types before PD
 * are ended, in this order.
 */
enum vb_handle_type {
	VB_HANDLE_FLOW,
	VB_HANDLE_QP,
	VB_HANDLE_SRQ,
	VB_HANDLE_MW,
	VB_HANDLE_MR,
	VB_HANDLE_DM,
	VB_HANDLE_XRCD,
	VB_HANDLE_TD,
	VB_HANDLE_PD,
	VB_HANDLE_CQ,
	VB_HANDLE_AH,
	VB_HANDLE_BUF,
	VB_HANDLE_DMAH,
	VB_HANDLE_COUNTERS,
	VB_HANDLE_WQ,
	VB_HANDLE_RWQ_TABLE,
	VB_HANDLE_COMP_CNTR,
	VB_HANDLE_TYPES
};

#endif
