/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a program that loads the library with dlopen may dlclose it at any
 * time, also while objects and the progress thread live. The thread goes on
 * serving what was left open, the program goes on, loads the library again, and
 * ends cleanly.
 *
 * This program is not linked with the library: every call goes through dlsym.
 *
 * usage: dlclose [PATH_OF_LIBRARY]
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/process.h"
#include "support/qp_state.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#undef ibv_reg_mr

enum { SIZE = 64 * 1024, MESSAGES = 32, MESSAGE = 1024, SERVED = 200 };

static const char *library_path = "libibverbs.so.1";

/* What the header leaves to the library; posting and polling go through the context. */
struct library {
	void *handle;
	struct ibv_device **(*get_device_list)(int *);
	void (*free_device_list)(struct ibv_device **);
	const char *(*get_device_name)(struct ibv_device *);
	struct ibv_context *(*open_device)(struct ibv_device *);
	int (*close_device)(struct ibv_context *);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *);
	int (*dealloc_pd)(struct ibv_pd *);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, int);
	int (*dereg_mr)(struct ibv_mr *);
	struct ibv_cq *(*create_cq)(struct ibv_context *, int, void *, struct ibv_comp_channel *,
				    int);
	int (*destroy_cq)(struct ibv_cq *);
	struct ibv_qp *(*create_qp)(struct ibv_pd *, struct ibv_qp_init_attr *);
	int (*modify_qp)(struct ibv_qp *, struct ibv_qp_attr *, int);
	int (*destroy_qp)(struct ibv_qp *);
	int (*query_gid)(struct ibv_context *, uint8_t, int, union ibv_gid *);
};

struct address {
	union ibv_gid gid;
	uint64_t addr;
	uint32_t qpn;
	uint32_t rkey;
};

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	unsigned char *buffer;
	struct address address;
};

static void find(const struct library *library, const char *name, void *pointer)
{
	void *symbol = dlsym(library->handle, name);

	CHECK_SAY(symbol, "%s: %s", name, dlerror());
	/* A function pointer by way of memory: ISO C has no cast for it. */
	memcpy(pointer, &symbol, sizeof(symbol));
}

static void load(struct library *library)
{
	library->handle = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
	CHECK_SAY(library->handle, "dlopen: %s", dlerror());
	find(library, "ibv_get_device_list", &library->get_device_list);
	find(library, "ibv_free_device_list", &library->free_device_list);
	find(library, "ibv_get_device_name", &library->get_device_name);
	find(library, "ibv_open_device", &library->open_device);
	find(library, "ibv_close_device", &library->close_device);
	find(library, "ibv_alloc_pd", &library->alloc_pd);
	find(library, "ibv_dealloc_pd", &library->dealloc_pd);
	find(library, "ibv_reg_mr", &library->reg_mr);
	find(library, "ibv_dereg_mr", &library->dereg_mr);
	find(library, "ibv_create_cq", &library->create_cq);
	find(library, "ibv_destroy_cq", &library->destroy_cq);
	find(library, "ibv_create_qp", &library->create_qp);
	find(library, "ibv_modify_qp", &library->modify_qp);
	find(library, "ibv_destroy_qp", &library->destroy_qp);
	find(library, "ibv_query_gid", &library->query_gid);
}

static struct ibv_context *open_first(const struct library *library)
{
	const char *wanted = getenv("VB_TEST_DEVICE");
	struct ibv_context *context = NULL;
	struct ibv_device **list = library->get_device_list(NULL);
	int i;

	CHECK(list);
	for (i = 0; list[i] && !context; i++) {
		const char *name = library->get_device_name(list[i]);

		if (wanted && *wanted ? strcmp(name, wanted) == 0 : strncmp(name, "vb_", 3) == 0)
			context = library->open_device(list[i]);
	}
	library->free_device_list(list);
	CHECK(context);
	return context;
}

static void end_open(const struct library *library, struct end *end)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1}};

	end->context = open_first(library);
	end->pd = library->alloc_pd(end->context);
	CHECK(end->pd);
	end->cq = library->create_cq(end->context, 256, NULL, NULL, 0);
	CHECK(end->cq);
	end->buffer = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(end->buffer != MAP_FAILED);
	end->mr = library->reg_mr(end->pd, end->buffer, SIZE,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(end->mr);
	init.send_cq = end->cq;
	init.recv_cq = end->cq;
	end->qp = library->create_qp(end->pd, &init);
	CHECK(end->qp);
	end->address.addr = (uintptr_t)end->buffer;
	end->address.rkey = end->mr->rkey;
	end->address.qpn = end->qp->qp_num;
	CHECK_ZERO(library->query_gid(end->context, 1, 0, &end->address.gid));
}

static void end_connect(const struct library *library, struct end *end, const struct address *to)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
	struct ibv_qp_attr attr = {.port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = to->qpn,
				   .max_dest_rd_atomic = 1,
				   .max_rd_atomic = 1,
				   .min_rnr_timer = 1,
				   .timeout = 14,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .ah_attr = {.is_global = 1,
					       .port_num = 1,
					       .grh = {.dgid = to->gid, .hop_limit = 64}}};

	for (int i = 0; i < 3; i++) {
		attr.qp_state = states[i];
		CHECK_ZERO(library->modify_qp(end->qp, &attr, qp_step_mask(IBV_QPT_RC, states[i])));
	}
}

static void end_close(const struct library *library, struct end *end)
{
	CHECK_ZERO(library->destroy_qp(end->qp));
	CHECK_ZERO(library->dereg_mr(end->mr));
	CHECK_ZERO(library->destroy_cq(end->cq));
	CHECK_ZERO(library->dealloc_pd(end->pd));
	CHECK_ZERO(library->close_device(end->context));
	munmap(end->buffer, SIZE);
}

static void receive(struct end *end, uint64_t i)
{
	struct ibv_sge sge = {(uintptr_t)end->buffer + i % MESSAGES * MESSAGE, MESSAGE,
			      end->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK_ZERO(ibv_post_recv(end->qp, &wr, &bad));
}

static void send_one(struct end *end, const struct address *write_to, uint64_t i)
{
	struct ibv_sge sge = {(uintptr_t)end->buffer, MESSAGE, end->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = i,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = write_to ? IBV_WR_RDMA_WRITE : IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	if (write_to) {
		wr.wr.rdma.remote_addr = write_to->addr + SIZE / 2;
		wr.wr.rdma.rkey = write_to->rkey;
	}
	memset(end->buffer, (int)(i % 200) + 1, MESSAGE);
	CHECK_ZERO(ibv_post_send(end->qp, &wr, &bad));
}

static void wait_for(struct end *end, uint64_t wr_id)
{
	uint64_t until = now_ms() + 20000;
	struct ibv_wc wc = {0};
	unsigned int turns = 0;

	while (ibv_poll_cq(end->cq, 1, &wc) == 0) {
		spin_once(&turns);
		CHECK_SAY(now_ms() < until, "no completion for %llu", (unsigned long long)wr_id);
	}
	CHECK_SAY(wc.status == IBV_WC_SUCCESS && wc.wr_id == wr_id, "wr_id %llu status %d",
		  (unsigned long long)wc.wr_id, (int)wc.status);
}

/* Traffic of the process with itself. */
static void load_and_talk(bool close_objects)
{
	struct library library;
	struct end a, b;
	uint64_t i;

	load(&library);
	end_open(&library, &a);
	end_open(&library, &b);
	end_connect(&library, &a, &b.address);
	end_connect(&library, &b, &a.address);
	for (i = 0; i < MESSAGES; i++) {
		receive(&b, i);
		send_one(&a, NULL, i);
		wait_for(&a, i);
		wait_for(&b, i);
		CHECK_EQ(b.buffer[i * MESSAGE + 7], i % 200 + 1);
	}
	/* The lease runs for some milliseconds after the last poll. */
	sleep_ms(1);
	if (close_objects) {
		end_close(&library, &a);
		end_close(&library, &b);
	}
	CHECK_ZERO(dlclose(library.handle));
}

/* What a program does to the addresses of a library that was unloaded too early. */
static void stir_memory(void)
{
	void *pieces[64];
	int i;

	for (i = 0; i < 64; i++) {
		pieces[i] = mmap(NULL, 128 * 1024, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(pieces[i] != MAP_FAILED);
		memset(pieces[i], 0xcc, 128 * 1024);
	}
	sleep_ms(20);
	for (i = 0; i < 64; i++)
		munmap(pieces[i], 128 * 1024);
}

/*
 * Leaves a connected queue pair open and closes the library; the queue pair is served all the same.
 */
static int served_after_close(int sock, void *unused)
{
	struct library library;
	struct address remote;
	unsigned char last = 0;
	struct end end;
	uint64_t i;

	(void)unused;
	promise("what was open at dlclose is served by the progress thread");
	load(&library);
	end_open(&library, &end);
	message_swap(sock, &end.address, &remote, sizeof(remote));
	end_connect(&library, &end, &remote);
	for (i = 0; i < MESSAGES; i++)
		receive(&end, i);
	CHECK_ZERO(dlclose(library.handle));
	stir_memory();
	message_meet(sock);
	message_receive(sock, &last, 1);
	CHECK_EQ(end.buffer[(MESSAGES - 1) * MESSAGE], MESSAGES - 1 + 1);
	CHECK_EQ(end.buffer[SIZE / 2 + MESSAGE - 1], (SERVED - 1) % 200 + 1);
	return 0;
}

static int partner(int sock, void *unused)
{
	struct library library;
	struct address remote;
	struct end end;
	uint64_t i;

	(void)unused;
	promise("a peer that closed its library still answers");
	load(&library);
	end_open(&library, &end);
	message_swap(sock, &end.address, &remote, sizeof(remote));
	end_connect(&library, &end, &remote);
	message_meet(sock);
	for (i = 0; i < SERVED; i++) {
		send_one(&end, i < MESSAGES ? NULL : &remote, i);
		wait_for(&end, i);
	}
	message_send(sock, "l", 1);
	end_close(&library, &end);
	CHECK_ZERO(dlclose(library.handle));
	return 0;
}

static int alone(int sock, void *unused)
{
	int i;

	(void)sock;
	(void)unused;
	promise("a program goes on after dlclose, and loads the library again");
	for (i = 0; i < 4; i++) {
		load_and_talk(i % 2);
		stir_memory();
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct process a, b;

	if (argc > 1)
		library_path = argv[1];
	watchdog(60);
	process_start(&a, alone, NULL);
	process_expect_success(&a, 50000);
	process_start_pair(&a, served_after_close, &b, partner, NULL);
	process_expect_success(&b, 50000);
	process_expect_success(&a, PROCESS_PATIENCE_MS);
	return 0;
}
