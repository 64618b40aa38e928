/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The exchange program: one binary, run on two libraries, one instance on each side of the wire.
 * Each side knows what the other is about to do (the plans come from a shared seed), and checks
 * every byte of what arrived and of what lies between.
 *
 * Whatever is wrong ends the program through fail(); the other side then sees the TCP connection
 * close, and fails too.
 */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Four areas a side: what I send, what my READs bring, what is written to me, what is read from me.
 */
enum area { AREA_SOURCE, AREA_RESULT, AREA_SINK, AREA_STORE, AREAS };
#define AREA_BYTES (4u << 20)

/* What a side tells of a queue pair. */
struct address {
	uint32_t qpn;
	uint32_t psn;
	uint32_t rkey;
	uint32_t pad;
	uint64_t memory;
	union ibv_gid gid;
};

struct exchange {
	const char *device;
	const char *tests; /* comma separated */
	const char *port;
	const char *server; /* NULL: this is the server */
	int gid_index;
	uint32_t mtu;  /* bytes */
	uint32_t seed; /* the client's counts */
	bool lossy;    /* packets get lost: services without repetition may lose messages */

	int sock;
	uint32_t step; /* barriers passed */
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory; /* AREAS * AREA_BYTES */
	union ibv_gid gid;
};

/* A queue pair and what it is connected to. */
struct end {
	struct ibv_qp *qp;
	struct address peer;
};

/* What a queue pair is made with; the rest is fixed. */
struct profile {
	enum ibv_qp_type type;
	unsigned int access;
	uint8_t rnr_retry;
	uint8_t retry;
	uint8_t timeout;
};

/* RC's waits long for answers; where packets get lost give it a shorter time-out. */
extern const struct profile rc_profile;
extern const struct profile uc_profile;
extern const struct profile ud_profile;

#define UD_QKEY   0x1234567u
#define GRH_BYTES 40u

/* report.c */
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Fails unless err, a positive errno, is 0. */
void must(int err, const char *what);

/* tcp.c: the side channel. */
void tcp_connect(struct exchange *x);
void tcp_swap(struct exchange *x, const void *mine, void *theirs, uint32_t size);
/* Both sides have come here. */
void barrier(struct exchange *x, const char *where);

/* pattern.c: byte i of a message is a function of (seed, index, i). */
void pattern_fill(uint8_t *to, uint32_t length, uint32_t seed, uint32_t index);
/* Offset of the first wrong byte, or length. */
uint32_t pattern_check(const uint8_t *from, uint32_t length, uint32_t seed, uint32_t index);
uint32_t random_next(uint32_t *state);

/* queue_pair.c */
void device_open(struct exchange *x);
void device_list_gids(struct exchange *x);
uint8_t *area_of(struct exchange *x, enum area area);
uint64_t peer_area(const struct end *e, enum area area);
/* Creates, tells the other side, connects. */
struct end end_connect(struct exchange *x, const struct profile *profile);
void end_close(struct exchange *x, struct end *e);
/* Waits for a completion, `seconds` at most. False: none came. */
bool completion_within(struct exchange *x, struct ibv_wc *wc, double seconds);
struct ibv_wc completion(struct exchange *x, const char *what);

/* The tests. */
void test_rc(struct exchange *x);
void test_uc(struct exchange *x);
void test_ud(struct exchange *x);
void test_multicast(struct exchange *x);
void test_errors(struct exchange *x);

#endif
