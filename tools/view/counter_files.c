/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of counter files. Names and units are those of the kernel's InfiniBand ports. */
#include "view/counter_files.h"

#include <stddef.h>

#define MEMBER(name) (offsetof(struct vb_port_counters, name) / sizeof(uint64_t) + 1)

/* What cannot happen here, and is shown because monitors want every file. */
#define ZERO(name)                        \
	{                                 \
		"counters", name, 0, 0, 1 \
	}
#define PORT(name, a)                             \
	{                                         \
		"counters", name, MEMBER(a), 0, 1 \
	}
#define PORT_LESS(name, a, b)                             \
	{                                                 \
		"counters", name, MEMBER(a), MEMBER(b), 1 \
	}
#define WORDS(name, a)                            \
	{                                         \
		"counters", name, MEMBER(a), 0, 4 \
	}
#define HARDWARE(name)                                   \
	{                                                \
		"hw_counters", #name, MEMBER(name), 0, 1 \
	}

const struct counter_file counter_files[] = {
	WORDS("port_xmit_data", tx_bytes),
	WORDS("port_rcv_data", rx_bytes),
	PORT("port_xmit_packets", tx_packets),
	PORT("port_rcv_packets", rx_packets),
	PORT_LESS("unicast_xmit_packets", tx_packets, tx_multicast),
	PORT_LESS("unicast_rcv_packets", rx_packets, rx_multicast),
	PORT("multicast_xmit_packets", tx_multicast),
	PORT("multicast_rcv_packets", rx_multicast),
	PORT("port_rcv_errors", rx_errors),
	PORT("port_xmit_discards", tx_discards),
	PORT("port_rcv_constraint_errors", rx_constraint),
	ZERO("port_xmit_constraint_errors"),
	ZERO("port_rcv_remote_physical_errors"),
	ZERO("port_rcv_switch_relay_errors"),
	ZERO("port_xmit_wait"),
	ZERO("symbol_error"),
	ZERO("link_error_recovery"),
	ZERO("link_downed"), /* see port_files.c */
	ZERO("local_link_integrity_errors"),
	ZERO("excessive_buffer_overrun_errors"),
	ZERO("VL15_dropped"),
	HARDWARE(out_of_sequence),
	HARDWARE(out_of_buffer),
	HARDWARE(duplicate_request),
	HARDWARE(packet_seq_err),
	HARDWARE(rnr_nak_retry_err),
	HARDWARE(local_ack_timeout_err),
	HARDWARE(implied_nak_seq_err),
	HARDWARE(resp_local_length_error),
	HARDWARE(resp_remote_access_errors),
	HARDWARE(resp_cqe_error),
	HARDWARE(resp_cqe_flush_error),
	HARDWARE(req_cqe_error),
	HARDWARE(req_cqe_flush_error),
	HARDWARE(req_remote_access_errors),
	HARDWARE(req_remote_invalid_request),
	HARDWARE(req_transport_retries_exceeded),
	HARDWARE(req_rnr_retries_exceeded),
	HARDWARE(rx_read_requests),
	HARDWARE(rx_write_requests),
	HARDWARE(rx_atomic_requests),
	{"hw_counters", "rx_icrc_encapsulated", MEMBER(rx_icrc), 0, 1},
	{"hw_counters", "rx_dropped", MEMBER(rx_dropped), 0, 1},
};

const unsigned int counter_file_count = sizeof(counter_files) / sizeof(counter_files[0]);

static uint64_t member(const struct vb_port_counters *sum, uint16_t number)
{
	return number ? ((const uint64_t *)(const void *)sum)[number - 1] : 0;
}

uint64_t counter_value(const struct counter_file *file, const struct vb_port_counters *sum)
{
	uint64_t a = member(sum, file->a), b = member(sum, file->b);

	/* The two were read one after the other. */
	return (a > b ? a - b : 0) / file->unit;
}

unsigned int counter_text(char text[COUNTER_TEXT], uint64_t value)
{
	char digits[COUNTER_TEXT];
	unsigned int n = 0, length = 0;

	do {
		digits[n++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	while (n)
		text[length++] = digits[--n];
	text[length++] = '\n';
	text[length] = '\0';
	return length;
}
