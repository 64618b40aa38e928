/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the measurements of cost over number share: figures that leave as one JSON object a line,
 * what a process costs at the moment, and queue pairs that are as small as they can be.
 */
#ifndef BENCH_SCALE_H
#define BENCH_SCALE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "support/endpoint.h"

/* Between begin and end: the figures of one run, in the order of the calls. */
void figures_begin(const char *what, uint32_t number);
void figure(const char *name, double value);
void figures_end(void);

uint64_t now_ns(void);
/* (end - begin) / count, in us. */
double us_each(uint64_t begin, uint64_t end, uint64_t count);
double median(double *value, uint32_t count);

/*
 * Bytes of this process: its share of resident pages, and its page tables. Memory of the kernel
 * beside those is not in it.
 */
uint64_t memory_bytes(void);
uint32_t descriptors_open(void);
/* Mappings of the process, of which the kernel has a bound (vm.max_map_count). */
uint32_t mappings(void);

/* Queue pairs of one request each way: what they cost beside their queues. */
struct ep_config small_config(void);
void small_connect(struct ibv_qp *qp, const struct resources *r, uint32_t to);
/* A buffer with a region, whose halves messages come from and go to. */
struct small_buffer {
	unsigned char *data;
	struct ibv_mr *mr;
};
enum { SMALL_BYTES = 4096, SMALL_MESSAGE = 8 };
void small_buffer_open(struct small_buffer *b, const struct resources *r);
void small_receive(struct ibv_qp *qp, const struct small_buffer *b);
void small_send(struct ibv_qp *qp, const struct small_buffer *b);

/* The measurements: argv after the name. */
int measure_qps(int argc, char **argv);
int measure_mrs(int argc, char **argv);
int measure_cqs(int argc, char **argv);
int measure_peers(int argc, char **argv);
int measure_strays(int argc, char **argv);

#endif
