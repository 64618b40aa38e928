/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program with one planted error: `planted CASE active|passive SOCKET`. Two of them, started as
 * processes of their own, are the two ends of a connection. The program itself prints nothing: what
 * is on standard error comes from the library. It ends with status 1 when an operation failed, as
 * programs do, unless the case says otherwise.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/endpoint.h"
#include "support/process.h"

enum { BYTES = 4096, FAILED = 1 };

static struct resources resources;
static struct endpoint end;

static void open_with(enum ibv_qp_type type, int cqe, void (*change)(struct ep_config *))
{
	struct ep_config config = ep_defaults(type);

	if (change)
		change(&config);
	resources_open(&resources, cqe, false);
	ep_open_on(&end, &resources, &config, NULL, BYTES);
}

static void open_rc(void)
{
	open_with(IBV_QPT_RC, 128, NULL);
}

static int close_all(int status)
{
	ep_close(&end);
	resources_close(&resources);
	return status;
}

/* The status of the next completion makes the status of the program. */
static int next(void)
{
	struct ibv_wc wc;

	completion_next(resources.cq, &wc);
	return wc.status == IBV_WC_SUCCESS ? 0 : FAILED;
}

/* Until the other program closes its end, which it does when it ends. */
static void wait_for_end(int sock)
{
	char byte;

	while (recv(sock, &byte, 1, 0) > 0)
		;
}

/* An end that only serves the other one, and learns of a failure by an event. */
static int serve(int sock)
{
	int event;

	ep_exchange(&end, sock);
	wait_for_end(sock);
	event = event_next(resources.context, 0);
	while (event == IBV_EVENT_COMM_EST)
		event = event_next(resources.context, 0);
	return close_all(event < 0 ? 0 : FAILED);
}

static int plain_passive(int sock)
{
	open_rc();
	return serve(sock);
}

static int receiving_passive(int sock)
{
	int status;

	open_rc();
	CHECK_ZERO(ep_recv(&end, 1, 0, BYTES));
	ep_exchange(&end, sock);
	status = next();
	wait_for_end(sock);
	return close_all(status);
}

static int ends_at_once(int sock)
{
	open_rc();
	ep_exchange(&end, sock);
	_exit(0);
}

/* What works. */

static int transfer(int sock)
{
	int status;

	open_rc();
	ep_exchange(&end, sock);
	CHECK_ZERO(ep_send(&end, 1, 0, BYTES, IBV_SEND_SIGNALED));
	status = next();
	return close_all(status);
}

/* Programs ask for more than there is, and go on with less. */
static int probes(int sock)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC};

	open_rc();
	attr.send_cq = attr.recv_cq = resources.cq;
	attr.cap = (struct ibv_qp_cap){1, 1, 1, 1, 1u << 30};
	CHECK(!ibv_create_qp(resources.pd, &attr));
	CHECK(!ibv_reg_dmabuf_mr(resources.pd, 0, BYTES, 0, -1, IBV_ACCESS_LOCAL_WRITE));
	ep_exchange(&end, sock);
	return close_all(0);
}

/* Work that is still posted when the queue pair is moved to the error state. */
static int flushed(int sock)
{
	open_rc();
	CHECK_ZERO(ep_recv(&end, 1, 0, BYTES));
	ep_exchange(&end, sock);
	CHECK_ZERO(ep_move(&end, IBV_QPS_ERR));
	(void)next();
	return close_all(0);
}

/* Completions. */

static int write_to(int sock, size_t remote_offset)
{
	int status;

	open_rc();
	ep_exchange(&end, sock);
	CHECK_ZERO(ep_write(&end, 7, 0, BYTES, remote_offset, IBV_SEND_SIGNALED));
	status = next();
	return close_all(status);
}

static int write_plainly(int sock)
{
	return write_to(sock, 0);
}

static int write_beyond(int sock)
{
	return write_to(sock, 64);
}

static int tells_wrong_key(int sock)
{
	open_rc();
	end.local.rkey ^= 0x00ffff00;
	return serve(sock);
}

static void no_remote_write(struct ep_config *config)
{
	config->qp_access_flags = IBV_ACCESS_REMOTE_READ;
}

static int without_flag(int sock)
{
	open_with(IBV_QPT_RC, 128, no_remote_write);
	return serve(sock);
}

static void no_patience(struct ep_config *config)
{
	config->rnr_retry = 0;
}

static int send_too_early(int sock)
{
	int status;

	open_with(IBV_QPT_RC, 128, no_patience);
	ep_exchange(&end, sock);
	CHECK_ZERO(ep_send(&end, 8, 0, BYTES, IBV_SEND_SIGNALED));
	status = next();
	return close_all(status);
}

static int send_with_wrong_key(int sock)
{
	int status;

	open_rc();
	ep_exchange(&end, sock);
	end.mr->lkey ^= 0x00ffff00;
	CHECK_ZERO(ep_send(&end, 9, 0, BYTES, IBV_SEND_SIGNALED));
	end.mr->lkey ^= 0x00ffff00;
	status = next();
	return close_all(status);
}

static void little_patience(struct ep_config *config)
{
	config->timeout = 8;
	config->retry_cnt = 1;
}

static int send_to_the_dead(int sock)
{
	int status;

	open_with(IBV_QPT_RC, 128, little_patience);
	ep_exchange(&end, sock);
	wait_for_end(sock);
	CHECK_ZERO(ep_send(&end, 10, 0, BYTES, IBV_SEND_SIGNALED));
	status = next();
	return close_all(status);
}

static int send_to_nobody(int sock)
{
	struct peer remote;
	int status;

	open_with(IBV_QPT_RC, 128, little_patience);
	message_swap(sock, &end.local, &remote, sizeof(remote));
	remote.qpn ^= 0x7;
	ep_connect(&end, &remote);
	message_meet(sock);
	CHECK_ZERO(ep_send(&end, 11, 0, BYTES, IBV_SEND_SIGNALED));
	status = next();
	return close_all(status);
}

/* Towards an address that is routed nowhere, if the program runs where there is no route. */
static int send_to_nowhere(int sock)
{
	struct peer remote;
	int status;

	(void)sock;
	open_with(IBV_QPT_RC, 128, little_patience);
	remote = end.local;
	memcpy(remote.gid.raw, (uint8_t[16]){[10] = 0xff, 0xff, 203, 0, 113, 1}, 16);
	if (ep_bring_to(&end, &remote, IBV_QPS_RTS))
		return close_all(FAILED);
	CHECK_ZERO(ep_send(&end, 14, 0, BYTES, IBV_SEND_SIGNALED));
	status = next();
	return close_all(status);
}

static int mixes_families(int sock)
{
	struct peer remote;

	(void)sock;
	open_rc();
	remote = end.local;
	if (end.local.gid.raw[10] == 0xff) /* IPv4, as ::ffff:a.b.c.d */
		memcpy(remote.gid.raw, (uint8_t[16]){0x20, 1, 0xd, 0xb8, [15] = 1}, 16);
	else
		memcpy(remote.gid.raw, (uint8_t[16]){[10] = 0xff, 0xff, 192, 0, 2, 9}, 16);
	return close_all(ep_bring_to(&end, &remote, IBV_QPS_RTS) ? FAILED : 0);
}

static int receive_small(int sock)
{
	int status;

	open_rc();
	CHECK_ZERO(ep_recv(&end, 1, 0, BYTES / 2));
	ep_exchange(&end, sock);
	status = next();
	wait_for_end(sock);
	return close_all(status);
}

/* The program goes on with a new queue pair, and succeeds. */
static int goes_on(int sock)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct endpoint second;

	open_rc();
	ep_exchange(&end, sock);
	end.mr->lkey ^= 0x00ffff00;
	CHECK_ZERO(ep_send(&end, 9, 0, BYTES, IBV_SEND_SIGNALED));
	end.mr->lkey ^= 0x00ffff00;
	(void)next();
	ep_open_on(&second, &resources, &config, NULL, BYTES);
	ep_close(&second);
	return close_all(0);
}

static int looks_away(int sock)
{
	(void)send_with_wrong_key(sock);
	return 0;
}

static int aborts(int sock)
{
	open_rc();
	ep_exchange(&end, sock);
	end.mr->lkey ^= 0x00ffff00;
	CHECK_ZERO(ep_send(&end, 9, 0, BYTES, IBV_SEND_SIGNALED));
	(void)next();
	abort();
}

static int overruns(int sock)
{
	open_with(IBV_QPT_RC, 2, NULL);
	ep_exchange(&end, sock);
	for (uint64_t i = 0; i < 8; i++)
		CHECK_ZERO(ep_write(&end, i, 0, 8, 0, IBV_SEND_SIGNALED));
	CHECK_EQ(event_next(resources.context, COMPLETION_WAIT_MS), IBV_EVENT_CQ_ERR);
	return close_all(FAILED);
}

/* Datagrams. */

static int datagram(int sock)
{
	open_with(IBV_QPT_UD, 128, NULL);
	ep_exchange(&end, sock);
	message_meet(sock);
	CHECK_ZERO(ep_send(&end, 12, 0, 256, IBV_SEND_SIGNALED));
	(void)next();
	message_meet(sock);
	return close_all(0);
}

/* It waits for a datagram that does not come, and gives up. */
static int other_qkey(int sock)
{
	struct ibv_qp_attr attr = {.qkey = EP_QKEY + 1};

	open_with(IBV_QPT_UD, 128, NULL);
	CHECK_ZERO(ep_recv(&end, 1, 0, BYTES));
	ep_exchange(&end, sock);
	CHECK_ZERO(ibv_modify_qp(end.qp, &attr, IBV_QP_QKEY));
	message_meet(sock);
	message_meet(sock);
	completion_none(resources.cq, COMPLETION_QUIET_MS);
	return close_all(FAILED);
}

static int datagram_too_long(int sock)
{
	int status;

	open_with(IBV_QPT_UD, 128, NULL);
	ep_exchange(&end, sock);
	end.buffer[0] = 1;
	CHECK_ZERO(ep_send(&end, 13, 0, BYTES, IBV_SEND_SIGNALED));
	status = next();
	return close_all(status);
}

static int ud_passive(int sock)
{
	open_with(IBV_QPT_UD, 128, NULL);
	return serve(sock);
}

/* Calls; these need no other end. */

static int connects_to(struct ibv_ah_attr *ah, enum ibv_mtu mtu)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = mtu, .dest_qp_num = 17, .ah_attr = *ah};

	return close_all(ibv_modify_qp(end.qp, &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
				 ? FAILED
				 : 0);
}

static int empty_gid(int sock)
{
	struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1, .grh.sgid_index = 60};

	(void)sock;
	open_rc();
	return connects_to(&ah, IBV_MTU_1024);
}

/* ibv_query_gid(3) has filled an empty index with zeros, and the program takes that for no GID. */
static int no_gid(int sock)
{
	struct ibv_ah_attr ah = {.port_num = 1};

	(void)sock;
	open_rc();
	return connects_to(&ah, IBV_MTU_1024);
}

/* Towards another host: VERBATIM_LINK is udp, and the interface has an MTU of 1500. */
static int large_mtu(int sock)
{
	struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1};

	(void)sock;
	open_rc();
	CHECK_ZERO(ibv_query_gid(end.qp->context, 1, 0, &ah.grh.dgid));
	return connects_to(&ah, IBV_MTU_4096);
}

static int skips_a_state(int sock)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

	(void)sock;
	open_rc();
	return close_all(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE) ? FAILED : 0);
}

static int forgets_a_bit(int sock)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};

	(void)sock;
	open_rc();
	return close_all(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE | IBV_QP_AV) ? FAILED : 0);
}

static int registers_nothing(int sock)
{
	void *hole = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)sock;
	open_rc();
	CHECK(hole != MAP_FAILED && !munmap(hole, BYTES));
	return close_all(ibv_reg_mr(resources.pd, hole, BYTES, IBV_ACCESS_LOCAL_WRITE) ? 0
										       : FAILED);
}

static int registers_read_only(int sock)
{
	void *page = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)sock;
	open_rc();
	CHECK(page != MAP_FAILED);
	return close_all(ibv_reg_mr(resources.pd, page, BYTES, IBV_ACCESS_LOCAL_WRITE) ? 0
										       : FAILED);
}

static int asks_too_much(int sock)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC};

	(void)sock;
	open_rc();
	attr.send_cq = attr.recv_cq = resources.cq;
	attr.cap = (struct ibv_qp_cap){1u << 24, 1, 1, 1, 0};
	return close_all(ibv_create_qp(resources.pd, &attr) ? 0 : FAILED);
}

static int fills_the_queue(int sock)
{
	int err = 0;

	open_rc();
	ep_exchange(&end, sock);
	for (uint64_t i = 0; i < 1000 && !err; i++)
		err = ep_write(&end, i, 0, 8, 0, 0);
	return close_all(err ? FAILED : 0);
}

static int posts_too_early(int sock)
{
	(void)sock;
	open_rc();
	return close_all(ep_send(&end, 1, 0, 8, 0) ? FAILED : 0);
}

static int destroys_in_wrong_order(int sock)
{
	(void)sock;
	open_rc();
	CHECK(ibv_dealloc_pd(resources.pd));
	return close_all(0);
}

/* A forked child uses what its parent opened; the parent succeeds. */
static int forks(int sock)
{
	pid_t child;
	int status;

	(void)sock;
	open_rc();
	child = fork();
	CHECK(child >= 0);
	if (!child)
		exit(ep_send(&end, 1, 0, 8, 0) ? FAILED : 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_SAY(WIFEXITED(status) && WEXITSTATUS(status) == FAILED, "the child ended with 0x%x",
		  status);
	return close_all(0);
}

/* A child that only exits must not tell what failed in its parent. */
static int forks_after_failure(int sock)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	pid_t child;
	int status;

	(void)sock;
	open_rc();
	CHECK(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE));
	child = fork();
	CHECK(child >= 0);
	if (!child)
		exit(3);
	CHECK_EQ(waitpid(child, &status, 0), child);
	return close_all(0);
}

static int lists(int sock)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	(void)sock;
	if (list)
		ibv_free_device_list(list);
	return count ? 0 : FAILED;
}

/* The program hangs after its failure, as one does that waits for what cannot come any more. */
static int stays(int sock)
{
	int status = skips_a_state(sock);

	CHECK(write(STDOUT_FILENO, "x", 1) == 1);
	wait_for_end(sock);
	return status;
}

/* The program tries again and again, and never polls. */
static int hammers(int sock)
{
	int err = 0;

	open_rc();
	ep_connect(&end, &end.local);
	for (uint64_t i = 0; i < 5000; i++) {
		if (ep_write(&end, i, 0, 8, 0, 0))
			err = FAILED;
		if (i % 500 == 0) /* the list keeps a reason once in 10 ms */
			usleep(12000);
	}
	CHECK(write(STDOUT_FILENO, "x", 1) == 1);
	wait_for_end(sock);
	return close_all(err);
}

/* The program puts a file of its own where standard error was. */
static int replaces_stderr(int sock)
{
	int fd = open("/dev/null", O_WRONLY);

	CHECK(fd >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
	return skips_a_state(sock);
}

static int closes_stderr(int sock)
{
	close(STDERR_FILENO);
	return skips_a_state(sock);
}

static const struct planted {
	const char *name;
	int (*active)(int sock);
	int (*passive)(int sock); /* NULL: it has no other end */
} cases[] = {
	{"transfer", transfer, receiving_passive},
	{"probes", probes, plain_passive},
	{"flushed", flushed, plain_passive},
	{"wrong rkey", write_plainly, tells_wrong_key},
	{"range", write_beyond, plain_passive},
	{"access flag", write_plainly, without_flag},
	{"rnr", send_too_early, plain_passive},
	{"lkey", send_with_wrong_key, plain_passive},
	{"dead peer", send_to_the_dead, ends_at_once},
	{"no such qp", send_to_nobody, plain_passive},
	{"nowhere", send_to_nowhere, NULL},
	{"two families", mixes_families, NULL},
	{"small receive", transfer, receive_small},
	{"goes on", goes_on, plain_passive},
	{"looks away", looks_away, plain_passive},
	{"aborts", aborts, plain_passive},
	{"overrun", overruns, plain_passive},
	{"qkey", datagram, other_qkey},
	{"long datagram", datagram_too_long, ud_passive},
	{"empty gid", empty_gid, NULL},
	{"no gid", no_gid, NULL},
	{"large mtu", large_mtu, NULL},
	{"skipped state", skips_a_state, NULL},
	{"missing bit", forgets_a_bit, NULL},
	{"unmapped", registers_nothing, NULL},
	{"read-only", registers_read_only, NULL},
	{"limit", asks_too_much, NULL},
	{"full queue", fills_the_queue, plain_passive},
	{"early post", posts_too_early, NULL},
	{"order", destroys_in_wrong_order, NULL},
	{"fork", forks, NULL},
	{"fork after failure", forks_after_failure, NULL},
	{"list", lists, NULL},
	{"stays", stays, NULL},
	{"hammers", hammers, NULL},
	{"replaced stderr", replaces_stderr, NULL},
	{"closed stderr", closes_stderr, NULL},
};

int main(int argc, char **argv)
{
	promise("a program with a planted error");
	CHECK(argc == 4);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, argv[1]) != 0)
			continue;
		return !strcmp(argv[2], "active") ? cases[i].active(atoi(argv[3]))
						  : cases[i].passive(atoi(argv[3]));
	}
	fprintf(stderr, "no case %s\n", argv[1]);
	return 2;
}
