/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One process's side of a test of the host room: a node with a progress thread that records what it
 * is told, and forked processes that have one of their own, with a socket to talk to the test.
 */
#ifndef TESTS_UNIT_HOST_END_H
#define TESTS_UNIT_HOST_END_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/channel.h"
#include "host/node.h"
#include "host/peer.h"

#define END_CHANNELS    512
/* For what must come, however slow the machine is. */
#define END_PATIENCE_MS 20000

struct end {
	struct vb_node *node;
	pthread_t thread;
	_Atomic bool stop;
	_Atomic int ups;
	_Atomic int downs;
	_Atomic int deaths;
	_Atomic int changes;
	_Atomic int rings;        /* vb_node_wait() returned true */
	_Atomic int64_t death_at; /* CLOCK_MONOTONIC ns */
	_Atomic(struct vb_channel *) up[END_CHANNELS];
	_Atomic(struct vb_channel *) down;
	_Atomic(struct vb_peer *) dead_peer;
	_Atomic uint32_t no_engine;     /* channel_up answers -ENOENT for this engine */
	void (*at_up)(struct end *end); /* called in channel_up, NULL: nothing */
};

/* Both abort the test on failure. */
void end_start(struct end *end);
void end_stop(struct end *end);
/* A fresh engine. */
uint32_t end_engine(struct end *end);
/* A published queue pair of the engine. */
uint32_t end_qp(struct end *end, uint32_t engine, struct vb_page_qp **entry);
/* Asks until there is an answer that stays, at most timeout_ms; for the other's memory as well. */
struct vb_channel *end_find(struct end *end, uint32_t engine, uint32_t qpn, int timeout_ms,
			    enum vb_contact *why);
/* The n-th channel that was announced, waiting for it. */
struct vb_channel *end_announced(struct end *end, int n, int timeout_ms);
/* Closes a channel; end_stop() closes those that the test did not. */
void end_close(struct end *end, struct vb_channel *channel);
/* Waits until *count >= want. */
bool end_await(_Atomic int *count, int want, int timeout_ms);
int64_t end_clock(void);
void end_sleep_ms(int ms);

/*
 * Pushes or takes one 64-bit number through a channel, waiting for room or arrival; false after
 * END_PATIENCE_MS.
 */
bool end_push(struct vb_channel *channel, uint64_t number);
bool end_take(struct vb_channel *channel, uint64_t *number);

/*
 * A process of its own, to be made before any node of this one: sanitizers do not survive a fork
 * beside threads that allocate. fn runs in it and talks through `sock`; its return value is the
 * exit status.
 */
struct child {
	pid_t pid;
	int sock;
};
void child_start(struct child *child, int (*fn)(int sock, void *arg), void *arg);
/*
 * What most tests of two processes begin with. beside: starts the child, then this process's node with
 * an engine, which is returned; *qpn: what the child tells first, its queue pair. serve: the child's
 * part of it; *engine, if not NULL: that of the queue pair. Returns the channel that is made to it.
 */
uint32_t end_start_beside(struct end *end, struct child *child, int (*fn)(int sock, void *arg),
			  uint32_t *qpn);
struct vb_channel *end_serve(struct end *end, int sock, uint32_t *engine);
/* Expects a normal end with status 0. */
void child_join(struct child *child);
void child_kill(struct child *child);
/* Sockets carry 64-bit numbers. get: aborts when the other side is gone or 60 s pass. */
void tell(int sock, uint64_t number);
uint64_t hear(int sock);

#endif
