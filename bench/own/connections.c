/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Usage: connections -m tcp|rdma [-k] [-q] -n COUNT -p PORT [ADDRESS] What a connection costs, by
 * sockets and by the connection manager. Without ADDRESS it serves one client and ends.
 *   (without -k)  COUNT connections one after the other. Prints the medians, in us, of
 *                 "connect": from the call that connects until the client knows that the server's
 *                            program has accepted (rdma: ESTABLISHED; tcp: a byte that the server
 *                            writes at once), and
 *                 "whole":   the same from the first call on (rdma_create_id(3), socket(2)).
 *   -k            COUNT connections that stay, all of them begun before the first is waited for.
 *                 Prints "together", the time in ms until the last one was there, and what the
 *                 memory of the process has grown by for each: "kept"; and "queue pair", what of it
 *                 came with the queue pairs, where the side can tell.
 *   -q            rdma: without queue pairs, as programs that make their own
 * All waiting is by calls that block.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

enum { WARM = 8, TIMEOUT_MS = 2000, QPN = 0x1000 };

struct plan {
	bool tcp, keep, bare;
	uint32_t count;
	uint16_t port;
	const char *address; /* NULL: serve */
};

_Noreturn static void fail(const char *what)
{
	fprintf(stderr, "connections: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void must(int failed, const char *what)
{
	if (failed)
		fail(what);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Bytes of memory that the process has. */
static double resident(void)
{
	unsigned long size, pages;
	FILE *file = fopen("/proc/self/statm", "re");

	if (!file || fscanf(file, "%lu %lu", &size, &pages) != 2)
		fail("/proc/self/statm");
	fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static struct sockaddr_in address_of(const struct plan *p)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(p->port)};

	if (p->address && inet_pton(AF_INET, p->address, &a.sin_addr) != 1)
		fail(p->address);
	return a;
}

static int ascending(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double median(double *values, uint32_t count)
{
	qsort(values, count, sizeof(*values), ascending);
	return values[count / 2];
}

/* Sockets. */

static void tcp_serve(const struct plan *p)
{
	struct sockaddr_in own = address_of(p);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	uint32_t total = p->keep ? p->count : WARM + p->count;
	char byte = 0;

	must(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), "SO_REUSEADDR");
	must(bind(listener, (struct sockaddr *)&own, sizeof(own)), "bind");
	must(listen(listener, (int)p->count + 1), "listen");
	for (uint32_t i = 0; i < total; i++) {
		int fd = accept(listener, NULL, NULL);

		must(fd < 0, "accept");
		must(write(fd, &byte, 1) != 1, "write");
		if (p->keep)
			continue; /* until the process ends */
		must(read(fd, &byte, 1) != 0, "read");
		close(fd);
	}
	if (p->keep)
		must(poll(NULL, 0, 500) < 0, "poll");
}

static int tcp_begin(const struct plan *p, double *called)
{
	struct sockaddr_in peer = address_of(p);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd < 0, "socket");
	*called = now_us();
	must(connect(fd, (struct sockaddr *)&peer, sizeof(peer)), "connect");
	return fd;
}

static void tcp_turns(const struct plan *p, double *connects, double *wholes)
{
	for (uint32_t i = 0; i < WARM + p->count; i++) {
		double begin = now_us(), called, end;
		int fd = tcp_begin(p, &called);
		char byte;

		must(read(fd, &byte, 1) != 1, "read");
		end = now_us();
		close(fd);
		if (i < WARM)
			continue;
		connects[i - WARM] = end - called;
		wholes[i - WARM] = end - begin;
	}
}

static void tcp_keep(const struct plan *p)
{
	int *fds = calloc(p->count, sizeof(*fds));
	double begin = now_us(), called;
	char byte;

	for (uint32_t i = 0; i < p->count; i++)
		fds[i] = tcp_begin(p, &called);
	for (uint32_t i = 0; i < p->count; i++)
		must(read(fds[i], &byte, 1) != 1, "read");
	printf("together %.3f ms\n", (now_us() - begin) / 1e3);
	free(fds);
}

/* The connection manager. */

static struct rdma_event_channel *channel;
static struct ibv_cq *cq; /* of all queue pairs */

static void make_qp(const struct plan *p, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};

	if (p->bare)
		return;
	if (!cq)
		cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	must(!cq, "ibv_create_cq");
	attr.send_cq = attr.recv_cq = cq;
	must(rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
}

static struct rdma_conn_param param_of(void)
{
	static uint32_t number = QPN;

	return (struct rdma_conn_param){.responder_resources = 1,
					.initiator_depth = 1,
					.retry_count = 7,
					.rnr_retry_count = 7,
					.qp_num = number++};
}

static void end_id(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	must(rdma_destroy_id(id), "rdma_destroy_id");
}

static struct rdma_cm_event *next_event(void)
{
	struct rdma_cm_event *event;

	must(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	if (event->status) {
		errno = event->status < 0 ? -event->status : EPROTO;
		fail(rdma_event_str(event->event));
	}
	return event;
}

/* Waits for this one; others may come before. */
static void expect(enum rdma_cm_event_type type)
{
	for (;;) {
		struct rdma_cm_event *event = next_event();
		bool is = event->event == type;

		rdma_ack_cm_event(event);
		if (is)
			return;
	}
}

static void resolve(struct rdma_cm_id *id, struct sockaddr_in *peer)
{
	must(rdma_resolve_addr(id, NULL, (struct sockaddr *)peer, TIMEOUT_MS), "rdma_resolve_addr");
	expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	must(rdma_resolve_route(id, TIMEOUT_MS), "rdma_resolve_route");
	expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void rdma_serve(const struct plan *p)
{
	struct sockaddr_in own = address_of(p);
	struct rdma_cm_id *listener;
	uint32_t total = p->count + WARM, there = 0, gone = 0;
	double before = 0;

	must(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	must(rdma_bind_addr(listener, (struct sockaddr *)&own), "rdma_bind_addr");
	must(rdma_listen(listener, (int)p->count), "rdma_listen");
	while (gone < total) {
		struct rdma_cm_event *event = next_event();
		enum rdma_cm_event_type type = event->event;
		struct rdma_cm_id *id = event->id;

		rdma_ack_cm_event(event);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			struct rdma_conn_param param = param_of();

			make_qp(p, id);
			must(rdma_accept(id, &param), "rdma_accept");
		} else if (type == RDMA_CM_EVENT_ESTABLISHED) {
			if (++there == WARM)
				before = resident();
			else if (there == total && p->keep)
				printf("kept %.0f\n", (resident() - before) / p->count);
		} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
			must(rdma_disconnect(id), "rdma_disconnect");
			end_id(id);
			gone++;
		}
	}
	end_id(listener);
}

static void rdma_wait_established(const struct plan *p)
{
	struct rdma_cm_event *event = next_event();
	struct rdma_cm_id *id = event->id;

	if (event->event != (p->bare ? RDMA_CM_EVENT_CONNECT_RESPONSE : RDMA_CM_EVENT_ESTABLISHED))
		fail(rdma_event_str(event->event));
	rdma_ack_cm_event(event);
	if (p->bare)
		must(rdma_establish(id), "rdma_establish");
}

static void rdma_one(const struct plan *p, double *connect, double *whole)
{
	struct sockaddr_in peer = address_of(p);
	struct rdma_conn_param param = param_of();
	double begin = now_us(), called, end;
	struct rdma_cm_id *id;

	must(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	resolve(id, &peer);
	make_qp(p, id);
	called = now_us();
	must(rdma_connect(id, &param), "rdma_connect");
	rdma_wait_established(p);
	end = now_us();
	must(rdma_disconnect(id), "rdma_disconnect");
	expect(RDMA_CM_EVENT_DISCONNECTED);
	end_id(id);
	*connect = end - called;
	*whole = end - begin;
}

static void rdma_turns(const struct plan *p, double *connects, double *wholes)
{
	double ignored;

	for (uint32_t i = 0; i < WARM; i++)
		rdma_one(p, &ignored, &ignored);
	for (uint32_t i = 0; i < p->count; i++)
		rdma_one(p, &connects[i], &wholes[i]);
}

static void rdma_keep(const struct plan *p)
{
	struct rdma_cm_id **ids = calloc(p->count, sizeof(*ids));
	struct sockaddr_in peer = address_of(p);
	double ignored, before, begin, qp_before, qp_bytes;

	must(!ids, "calloc");
	for (uint32_t i = 0; i < WARM; i++)
		rdma_one(p, &ignored, &ignored);
	memset(ids, 1, p->count * sizeof(*ids));
	before = resident();
	begin = now_us();
	for (uint32_t i = 0; i < p->count; i++) {
		must(rdma_create_id(channel, &ids[i], NULL, RDMA_PS_TCP), "rdma_create_id");
		resolve(ids[i], &peer);
	}
	qp_before = resident();
	for (uint32_t i = 0; i < p->count; i++)
		make_qp(p, ids[i]);
	qp_bytes = resident() - qp_before;
	for (uint32_t i = 0; i < p->count; i++) {
		struct rdma_conn_param param = param_of();

		must(rdma_connect(ids[i], &param), "rdma_connect");
	}
	for (uint32_t i = 0; i < p->count; i++)
		rdma_wait_established(p);
	printf("together %.3f ms\n", (now_us() - begin) / 1e3);
	printf("kept %.0f\nqueue pair %.0f\n", (resident() - before) / p->count,
	       qp_bytes / p->count);
	for (uint32_t i = 0; i < p->count; i++)
		must(rdma_disconnect(ids[i]), "rdma_disconnect");
	for (uint32_t i = 0; i < p->count; i++)
		expect(RDMA_CM_EVENT_DISCONNECTED);
	for (uint32_t i = 0; i < p->count; i++)
		end_id(ids[i]);
	free(ids);
}

static struct plan plan_of(int argc, char **argv)
{
	struct plan p = {.count = 1};
	int option;

	while ((option = getopt(argc, argv, "m:kqn:p:")) != -1) {
		if (option == 'm')
			p.tcp = !strcmp(optarg, "tcp");
		else if (option == 'k')
			p.keep = true;
		else if (option == 'q')
			p.bare = true;
		else if (option == 'n')
			p.count = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'p')
			p.port = (uint16_t)strtoul(optarg, NULL, 10);
		else
			exit(2);
	}
	p.address = argv[optind];
	return p;
}

static void turns(const struct plan *p)
{
	double *connects = calloc(p->count, sizeof(*connects));
	double *wholes = calloc(p->count, sizeof(*wholes));

	must(!connects || !wholes, "calloc");
	(p->tcp ? tcp_turns : rdma_turns)(p, connects, wholes);
	printf("connect %.2f us\n", median(connects, p->count));
	printf("whole %.2f us\n", median(wholes, p->count));
	free(connects);
	free(wholes);
}

int main(int argc, char **argv)
{
	const struct plan p = plan_of(argc, argv);
	struct rlimit files;

	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	if (!p.tcp) {
		channel = rdma_create_event_channel();
		must(!channel, "rdma_create_event_channel");
	}
	if (!p.address)
		(p.tcp ? tcp_serve : rdma_serve)(&p);
	else if (p.keep)
		(p.tcp ? tcp_keep : rdma_keep)(&p);
	else
		turns(&p);
	return 0;
}
