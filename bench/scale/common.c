/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Figures, what a process costs, small queue pairs (scale.h). */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "scale.h"
#include "support/check.h"
#include "support/qp_state.h"

void figures_begin(const char *what, uint32_t number)
{
	printf("{\"what\": \"%s\", \"n\": %u", what, number);
}

void figure(const char *name, double value)
{
	printf(", \"%s\": %.6g", name, value);
}

void figures_end(void)
{
	printf("}\n");
	fflush(stdout);
}

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

double us_each(uint64_t begin, uint64_t end, uint64_t count)
{
	return (double)(end - begin) / 1000.0 / (double)count;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double median(double *value, uint32_t count)
{
	qsort(value, count, sizeof(*value), ascending);
	return value[count / 2];
}

static uint64_t kib_of(const char *path, const char *label)
{
	FILE *f = fopen(path, "r");
	char line[256];
	unsigned long long kib = 0;

	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, label, strlen(label)))
			sscanf(line + strlen(label), " %llu", &kib);
	}
	fclose(f);
	return kib;
}

uint64_t memory_bytes(void)
{
	return (kib_of("/proc/self/smaps_rollup", "Pss:") + kib_of("/proc/self/status", "VmPTE:")) *
	       1024;
}

uint32_t descriptors_open(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint32_t n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 3; /* itself, and its parents */
}

uint32_t mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	uint32_t n = 0;
	int c;

	CHECK(f);
	while ((c = fgetc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

struct ep_config small_config(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	config.cap = (struct ibv_qp_cap){
		.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
	config.max_rd_atomic = config.max_dest_rd_atomic = 1;
	return config;
}

void small_connect(struct ibv_qp *qp, const struct resources *r, uint32_t to)
{
	struct ep_config config = small_config();
	struct peer local = {.psn = 7, .mtu = r->mtu};
	struct peer remote = {.gid = r->gid, .qpn = to, .psn = 7, .mtu = r->mtu};
	struct ibv_qp_attr attr = ep_attr(&config, &local, &remote);

	CHECK_ZERO(qp_step(qp, &attr, IBV_QPS_RTR));
	CHECK_ZERO(qp_step(qp, &attr, IBV_QPS_RTS));
}

void small_buffer_open(struct small_buffer *b, const struct resources *r)
{
	b->data = calloc(1, SMALL_BYTES);
	CHECK(b->data);
	b->mr = ibv_reg_mr(r->pd, b->data, SMALL_BYTES, EP_ACCESS);
	CHECK(b->mr);
}

void small_receive(struct ibv_qp *qp, const struct small_buffer *b)
{
	struct ibv_sge sge = {(uintptr_t)b->data, SMALL_MESSAGE, b->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	CHECK_ZERO(ibv_post_recv(qp, &wr, &bad));
}

void small_send(struct ibv_qp *qp, const struct small_buffer *b)
{
	struct ibv_sge sge = {(uintptr_t)b->data + SMALL_BYTES / 2, SMALL_MESSAGE, b->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	CHECK_ZERO(ibv_post_send(qp, &wr, &bad));
}
