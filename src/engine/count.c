/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which counter an event belongs to. */
#include "engine/count.h"

void vb_count_request(struct vb_engine *e, const struct vb_run *run)
{
	struct vb_port_counters *c = e->port;

	switch (run->op) {
	case VB_OP_WRITE:
		c->rx_write_requests += run->flags & VB_RUN_FIRST ? 1 : 0;
		break;
	case VB_OP_ATOMIC_WRITE:
		c->rx_write_requests++;
		break;
	case VB_OP_READ_REQUEST:
		c->rx_read_requests++;
		break;
	case VB_OP_COMPARE_SWAP:
	case VB_OP_FETCH_ADD:
		c->rx_atomic_requests++;
		break;
	case VB_OP_ACK:
		c->packet_seq_err += run->syndrome == VB_AETH_NAK_SEQUENCE;
		c->rnr_nak_retry_err += VB_AETH_CLASS(run->syndrome) == VB_AETH_RNR;
		break;
	default:
		break;
	}
}

void vb_count_direct(struct vb_engine *e, uint8_t op, uint32_t mtu, uint64_t bytes)
{
	struct vb_port_counters *c = e->port;
	uint64_t packets = bytes <= mtu ? 1 : (bytes + mtu - 1) / mtu;

	if (!c)
		return;
	switch (op) {
	case VB_OP_WRITE:
		c->rx_write_requests++;
		break;
	case VB_OP_ATOMIC_WRITE:
		c->rx_write_requests++;
		packets++;
		break;
	case VB_OP_READ_REQUEST:
		c->rx_read_requests++;
		packets++;
		break;
	case VB_OP_COMPARE_SWAP:
	case VB_OP_FETCH_ADD: /* operands and result are in headers */
		c->rx_atomic_requests++;
		packets++;
		bytes = 0;
		break;
	default: /* FLUSH: the range is not sent */
		packets++;
		bytes = 0;
		break;
	}
	c->tx_packets += packets;
	c->rx_packets += packets;
	c->tx_bytes += bytes;
	c->rx_bytes += bytes;
}

void vb_count_fault(struct vb_engine *e, enum vb_reason reason)
{
	struct vb_port_counters *c = e->port;

	if (!c)
		return;
	switch (reason) {
	case VB_REASON_DROP_PKEY:
	case VB_REASON_DROP_QKEY:
	case VB_REASON_DROP_SOURCE:
		c->rx_constraint++;
		break;
	case VB_REASON_DROP_MALFORMED:
	case VB_REASON_DROP_OPCODE:
	case VB_REASON_DROP_VERSION:
		c->rx_errors++;
		break;
	case VB_REASON_DROP_NO_RECEIVE:
	case VB_REASON_NO_RECEIVE:
		c->out_of_buffer++;
		break;
	case VB_REASON_DROP_SEQUENCE:
	case VB_REASON_DROP_PSN:
		c->out_of_sequence++;
		break;
	case VB_REASON_DROP_STALE: /* which of the two it is, the protocol tells (VB_COUNT_...) */
		break;
	case VB_REASON_RKEY_UNKNOWN:
	case VB_REASON_RKEY_PD:
	case VB_REASON_RKEY_RANGE:
	case VB_REASON_RKEY_ACCESS:
	case VB_REASON_RKEY_QP:
	case VB_REASON_RKEY_OWNER_GONE:
	case VB_REASON_QP_ACCESS:
		c->resp_remote_access_errors++;
		break;
	case VB_REASON_DROP_SEND_BUFFER:
	case VB_REASON_DROP_UNREACHABLE:
		c->tx_discards++;
		break;
	case VB_REASON_DROP_QPN:
	case VB_REASON_DROP_STATE:
	case VB_REASON_DROP_TYPE:
	case VB_REASON_DROP_TOO_LONG:
	case VB_REASON_DROP_ACCESS:
	case VB_REASON_DROP_INBOX:
	case VB_REASON_DROP_NOT_YET:
	case VB_REASON_DROP_FAILED:
		c->rx_dropped++;
		break;
	default:
		break;
	}
}

void vb_count_failure(struct vb_engine *e, bool is_send, enum ibv_wc_status status)
{
	struct vb_port_counters *c = e->port;
	bool flushed = status == IBV_WC_WR_FLUSH_ERR;

	if (!c)
		return;
	if (!is_send) {
		c->resp_cqe_error++;
		c->resp_cqe_flush_error += flushed;
		c->resp_local_length_error += status == IBV_WC_LOC_LEN_ERR;
		return;
	}
	c->req_cqe_error++;
	c->req_cqe_flush_error += flushed;
	c->req_remote_access_errors += status == IBV_WC_REM_ACCESS_ERR;
	c->req_remote_invalid_request += status == IBV_WC_REM_INV_REQ_ERR;
	c->req_transport_retries_exceeded += status == IBV_WC_RETRY_EXC_ERR;
	c->req_rnr_retries_exceeded += status == IBV_WC_RNR_RETRY_EXC_ERR;
}

void vb_count_event(struct vb_engine *e, enum vb_count what)
{
	struct vb_port_counters *c = e->port;

	if (!c)
		return;
	switch (what) {
	case VB_COUNT_OUT_OF_SEQUENCE:
		c->out_of_sequence++;
		break;
	case VB_COUNT_DUPLICATE:
		c->duplicate_request++;
		break;
	case VB_COUNT_TIMEOUT:
		c->local_ack_timeout_err++;
		break;
	case VB_COUNT_IMPLIED_NAK:
		c->implied_nak_seq_err++;
		break;
	}
}
