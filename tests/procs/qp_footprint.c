/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a queue pair costs less than 4 KiB beside its own queues, and less than 8 KiB more once
 * it has a channel to its peer's engine; neither a descriptor nor, within a process, a mapping of
 * its own. Each has a completion queue of its own, and so an engine.
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/qp_state.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FIRST = 64, QPS = 2000, OWN_QUEUES = 512, MADE_MOST = 4096, CHANNEL_MOST = 8192 };
enum { MAPPINGS_MOST = 40, MESSAGE = 8 };

static struct resources resources;
static struct ibv_cq *cq[QPS];
static struct ibv_qp *qp[QPS];
static unsigned char buffer[4096];
static struct ibv_mr *mr;

static long resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long all = 0, resident = 0;

	CHECK(f && fscanf(f, "%ld %ld", &all, &resident) == 2);
	fclose(f);
	return resident * sysconf(_SC_PAGESIZE);
}

static long mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	long lines = 0;
	int c;

	CHECK(f);
	while ((c = fgetc(f)) != EOF)
		lines += c == '\n';
	fclose(f);
	return lines;
}

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void make(int from, int to)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	config.cap = (struct ibv_qp_cap){
		.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
	for (int i = from; i < to; i++) {
		cq[i] = ibv_create_cq(resources.context, 2, NULL, NULL, 0);
		CHECK(cq[i]);
		config.send_cq = config.recv_cq = cq[i];
		qp[i] = ep_create_qp(&resources, &config);
	}
}

/* Each with its neighbour, and a message both ways. */
static void join(int from, int to)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_sge sge = {(uintptr_t)buffer, MESSAGE, mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad_send;

	config.max_rd_atomic = config.max_dest_rd_atomic = 1;
	for (int i = from; i < to; i++) {
		struct peer local = {.psn = 7, .mtu = resources.mtu};
		struct peer remote = {.gid = resources.gid,
				      .qpn = qp[i ^ 1]->qp_num,
				      .psn = 7,
				      .mtu = resources.mtu};
		struct ibv_qp_attr attr = ep_attr(&config, &local, &remote);

		CHECK_ZERO(qp_step(qp[i], &attr, IBV_QPS_RTR));
		CHECK_ZERO(qp_step(qp[i], &attr, IBV_QPS_RTS));
		CHECK_ZERO(ibv_post_recv(qp[i], &recv, &bad_recv));
	}
	for (int i = from; i < to; i++)
		CHECK_ZERO(ibv_post_send(qp[i], &send, &bad_send));
	for (int i = from; i < to; i++) {
		struct ibv_wc wc;

		completion_next(cq[i], &wc);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		completion_next(cq[i], &wc);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	}
}

static bool instrumented(void)
{
	return getenv("ASAN_OPTIONS") || getenv("TSAN_OPTIONS");
}

int main(void)
{
	long before, made, joined, maps;
	int fds;

	promise("what a queue pair costs is bounded");
	watchdog(100);
	resources_open(&resources, 0, false);
	mr = ibv_reg_mr(resources.pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	/* What the process makes once. */
	make(0, FIRST);
	join(0, FIRST);
	before = resident_bytes();
	maps = mappings();
	fds = descriptors();
	make(FIRST, QPS);
	made = (resident_bytes() - before) / (QPS - FIRST);
	join(FIRST, QPS);
	joined = (resident_bytes() - before) / (QPS - FIRST) - made;
	printf("%ld bytes each, %ld with a channel\n", made, joined);
	EXPECT_SAY(instrumented() || made <= MADE_MOST + OWN_QUEUES, "a queue pair costs %ld bytes",
		   made);
	EXPECT_SAY(instrumented() || joined <= CHANNEL_MOST, "a channel adds %ld bytes", joined);
	/* Names of blocks are descriptors, two for 1024 numbers. */
	EXPECT_SAY(descriptors() - fds <= 2 * (QPS / 1024 + 1), "%d descriptors more",
		   descriptors() - fds);
	EXPECT_SAY(instrumented() || mappings() - maps <= MAPPINGS_MOST, "%ld mappings more",
		   mappings() - maps);
	for (int i = 0; i < QPS; i++) {
		CHECK_ZERO(ibv_destroy_qp(qp[i]));
		CHECK_ZERO(ibv_destroy_cq(cq[i]));
	}
	CHECK_ZERO(ibv_dereg_mr(mr));
	resources_close(&resources);
	return expect_done();
}
