/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Device attributes (ibv_query_device_ex(3)): the limits of limits.h, and only capabilities that
 * exist.
 */
#include "device/attr.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/reason.h"
#include "device/device.h"
#include "process/limits.h"
#include "device/port.h"

#define ALL_PAGE_SIZES 0xfffffffffffff000ull
#define CLOCK_KHZ      1000000u /* timestamps count nanoseconds */
#define ACK_DELAY      15       /* 4.096 us * 2^15: the time in which a busy host acknowledges */
#define FIRMWARE       "0.1.0"

static const unsigned int capabilities =
	IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
	IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_BAD_PKEY_CNTR |
	IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_XRC | IBV_DEVICE_MEM_WINDOW |
	IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_RAW_MULTI |
	IBV_DEVICE_RAW_IP_CSUM | IBV_DEVICE_MANAGED_FLOW_STEERING;

static void set_limits(struct ibv_device_attr *a)
{
	a->max_mr_size = UINT64_MAX;
	a->page_size_cap = ALL_PAGE_SIZES;
	a->max_qp = VB_MAX_QP;
	a->max_qp_wr = VB_MAX_QP_WR;
	a->max_sge = VB_MAX_SGE;
	a->max_sge_rd = VB_MAX_SGE_RD;
	a->max_cq = VB_MAX_CQ;
	a->max_cqe = VB_MAX_CQE;
	a->max_mr = VB_MAX_MR;
	a->max_mw = VB_MAX_MW;
	a->max_pd = VB_MAX_PD;
	a->max_qp_rd_atom = VB_MAX_RD_ATOMIC;
	a->max_res_rd_atom = VB_MAX_RD_ATOMIC * VB_MAX_QP;
	a->max_qp_init_rd_atom = VB_MAX_RD_ATOMIC;
	a->atomic_cap = IBV_ATOMIC_HCA;
	a->max_mcast_grp = VB_MAX_MCAST_GRP;
	a->max_mcast_qp_attach = VB_MAX_MCAST_QP;
	a->max_total_mcast_qp_attach = VB_MAX_MCAST_GRP * VB_MAX_MCAST_QP;
	a->max_ah = VB_MAX_AH;
	a->max_srq = VB_MAX_SRQ;
	a->max_srq_wr = VB_MAX_SRQ_WR;
	a->max_srq_sge = VB_MAX_SRQ_SGE;
	a->max_pkeys = VB_MAX_PKEYS;
	a->local_ca_ack_delay = ACK_DELAY;
	a->phys_port_cnt = VB_PORT;
}

/* Registering pins nothing: every region is pageable, for every operation of its service. */
static void set_paging(struct ibv_device_attr_ex *attr)
{
	const uint32_t unreliable = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
	const uint32_t reliable = unreliable | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
				  IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV |
				  IBV_ODP_SUPPORT_FLUSH | IBV_ODP_SUPPORT_ATOMIC_WRITE;

	attr->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = reliable;
	attr->odp_caps.per_transport_caps.uc_odp_caps = unreliable | IBV_ODP_SUPPORT_WRITE;
	attr->odp_caps.per_transport_caps.ud_odp_caps = unreliable | IBV_ODP_SUPPORT_SRQ_RECV;
	attr->xrc_odp_caps = reliable;
}

int vb_attr_query(const struct vb_device *dev, struct ibv_device_attr_ex *attr)
{
	struct ibv_device_attr *a = &attr->orig_attr;

	memset(attr, 0, sizeof(*attr));
	snprintf(a->fw_ver, sizeof(a->fw_ver), "%s", FIRMWARE);
	a->node_guid = dev->guid;
	a->sys_image_guid = dev->guid;
	a->vendor_id = VB_VENDOR_ID;
	a->vendor_part_id = VB_VENDOR_PART_ID;
	a->hw_ver = 1;
	a->device_cap_flags = capabilities;
	set_limits(a);
	set_paging(attr);
	attr->completion_timestamp_mask = UINT64_MAX;
	attr->hca_core_clock = CLOCK_KHZ;
	attr->device_cap_flags_ex = capabilities;
	attr->phys_port_cnt_ex = VB_PORT;
	attr->raw_packet_caps = IBV_RAW_PACKET_CAP_CVLAN_STRIPPING | IBV_RAW_PACKET_CAP_IP_CSUM;
	attr->max_wq_type_rq = VB_MAX_WQ;
	attr->rss_caps.supported_qpts = 1u << IBV_QPT_RAW_PACKET;
	attr->rss_caps.max_rwq_indirection_tables = VB_MAX_RWQ_TABLE;
	attr->rss_caps.max_rwq_indirection_table_size = 1u << VB_MAX_LOG_RWQ_TABLE;
	attr->rss_caps.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
	attr->rss_caps.rx_hash_fields_mask = VB_RAW_HASH_FIELDS;
	attr->packet_pacing_caps.qp_rate_limit_min = VB_PACE_MIN_KBPS;
	attr->packet_pacing_caps.qp_rate_limit_max = VB_PACE_MAX_KBPS;
	attr->packet_pacing_caps.supported_qpts = VB_PACE_TYPES;
	attr->tm_caps.flags = IBV_TM_CAP_RC;
	attr->tm_caps.max_rndv_hdr_size = VB_TM_RNDV_MAX;
	attr->tm_caps.max_num_tags = VB_MAX_TAGS;
	attr->tm_caps.max_ops = VB_MAX_TAG_OPS;
	attr->tm_caps.max_sge = VB_MAX_TAG_SGE;
	attr->cq_mod_caps.max_cq_count = UINT16_MAX;
	attr->cq_mod_caps.max_cq_period = UINT16_MAX;
	attr->max_dm_size = VB_MAX_DM_BYTES;
	return 0;
}

/*
 * As with other drivers, the counter is in tv_nsec alone: it counts ticks of hca_core_clock and is
 * no time of day.
 */
int vb_attr_query_clock(struct ibv_values_ex *values)
{
	uint32_t asked = values->comp_mask; /* the bits that the face knows */

	values->comp_mask = 0;
	if (!asked)
		return 0;
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = (long)vb_clock_ns();
	values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	return 0;
}
