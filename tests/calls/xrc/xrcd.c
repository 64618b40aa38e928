/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * XRC domains: what ibv_open_xrcd(3) refuses, row by row, how many queue pairs a domain has, and
 * what those refuse.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define COUNT(rows)  (sizeof(rows) / sizeof((rows)[0]))
#define MOST_DOMAINS 65535 /* ibv_open_xrcd(3) */
#define DOMAIN_QPS   1024  /* of a domain that processes share, ibv_open_qp(3) */

static struct ibv_context *ctx;

/* A file that goes with its descriptor. */
static int file_make(void)
{
	char path[] = "/tmp/vb-xrcd-XXXXXX";
	int file = mkstemp(path);

	CHECK(file >= 0 && unlink(path) == 0);
	return file;
}

static void domains(void)
{
	const uint32_t both = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	int file = file_make();
	const struct {
		const char *what;
		uint32_t comp_mask;
		int fd, oflags, err;
	} rows[] = {
		{"no mask", 0, -1, O_CREAT, EINVAL},
		{"the descriptor's bit alone", IBV_XRCD_INIT_ATTR_FD, -1, O_CREAT, EINVAL},
		{"the flags' bit alone", IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT, EINVAL},
		{"the first unknown bit", both | IBV_XRCD_INIT_ATTR_RESERVED, -1, O_CREAT, EINVAL},
		{"the last bit", both | 1u << 31, -1, O_CREAT, EINVAL},
		{"descriptor -2", both, -2, O_CREAT, EBADF},
		{"a descriptor that is not open", both, 1 << 20, O_CREAT, EBADF},
		{"private", both, -1, O_CREAT, 0},
		{"private, no flags", both, -1, 0, 0},
		{"private, O_EXCL", both, -1, O_CREAT | O_EXCL, 0},
		{"a file without a domain, no O_CREAT", both, file, 0, EAGAIN},
		{"a file without a domain, O_EXCL alone", both, file, O_EXCL, EAGAIN},
		{"a file without a domain, O_CREAT and O_EXCL", both, file, O_CREAT | O_EXCL, 0},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ibv_xrcd_init_attr attr = {rows[i].comp_mask, rows[i].fd, rows[i].oflags};
		struct ibv_xrcd *xrcd;

		expect_case("open_xrcd: %s", rows[i].what);
		if (rows[i].err) {
			EXPECT_NULL(ibv_open_xrcd(ctx, &attr), rows[i].err);
			continue;
		}
		xrcd = ibv_open_xrcd(ctx, &attr);
		if (EXPECT(xrcd && xrcd->context == ctx))
			EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
	}
	close(file);
}

static struct ibv_xrcd *domain_of(int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	return ibv_open_xrcd(ctx, &attr);
}

/*
 * The domain is the inode's, not its number's: while there is one, no other file gets the number,
 * and no name and no descriptor is needed.
 */
static void inode(void)
{
	char path[] = "/tmp/vb-xrcd-XXXXXX";
	int file = mkstemp(path), by_path = open(path, O_PATH | O_CLOEXEC);
	struct ibv_xrcd *xrcd, *second;

	expect_case("a descriptor with O_PATH names the file");
	CHECK(file >= 0 && by_path >= 0 && unlink(path) == 0);
	xrcd = domain_of(by_path, O_CREAT);
	second = domain_of(file, 0);
	CHECK(xrcd && second);
	EXPECT_EQ(ibv_close_xrcd(second), 0);
	EXPECT_NULL(domain_of(file, O_CREAT | O_EXCL), EINVAL);
	expect_case("the file is deleted and closed; its number is not used again");
	close(file);
	close(by_path);
	for (int i = 0; i < 200; i++) {
		file = file_make();
		EXPECT_NULL(domain_of(file, 0), EAGAIN);
		close(file);
	}
	EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
	expect_case("a lock of the program's on the file ends with its own descriptor");
	snprintf(path, sizeof(path), "/tmp/vb-xrcd-XXXXXX");
	file = mkstemp(path);
	by_path = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(file >= 0 && by_path >= 0 && unlink(path) == 0);
	EXPECT_EQ(flock(file, LOCK_EX), 0);
	xrcd = domain_of(file, O_CREAT);
	CHECK(xrcd);
	close(file);
	EXPECT_EQ(flock(by_path, LOCK_EX | LOCK_NB), 0);
	EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
	close(by_path);
}

/* As many as a device has in a process; after one went another fits. */
static void count(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	static struct ibv_xrcd *xrcd[MOST_DOMAINS];
	int made = 0;

	expect_case("as many domains as there may be, and one more");
	while (made < MOST_DOMAINS && (xrcd[made] = ibv_open_xrcd(ctx, &attr)))
		made++;
	CHECK(made == MOST_DOMAINS);
	EXPECT_NULL(ibv_open_xrcd(ctx, &attr), ENOMEM);
	EXPECT_EQ(ibv_close_xrcd(xrcd[MOST_DOMAINS - 1]), 0);
	xrcd[MOST_DOMAINS - 1] = ibv_open_xrcd(ctx, &attr);
	CHECK(xrcd[MOST_DOMAINS - 1]);
	while (made--) {
		if (ibv_close_xrcd(xrcd[made])) {
			EXPECT_SAY(false, "domain %d does not go", made);
			break;
		}
	}
}

static struct ibv_qp *receiver(struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};

	return ibv_create_qp_ex(ctx, &attr);
}

static void queue_pairs_of_a_domain(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = file_make(),
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(ctx, &attr);
	struct ibv_qp *qp[DOMAIN_QPS] = {NULL};
	int made = 0;

	CHECK(xrcd);
	expect_case("as many queue pairs as a domain has, and one more");
	while (made < DOMAIN_QPS && (qp[made] = receiver(xrcd)))
		made++;
	CHECK(made == DOMAIN_QPS);
	EXPECT_NULL(receiver(xrcd), ENOMEM);
	expect_case("one fits again when one has gone");
	EXPECT_EQ(ibv_destroy_qp(qp[DOMAIN_QPS / 2]), 0);
	qp[DOMAIN_QPS / 2] = receiver(xrcd);
	CHECK(qp[DOMAIN_QPS / 2]);
	EXPECT_NULL(receiver(xrcd), ENOMEM);
	EXPECT_REFUSED(ibv_close_xrcd(xrcd), EBUSY);
	for (int i = 0; i < made; i++)
		EXPECT_EQ(ibv_destroy_qp(qp[i]), 0);
	EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
	close(attr.fd);
}

/* It may have several owners: whose counter would it be (ibv_create_comp_cntr(3))? */
static void completion_counter(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_qp_attach_comp_cntr_attr ops = {.op_mask = IBV_QP_ATTACH_COMP_CNTR_OP_RECV};
	struct ibv_comp_cntr_init_attr init = {.type = IBV_COMP_CNTR_TYPE_WRS};
	struct ibv_comp_cntr *cntr = ibv_create_comp_cntr(ctx, &init);
	struct ibv_xrcd *xrcd = ibv_open_xrcd(ctx, &attr);
	struct ibv_qp *qp;

	expect_case("a completion counter of a receive queue pair");
	CHECK(cntr && xrcd);
	qp = receiver(xrcd);
	CHECK(qp);
	EXPECT_REFUSED(ibv_qp_attach_comp_cntr(qp, cntr, &ops), ENOTSUP);
	EXPECT_EQ(ibv_destroy_comp_cntr(cntr), 0);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	ctx = device_open();
	domains();
	inode();
	count();
	queue_pairs_of_a_domain();
	completion_counter();
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}
