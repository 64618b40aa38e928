/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages of the connection manager: those that Linux sent are read as what they are and written
 * again to the same bytes; what must be dropped is recognised.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "captured_mads.h"
#include "wire/bytes.h"
#include "wire/cm_address.h"
#include "wire/cm_message.h"

#define GUID_A 0x000000fffe000101u
#define GUID_B 0x000000fffe000102u
#define RPING  0x0000000001061c06u /* port 7174 of RDMA_PS_TCP */

/* In memory of its own, so that a sanitizer sees every byte read beyond it. */
static enum vb_reason decode(const uint8_t *mad, size_t length, struct vb_cm_message *message)
{
	uint8_t *copy = malloc(length ? length : 1);
	enum vb_reason reason;

	assert_non_null(copy);
	memcpy(copy, mad, length);
	reason = vb_cm_message_decode(copy, length, message);
	free(copy);
	return reason;
}

static struct vb_cm_message captured(const char *name)
{
	struct vb_cm_message message;
	uint8_t mad[VB_MAD_BYTES];

	assert_true(captured_mad_find(name, mad));
	assert_int_equal(decode(mad, sizeof(mad), &message), VB_REASON_NONE);
	return message;
}

static void all_are_written_as_they_were(void **state)
{
	(void)state;
	assert_true(captured_mads_count >= 28);
	for (unsigned int i = 0; i < captured_mads_count; i++) {
		struct vb_cm_message message;
		uint8_t mad[VB_MAD_BYTES];
		uint8_t again[VB_MAD_BYTES];

		captured_mad_bytes(&captured_mads[i], mad);
		assert_int_equal(decode(mad, sizeof(mad), &message), VB_REASON_NONE);
		memset(again, 0xa5, sizeof(again));
		vb_cm_message_encode(&message, again);
		assert_memory_equal(mad, again, sizeof(mad));
	}
}

static void v4(uint8_t gid[16], uint8_t last)
{
	const uint8_t value[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 1, [15] = last};

	memcpy(gid, value, 16);
}

static void v6(uint8_t gid[16], uint8_t last)
{
	const uint8_t value[16] = {[0] = 0xfd, [3] = 1, [15] = last};

	memcpy(gid, value, 16);
}

static void a_request_has_its_fields(void **state)
{
	struct vb_cm_message m = captured("v4_cm_rping 1");
	uint8_t gid[16];

	(void)state;
	assert_int_equal(m.attribute, VB_CM_REQ);
	assert_int_equal(m.tid, 0x256639d78u);
	assert_int_equal(m.modifier, 0);
	assert_int_equal(m.local_id, 0x789d6356u);
	assert_int_equal(m.remote_id, 0);
	assert_int_equal(m.req.service_id, RPING);
	assert_int_equal(m.req.guid, GUID_A);
	assert_int_equal(m.req.vendor_id, 0);
	assert_int_equal(m.req.qkey, 0);
	assert_int_equal(m.req.qpn, 0x11);
	assert_int_equal(m.req.responder_resources, 1);
	assert_int_equal(m.req.initiator_depth, 1);
	assert_int_equal(m.req.remote_timeout, 20);
	assert_int_equal(m.req.local_timeout, 20);
	assert_int_equal(m.req.service, VB_CM_RC);
	assert_int_equal(m.req.extended, 0);
	assert_false(m.req.flow_control);
	assert_int_equal(m.req.psn, 0x08c6ca);
	assert_int_equal(m.req.retry_count, 7);
	assert_int_equal(m.req.rnr_retry_count, 7);
	assert_int_equal(m.req.pkey, 0xffff);
	assert_int_equal(m.req.mtu, 5);
	assert_int_equal(m.req.cm_retries, 15);
	assert_false(m.req.srq);
	assert_int_equal(m.req.primary.local_lid, 0xffff);
	assert_int_equal(m.req.primary.remote_lid, 0xffff);
	v4(gid, 1);
	assert_memory_equal(m.req.primary.local_gid, gid, 16);
	v4(gid, 2);
	assert_memory_equal(m.req.primary.remote_gid, gid, 16);
	assert_int_equal(m.req.primary.flow_label, 0x2187e);
	assert_int_equal(m.req.primary.hop_limit, 64);
	assert_int_equal(m.req.primary.traffic_class, 0);
	assert_int_equal(m.req.primary.ack_timeout, 19);
	assert_false(m.req.primary.subnet_local);
	assert_int_equal(m.req.alternate.hop_limit, 0);
}

static void requests_differ_as_their_programs(void **state)
{
	struct vb_cm_message m = captured("v4_cm_rstream 1");

	(void)state;
	assert_true(m.req.flow_control);
	assert_int_equal(m.req.responder_resources, 0);
	assert_int_equal(m.private_data[VB_CM_ADDRESS_BYTES], 1); /* version of rsockets */
	m = captured("v4_cm_ucmatose 1");
	assert_int_equal(m.req.retry_count, 5);
	assert_int_equal(m.req.rnr_retry_count, 0);
}

static void a_request_has_its_addresses(void **state)
{
	struct vb_cm_message m = captured("v4_cm_rej_consumer 1");
	uint8_t again[VB_CM_ADDRESS_BYTES];
	struct vb_cm_address address;
	uint8_t gid[16];

	(void)state;
	assert_true(vb_cm_address_decode(m.private_data, &address));
	assert_int_equal(address.version, 4);
	assert_int_equal(address.port, 0xcf46);
	v4(gid, 1);
	assert_memory_equal(address.source, gid, 16);
	v4(gid, 2);
	assert_memory_equal(address.destination, gid, 16);
	vb_cm_address_encode(&address, again);
	assert_memory_equal(again, m.private_data, sizeof(again));
	assert_string_equal((char *)m.private_data + VB_CM_ADDRESS_BYTES, "hello from the client");

	m = captured("v6_cm_rping 1");
	assert_true(vb_cm_address_decode(m.private_data, &address));
	assert_int_equal(address.version, 6);
	assert_int_equal(address.port, 0xb7a1);
	v6(gid, 2);
	assert_memory_equal(address.destination, gid, 16);
	vb_cm_address_encode(&address, again);
	assert_memory_equal(again, m.private_data, sizeof(again));
	assert_memory_equal(m.req.primary.remote_gid, gid, 16);
	assert_int_equal(m.req.primary.flow_label, 0x65885);

	m.private_data[0] = 0x10;
	assert_false(vb_cm_address_decode(m.private_data, &address));
	m.private_data[0] = 0;
	m.private_data[1] = 0x50;
	assert_false(vb_cm_address_decode(m.private_data, &address));
	assert_int_equal(vb_cm_service_id(0x106, 7174), RPING);
}

static void a_reply_has_its_fields(void **state)
{
	struct vb_cm_message m = captured("v4_cm_rping 2");

	(void)state;
	assert_int_equal(m.attribute, VB_CM_REP);
	assert_int_equal(m.tid, 0x256639d78u);
	assert_int_equal(m.local_id, 0x7b9d6356u);
	assert_int_equal(m.remote_id, 0x789d6356u);
	assert_int_equal(m.rep.qpn, 0x11);
	assert_int_equal(m.rep.psn, 0xc3a013);
	assert_int_equal(m.rep.responder_resources, 1);
	assert_int_equal(m.rep.initiator_depth, 1);
	assert_int_equal(m.rep.ack_delay, 15);
	assert_int_equal(m.rep.failover, 0);
	assert_false(m.rep.flow_control);
	assert_int_equal(m.rep.rnr_retry_count, 7);
	assert_false(m.rep.srq);
	assert_int_equal(m.rep.guid, GUID_B);
	assert_int_equal(m.rep.vendor_id, 0);
	m = captured("v4_cm_rstream 2");
	assert_true(m.rep.flow_control);
	assert_int_equal(m.private_data[0], 1);
	assert_int_equal(vb_get16(m.private_data + 2), 384);
}

static void the_short_ones_have_their_fields(void **state)
{
	struct vb_cm_message m = captured("v4_cm_rping 3");

	(void)state;
	assert_int_equal(m.attribute, VB_CM_RTU);
	assert_int_equal(m.local_id, 0x789d6356u);
	assert_int_equal(m.remote_id, 0x7b9d6356u);
	m = captured("v4_cm_rping 28");
	assert_int_equal(m.attribute, VB_CM_DREQ);
	assert_int_equal(m.dreq.remote_qpn, 0x11);
	m = captured("v4_cm_rping 29");
	assert_int_equal(m.attribute, VB_CM_DREP);
	assert_int_equal(m.local_id, 0x7b9d6356u);
	m = captured("v4_cm_rej_consumer 2");
	assert_int_equal(m.attribute, VB_CM_REJ);
	assert_int_equal(m.local_id, 0xfedca4bbu);
	assert_int_equal(m.remote_id, 0xf9dca4bbu);
	assert_int_equal(m.rej.reason, VB_CM_REJ_CONSUMER);
	assert_int_equal(m.rej.answered, VB_CM_ANSWERED_REQ);
	assert_int_equal(m.rej.info_length, 0);
	assert_string_equal((char *)m.private_data, "go away");
	m = captured("v4_cm_rej_noservice 2");
	assert_int_equal(m.local_id, 0);
	assert_int_equal(m.rej.reason, VB_CM_REJ_INVALID_SERVICE_ID);
}

static void sidr_has_its_fields(void **state)
{
	struct vb_cm_message m = captured("v4_cm_udaddy_sidr 1");

	(void)state;
	assert_int_equal(m.attribute, VB_CM_SIDR_REQ);
	assert_int_equal(m.local_id, 0x759d6356u);
	assert_int_equal(m.sidr_req.pkey, 0xffff);
	assert_int_equal(m.sidr_req.service_id, vb_cm_service_id(0x111, 7174));
	m = captured("v4_cm_udaddy_sidr 2");
	assert_int_equal(m.attribute, VB_CM_SIDR_REP);
	assert_int_equal(m.local_id, 0);
	assert_int_equal(m.remote_id, 0x759d6356u);
	assert_int_equal(m.sidr_rep.status, VB_CM_SIDR_VALID);
	assert_int_equal(m.sidr_rep.qpn, 0x14);
	assert_int_equal(m.sidr_rep.qkey, 0x01234567);
	assert_int_equal(m.sidr_rep.service_id, vb_cm_service_id(0x111, 7174));
	m = captured("v4_cm_sidr_rej 2");
	assert_int_equal(m.sidr_rep.status, VB_CM_SIDR_NO_SERVICE);
}

/* Fields that no capture has a value in: each is written and read at its full width. */
static void wide_fields_keep_their_bits(void **state)
{
	struct vb_cm_message m = captured("v4_cm_rping 1");
	struct vb_cm_message again;
	uint8_t mad[VB_MAD_BYTES];

	(void)state;
	m.req.service = VB_CM_XRC;
	m.req.extended = 1;
	m.req.srq = m.req.rdc = true;
	m.req.vendor_id = 0x123456;
	m.modifier = 0x89abcdef;
	m.req.eecn = 0xfedcba;
	m.req.remote_eecn = 0xabcdef;
	m.req.alternate = m.req.primary;
	m.req.alternate.rate = 0x3f;
	m.req.alternate.sl = 15;
	m.req.alternate.subnet_local = true;
	m.req.alternate.flow_label = 0xfffff;
	vb_cm_message_encode(&m, mad);
	assert_int_equal(decode(mad, sizeof(mad), &again), VB_REASON_NONE);
	assert_memory_equal(&m, &again, sizeof(m));

	m = captured("v4_cm_rping 2");
	m.rep.vendor_id = 0x123456;
	m.rep.failover = 3;
	m.rep.srq = m.rep.flow_control = true;
	m.rep.eecn = 0xfedcba;
	vb_cm_message_encode(&m, mad);
	assert_int_equal(decode(mad, sizeof(mad), &again), VB_REASON_NONE);
	assert_memory_equal(&m, &again, sizeof(m));

	memset(&m, 0, sizeof(m));
	m.attribute = VB_CM_MRA;
	m.local_id = 1;
	m.remote_id = 0xffffffff;
	m.mra.answered = VB_CM_ANSWERED_OTHER;
	m.mra.service_timeout = 31;
	memset(m.private_data, 0x5a, VB_CM_PRIVATE_MRA);
	vb_cm_message_encode(&m, mad);
	assert_int_equal(decode(mad, sizeof(mad), &again), VB_REASON_NONE);
	assert_memory_equal(&m, &again, sizeof(m));
}

static void others_are_dropped(void **state)
{
	static const struct {
		unsigned int at;
		uint8_t value;
		enum vb_reason reason;
	} rows[] = {
		{0, 0, VB_REASON_CM_OTHER}, /* base version */
		{0, 2, VB_REASON_CM_OTHER},
		{1, 0x03, VB_REASON_CM_OTHER}, /* class: SA */
		{2, 1, VB_REASON_CM_OTHER},    /* class version */
		{2, 3, VB_REASON_CM_OTHER},
		{3, 0x01, VB_REASON_CM_OTHER},  /* method: Get */
		{3, 0x83, VB_REASON_CM_OTHER},  /* the response bit */
		{16, 0x01, VB_REASON_CM_OTHER}, /* attribute 0x0110 */
		{17, 0x00, VB_REASON_CM_OTHER},
		{17, 0x01, VB_REASON_CM_OTHER}, /* ClassPortInfo */
		{17, VB_CM_LAP, VB_REASON_CM_OTHER},
		{17, VB_CM_APR, VB_REASON_CM_OTHER},
		{17, 0x1b, VB_REASON_CM_OTHER},
		{17, 0xff, VB_REASON_CM_OTHER},
	};
	struct vb_cm_message message;
	uint8_t mad[VB_MAD_BYTES];

	(void)state;
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(captured_mad_find("v4_cm_rping 1", mad));
		mad[rows[i].at] = rows[i].value;
		assert_int_equal(decode(mad, sizeof(mad), &message), rows[i].reason);
		assert_int_equal(vb_cm_message_judge(mad, sizeof(mad)), rows[i].reason);
	}
}

static void malformed_ones_are_dropped(void **state)
{
	uint8_t mad[VB_MAD_BYTES + 1] = {0};
	struct vb_cm_message message;

	(void)state;
	assert_true(captured_mad_find("v4_cm_rping 1", mad));
	for (size_t length = 0; length < VB_MAD_BYTES; length++)
		assert_int_equal(decode(mad, length, &message), VB_REASON_CM_MALFORMED);
	assert_int_equal(decode(mad, sizeof(mad), &message), VB_REASON_CM_MALFORMED);
	memset(mad + VB_MAD_HEADER_BYTES, 0, 4); /* REQ without an id */
	assert_int_equal(decode(mad, VB_MAD_BYTES, &message), VB_REASON_CM_MALFORMED);
	assert_true(captured_mad_find("v4_cm_rping 2", mad));
	memset(mad + VB_MAD_HEADER_BYTES, 0, 4); /* REP without an id */
	assert_int_equal(decode(mad, VB_MAD_BYTES, &message), VB_REASON_CM_MALFORMED);
	assert_true(captured_mad_find("v4_cm_rej_consumer 2", mad));
	mad[VB_MAD_HEADER_BYTES + 9] = 72 << 1;
	assert_int_equal(decode(mad, VB_MAD_BYTES, &message), VB_REASON_NONE);
	assert_int_equal(message.rej.info_length, 72);
	mad[VB_MAD_HEADER_BYTES + 9] = 73 << 1;
	assert_int_equal(decode(mad, VB_MAD_BYTES, &message), VB_REASON_CM_MALFORMED);
	assert_true(captured_mad_find("v4_cm_udaddy_sidr 2", mad));
	mad[VB_MAD_HEADER_BYTES + 5] = 73;
	assert_int_equal(decode(mad, VB_MAD_BYTES, &message), VB_REASON_CM_MALFORMED);
}

static void carriers_find_the_receiver(void **state)
{
	static const struct {
		const char *name;
		uint32_t receiver, sender;
		uint64_t service;
	} rows[] = {
		{"v4_cm_rping 1", 0, 0x789d6356, RPING},
		{"v4_cm_rping 2", 0x789d6356, 0x7b9d6356, 0},
		{"v4_cm_rping 3", 0x7b9d6356, 0x789d6356, 0},
		{"v4_cm_rping 28", 0x7b9d6356, 0x789d6356, 0},
		{"v4_cm_rping 29", 0x789d6356, 0x7b9d6356, 0},
		{"v4_cm_rej_noservice 2", 0x7f9d6356, 0, 0},
		{"v4_cm_udaddy_sidr 1", 0, 0x759d6356, 0x01111c06},
		{"v4_cm_udaddy_sidr 2", 0x759d6356, 0, 0},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t mad[VB_MAD_BYTES];
		uint64_t service = 0;

		assert_true(captured_mad_find(rows[i].name, mad));
		assert_int_equal(vb_cm_message_judge(mad, sizeof(mad)), VB_REASON_NONE);
		assert_int_equal(vb_cm_message_receiver(mad), rows[i].receiver);
		assert_int_equal(vb_cm_message_sender(mad), rows[i].sender);
		assert_int_equal(vb_cm_message_service(mad, &service), rows[i].service != 0);
		assert_int_equal(service, rows[i].service);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_written_as_they_were),
		cmocka_unit_test(a_request_has_its_fields),
		cmocka_unit_test(requests_differ_as_their_programs),
		cmocka_unit_test(a_request_has_its_addresses),
		cmocka_unit_test(a_reply_has_its_fields),
		cmocka_unit_test(the_short_ones_have_their_fields),
		cmocka_unit_test(sidr_has_its_fields),
		cmocka_unit_test(wide_fields_keep_their_bits),
		cmocka_unit_test(others_are_dropped),
		cmocka_unit_test(malformed_ones_are_dropped),
		cmocka_unit_test(carriers_find_the_receiver),
	};

	return cmocka_run_group_tests_name("cm_messages", tests, NULL, NULL);
}
