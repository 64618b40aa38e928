/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What librdmacm asks of the library: copies of the kernel's structures, and sysfs files. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "verbs/kern_copy.h"
#include "verbs/sysfs.h"

/* Every byte different from its neighbours, so that a field taken for another shows. */
static void fill(void *object, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)object)[i] = (uint8_t)(i * 7 + 3);
}

#define SAME(field) assert_true((uint64_t)(to.field) == (uint64_t)(from.field))

static void check_ah(const struct ibv_ah_attr *ah, const struct ib_uverbs_ah_attr *kern)
{
	struct ibv_ah_attr to = *ah;
	struct ib_uverbs_ah_attr from = *kern;

	assert_memory_equal(&to.grh.dgid, from.grh.dgid, 16);
	SAME(grh.flow_label);
	SAME(grh.sgid_index);
	SAME(grh.hop_limit);
	SAME(grh.traffic_class);
	SAME(dlid);
	SAME(sl);
	SAME(src_path_bits);
	SAME(static_rate);
	SAME(is_global);
	SAME(port_num);
}

static void qp_attributes(void **state)
{
	struct ib_uverbs_qp_attr from;
	struct ibv_qp_attr to;
	struct ibv_ah_attr ah;

	(void)state;
	fill(&from, sizeof(from));
	memset(&to, 0xff, sizeof(to));
	ibv_copy_qp_attr_from_kern(&to, &from);
	SAME(qp_state);
	SAME(cur_qp_state);
	SAME(path_mtu);
	SAME(path_mig_state);
	SAME(qkey);
	SAME(rq_psn);
	SAME(sq_psn);
	SAME(dest_qp_num);
	SAME(qp_access_flags);
	assert_int_equal(to.cap.max_send_wr, from.max_send_wr);
	assert_int_equal(to.cap.max_recv_wr, from.max_recv_wr);
	assert_int_equal(to.cap.max_send_sge, from.max_send_sge);
	assert_int_equal(to.cap.max_recv_sge, from.max_recv_sge);
	assert_int_equal(to.cap.max_inline_data, from.max_inline_data);
	check_ah(&to.ah_attr, &from.ah_attr);
	check_ah(&to.alt_ah_attr, &from.alt_ah_attr);
	memset(&ah, 0xff, sizeof(ah));
	ibv_copy_ah_attr_from_kern(&ah, &from.ah_attr);
	check_ah(&ah, &from.ah_attr);
	SAME(pkey_index);
	SAME(alt_pkey_index);
	SAME(en_sqd_async_notify);
	SAME(sq_draining);
	SAME(max_rd_atomic);
	SAME(max_dest_rd_atomic);
	SAME(min_rnr_timer);
	SAME(port_num);
	SAME(timeout);
	SAME(retry_cnt);
	SAME(rnr_retry);
	SAME(alt_port_num);
	SAME(alt_timeout);
	assert_int_equal(to.rate_limit, 0);
}

static void path_records(void **state)
{
	struct ib_user_path_rec from, again;
	struct ibv_sa_path_rec to;

	(void)state;
	fill(&from, sizeof(from));
	from.mtu = 4; /* one byte wide on the other side */
	ibv_copy_path_rec_from_kern(&to, &from);
	assert_memory_equal(&to.dgid, from.dgid, 16);
	assert_memory_equal(&to.sgid, from.sgid, 16);
	SAME(dlid);
	SAME(slid);
	SAME(flow_label);
	SAME(pkey);
	SAME(mtu);
	SAME(rate);
	SAME(hop_limit);
	SAME(packet_life_time);
	SAME(preference);
	ibv_copy_path_rec_to_kern(&again, &to);
	assert_memory_equal(&again, &from, sizeof(from));
}

static void sysfs_files(void **state)
{
	char folder[] = "/tmp/verbatim-sysfs-XXXXXX", path[64], buf[8], name[600] = "";
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/abi", folder);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("1234567\n", file);
	fclose(file);
	assert_int_equal(ibv_read_sysfs_file(folder, "abi", buf, sizeof(buf)), 7);
	assert_string_equal(buf, "1234567");
	assert_int_equal(ibv_read_sysfs_file(folder, "abi", buf, 7), -1); /* no room to end it */
	assert_int_equal(ibv_read_sysfs_file(folder, "abi", buf, 0), -1);
	memset(name, 'a', sizeof(name) - 1);
	errno = 0;
	assert_int_equal(ibv_read_sysfs_file(folder, name, buf, sizeof(buf)), -1);
	assert_int_equal(errno, ENAMETOOLONG);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(ibv_read_sysfs_file(folder, "abi", buf, sizeof(buf)), -1); /* empty */
	assert_int_equal(truncate(path, 1), 0); /* one character, no newline */
	assert_int_equal(ibv_read_sysfs_file(folder, "abi", buf, 1), -1);
	assert_int_equal(ibv_read_sysfs_file(folder, "abi", buf, 2), 1);
	unlink(path);
	assert_int_equal(ibv_read_sysfs_file(folder, "abi", buf, sizeof(buf)), -1);
	assert_int_equal(errno, ENOENT);
	rmdir(folder);
}

static void sysfs_path(void **state)
{
	(void)state;
	unsetenv("SYSFS_PATH");
	assert_string_equal(ibv_get_sysfs_path(), "/sys");
	setenv("SYSFS_PATH", "/elsewhere", 1);
	assert_string_equal(ibv_get_sysfs_path(), "/elsewhere");
	unsetenv("SYSFS_PATH");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qp_attributes),
		cmocka_unit_test(path_records),
		cmocka_unit_test(sysfs_files),
		cmocka_unit_test(sysfs_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
