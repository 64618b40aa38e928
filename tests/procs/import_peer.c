/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: cmd_fd, passed with SCM_RIGHTS, names process and context. Another process imports the
 * context, the protection domain, a region and device memory of it. An imported key copies through
 * its owner's memory, while the owner is stopped too; the owner's ibv_dereg_mr revokes it; after
 * the owner's death work requests with it fail with a protection error whose vendor_err says so,
 * and the importer lives on.
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <stdio.h>
#include <string.h>

enum {
	SIZE = 256 * 1024,
	DM_BYTES = 8192,
	SMALL_DM = 64, /* shares a memory page with others */
	OWNER_GONE = 0x30e,
	LKEY_UNKNOWN = 0x301,
	WATCH_MS = 3,
	REGIONS = 262144,
	/* ibv_import_mr(3), ibv_import_dm(3): 3 s; and the time that a busy machine adds. */
	BOUND_MS = 5000
};

struct handles {
	uint64_t addr;
	uint32_t pd, mr, dm;
};

/* Handles of regions are imported however many there are: that of this one is beyond REGIONS. */
static void regions_make(struct resources *r, struct endpoint *ep)
{
	for (uint32_t i = 0; i < REGIONS; i++)
		CHECK(ibv_reg_mr(r->pd, ep->buffer, 64, IBV_ACCESS_LOCAL_WRITE));
	CHECK_ZERO(ibv_dereg_mr(ep->mr));
	ep->mr = ibv_reg_mr(r->pd, ep->buffer, SIZE, EP_ACCESS);
	CHECK(ep->mr && ep->mr->handle > REGIONS);
}

static int owner(int sock, void *unused)
{
	struct ibv_alloc_dm_attr attr = {.length = DM_BYTES};
	struct resources resources;
	struct handles handles;
	unsigned int turns = 0;
	uint32_t word = 0;
	struct ibv_dm *dm;
	struct endpoint ep;
	size_t i;

	(void)unused;
	promise("what the importer did is in the owner's memory");
	resources_open(&resources, 16, false);
	/* A queue pair makes it reachable. */
	ep_open_on(&ep, &resources, NULL, NULL, SIZE);
	memset(ep.buffer, 0x11, SIZE);
	dm = ibv_alloc_dm(resources.context, &attr);
	CHECK(dm);
	regions_make(&resources, &ep);
	handles = (struct handles){.addr = (uintptr_t)ep.buffer,
				   .pd = resources.pd->handle,
				   .mr = ep.mr->handle,
				   .dm = dm->handle};
	descriptor_send(sock, resources.context->cmd_fd);
	message_send(sock, &handles, sizeof(handles));
	message_meet(sock);
	/*
	 * Stopped somewhere here; the importer wrote the second quarter and received into the
	 * third.
	 */
	message_meet(sock);
	for (i = 0; i < SIZE / 4; i++) {
		CHECK_EQ(ep.buffer[SIZE / 4 + i], 0x22);
		CHECK_EQ(ep.buffer[SIZE / 2 + i], 0x33);
	}
	CHECK_ZERO(ibv_memcpy_from_dm(&word, dm, 64, sizeof(word)));
	CHECK_EQ(word, 0x44444444);
	message_meet(sock);
	/* The importer writes as fast as it can, until this takes the region away. */
	while (((volatile unsigned char *)ep.buffer)[SIZE - 1] != 0x66)
		spin_once(&turns);
	CHECK_ZERO(ibv_dereg_mr(ep.mr));
	memset(ep.buffer, 0x55, SIZE);
	sleep_ms(WATCH_MS);
	for (i = 0; i < SIZE; i++)
		CHECK_EQ(ep.buffer[i], 0x55);
	message_meet(sock);
	message_meet(sock);
	for (i = 0; i < SIZE; i++)
		CHECK_EQ(ep.buffer[i], 0x55);
	ep.mr = ibv_reg_mr(resources.pd, ep.buffer, SIZE, EP_ACCESS);
	CHECK(ep.mr);
	message_send(sock, &ep.mr->handle, sizeof(ep.mr->handle));
	/* Killed here. */
	sleep_ms(60000);
	return 1;
}

/* The importer's two queue pairs lead to each other: a failure can only come from the key. */
struct importer {
	struct resources resources;
	struct handles handles;
	struct endpoint here, there;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_dm *dm;
};

static void importer_open(struct importer *im, int sock)
{
	struct ibv_pd *original;
	int fd = descriptor_receive(sock);

	message_receive(sock, &im->handles, sizeof(im->handles));
	/* The context of the resources gives way to the imported one. */
	resources_open(&im->resources, 64, false);
	original = im->resources.pd;
	CHECK_ZERO(ibv_destroy_cq(im->resources.cq));
	CHECK_ZERO(ibv_dealloc_pd(original));
	CHECK_ZERO(ibv_close_device(im->resources.context));
	im->resources.context = ibv_import_device(fd);
	CHECK_SAY(im->resources.context, "ibv_import_device: errno %d", errno);
	im->resources.pd = ibv_import_pd(im->resources.context, im->handles.pd);
	CHECK_SAY(im->resources.pd, "ibv_import_pd: errno %d", errno);
	im->resources.cq = ibv_create_cq(im->resources.context, 64, NULL, NULL, 0);
	CHECK(im->resources.cq);
	/* A second import of the domain is the same domain. */
	im->pd = ibv_import_pd(im->resources.context, im->handles.pd);
	CHECK(im->pd);
	im->mr = ibv_import_mr(im->pd, im->handles.mr);
	CHECK_SAY(im->mr, "ibv_import_mr: errno %d", errno);
	CHECK(!im->mr->addr && im->mr->length == SIZE);
	im->dm = ibv_import_dm(im->resources.context, im->handles.dm);
	CHECK_SAY(im->dm, "ibv_import_dm: errno %d", errno);
}

static void pair_open(struct importer *im)
{
	ep_open_on(&im->here, &im->resources, NULL, NULL, SIZE);
	ep_open_on(&im->there, &im->resources, NULL, NULL, SIZE);
	ep_link(&im->here, &im->there);
}

static void pair_close(struct importer *im)
{
	ep_close(&im->here);
	ep_close(&im->there);
}

static struct ibv_sge imported(const struct importer *im, size_t offset, size_t length)
{
	return (struct ibv_sge){.addr = im->handles.addr + offset,
				.length = (uint32_t)length,
				.lkey = im->mr->lkey};
}

/* From `sge` to or from `remote` of `rkey`; the completion is the caller's. */
static void post(struct endpoint *ep, enum ibv_wr_opcode opcode, struct ibv_sge sge,
		 uint64_t remote, uint32_t rkey)
{
	struct ibv_send_wr wr = {.wr_id = 5,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {.remote_addr = remote, .rkey = rkey}};
	struct ibv_send_wr *bad;

	CHECK_ZERO(ibv_post_send(ep->qp, &wr, &bad));
}

/*
 * An owner that was not met before it was stopped: refused in time, and imported when it goes on.
 */
static void import_stopped(struct process *process, struct ibv_context *context, struct ibv_pd *pd,
			   const struct handles *handles)
{
	struct ibv_mr *mr;
	struct ibv_dm *dm;
	uint64_t since;

	promise("an owner that stands still is waited for 3 seconds at most");
	process_stop(process);
	since = now_ms();
	errno = 0;
	CHECK(!ibv_import_mr(pd, handles->mr));
	CHECK_EQ(errno, ENODEV);
	CHECK_SAY(now_ms() - since < BOUND_MS, "ibv_import_mr took %llu ms",
		  (unsigned long long)(now_ms() - since));
	since = now_ms();
	errno = 0;
	CHECK(!ibv_import_dm(context, handles->dm));
	CHECK_EQ(errno, ENODEV);
	CHECK_SAY(now_ms() - since < BOUND_MS, "ibv_import_dm took %llu ms",
		  (unsigned long long)(now_ms() - since));
	process_continue(process);
	mr = ibv_import_mr(pd, handles->mr);
	dm = ibv_import_dm(context, handles->dm);
	CHECK_SAY(mr && dm, "importing when it goes on: errno %d", errno);
	ibv_unimport_mr(mr);
	ibv_unimport_dm(dm);
}

/* Everything that copies, with the imported region as the local side and as the remote one. */
static void use(struct importer *im)
{
	struct ibv_cq *cq = im->resources.cq;
	struct ibv_sge sge = imported(im, 0, SIZE / 4), own;
	struct ibv_recv_wr recv = {.wr_id = 6, .num_sge = 1}, *bad;
	uint32_t word = 0x44444444;
	size_t i;

	/* WRITE from the owner's memory to the importer's. */
	post(&im->here, IBV_WR_RDMA_WRITE, sge, im->there.local.addr, im->there.local.rkey);
	completion_expect(cq, 5, IBV_WC_SUCCESS, NULL);
	for (i = 0; i < SIZE / 4; i++)
		CHECK_EQ(im->there.buffer[i], 0x11);
	/* WRITE from the importer's memory to the owner's, by the imported rkey. */
	memset(im->here.buffer, 0x22, SIZE / 4);
	own = (struct ibv_sge){(uintptr_t)im->here.buffer, SIZE / 4, im->here.mr->lkey};
	post(&im->here, IBV_WR_RDMA_WRITE, own, im->handles.addr + SIZE / 4, im->mr->rkey);
	completion_expect(cq, 5, IBV_WC_SUCCESS, NULL);
	/* READ of it, back into the owner's memory. */
	sge = imported(im, 0, SIZE / 4);
	post(&im->here, IBV_WR_RDMA_READ, sge, im->handles.addr + SIZE / 4, im->mr->rkey);
	completion_expect(cq, 5, IBV_WC_SUCCESS, NULL);
	/* SEND into a receive that is the owner's memory. */
	memset(im->here.buffer, 0x33, SIZE / 4);
	sge = imported(im, SIZE / 2, SIZE / 4);
	recv.sg_list = &sge;
	CHECK_ZERO(ibv_post_recv(im->there.qp, &recv, &bad));
	post(&im->here, IBV_WR_SEND, own, 0, 0);
	for (i = 0; i < 2; i++) {
		struct ibv_wc wc;

		completion_next(cq, &wc);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	}
	CHECK_ZERO(ibv_memcpy_to_dm(im->dm, 64, &word, sizeof(word)));
}

/* Both sides of the key are refused; the local side says why. */
static void expect_refused(struct importer *im, uint32_t vendor_err)
{
	struct ibv_cq *cq = im->resources.cq;
	struct ibv_wc wc;
	struct ibv_sge own;

	pair_open(im);
	memset(im->here.buffer, 0x66, SIZE);
	post(&im->here, IBV_WR_RDMA_WRITE, imported(im, 0, 64), im->there.local.addr,
	     im->there.local.rkey);
	completion_expect(cq, 5, IBV_WC_LOC_PROT_ERR, &wc);
	CHECK_EQ(wc.vendor_err, vendor_err);
	pair_close(im);
	pair_open(im);
	own = (struct ibv_sge){(uintptr_t)im->here.buffer, 64, im->here.mr->lkey};
	post(&im->here, IBV_WR_RDMA_WRITE, own, im->handles.addr, im->mr->rkey);
	completion_expect(cq, 5, IBV_WC_REM_ACCESS_ERR, NULL);
	pair_close(im);
}

static void write_until_revoked(struct importer *im)
{
	struct ibv_sge own;
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};

	pair_open(im);
	memset(im->here.buffer, 0x66, SIZE);
	own = (struct ibv_sge){(uintptr_t)im->here.buffer, SIZE, im->here.mr->lkey};
	while (wc.status == IBV_WC_SUCCESS) {
		post(&im->here, IBV_WR_RDMA_WRITE, own, im->handles.addr, im->mr->rkey);
		completion_next(im->resources.cq, &wc);
	}
	if (wc.status != IBV_WC_REM_ACCESS_ERR)
		completion_print(&wc);
	CHECK_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
	pair_close(im);
}

/* Owns everything that can be imported, and nothing by which this process could be reached. */
static int nameless_owner(int sock, void *dm_bytes)
{
	struct ibv_alloc_dm_attr attr = {.length = *(const size_t *)dm_bytes};
	struct handles handles = {0};
	static char bytes[64];
	struct ibv_context *context = device_open();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_dm *dm, *neighbour;
	struct ibv_mr *mr;

	CHECK(pd);
	mr = ibv_reg_mr(pd, bytes, sizeof(bytes), IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	handles.pd = pd->handle;
	handles.mr = mr->handle;
	descriptor_send(sock, context->cmd_fd);
	message_send(sock, &handles, sizeof(handles));
	message_meet(sock);
	neighbour = ibv_alloc_dm(context, &attr);
	dm = ibv_alloc_dm(context, &attr);
	CHECK(neighbour && dm);
	handles.dm = dm->handle;
	message_send(sock, &handles, sizeof(handles));
	message_meet(sock);
	promise("a view of freed device memory is no view of what was allocated then");
	CHECK_ZERO(ibv_memcpy_from_dm(bytes, dm, 0, sizeof(bytes)));
	CHECK_EQ(bytes[0], 0x11);
	CHECK_ZERO(ibv_free_dm(dm));
	for (int i = 0; i < 8; i++) {
		dm = ibv_alloc_dm(context, &attr);
		CHECK(dm);
		message_meet(sock);
		message_meet(sock);
		CHECK_ZERO(ibv_memcpy_from_dm(bytes, dm, 0, sizeof(bytes)));
		CHECK_EQ(bytes[0], 0);
		CHECK_ZERO(ibv_free_dm(dm));
	}
	CHECK_ZERO(ibv_memcpy_from_dm(bytes, neighbour, 0, sizeof(bytes)));
	for (size_t i = 0; i < sizeof(bytes); i++)
		CHECK_EQ(bytes[i], 0);
	/* Killed here. */
	sleep_ms(60000);
	return 1;
}

/* A view keeps neither the memory nor its place: it ends with the memory. */
static void import_and_outlive(struct ibv_context *context, struct ibv_pd *pd,
			       const struct handles *handles, int sock)
{
	const unsigned int access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;
	struct ibv_dm *dm = ibv_import_dm(context, handles->dm);
	struct ibv_mr *mr = ibv_import_mr(pd, handles->mr), *part;
	char bytes[64];

	CHECK_SAY(dm && mr, "importing: errno %d", errno);
	ibv_unimport_mr(mr);
	memset(bytes, 0x11, sizeof(bytes));
	CHECK_ZERO(ibv_memcpy_to_dm(dm, 0, bytes, sizeof(bytes)));
	part = ibv_reg_dm_mr(pd, dm, 0, sizeof(bytes), access);
	CHECK_SAY(part, "ibv_reg_dm_mr: errno %d", errno);
	message_meet(sock);
	memset(bytes, 0x22, sizeof(bytes));
	for (int i = 0; i < 8; i++) {
		message_meet(sock);
		CHECK_EQ(ibv_memcpy_to_dm(dm, 0, bytes, sizeof(bytes)), ENODEV);
		CHECK_EQ(ibv_memcpy_from_dm(bytes, dm, 0, sizeof(bytes)), ENODEV);
		message_meet(sock);
	}
	CHECK_ZERO(ibv_dereg_mr(part));
	ibv_unimport_dm(dm);
}

static void import_nameless(size_t dm_bytes)
{
	struct ibv_context *context;
	struct process process;
	struct handles handles;
	struct ibv_pd *pd;

	promise("a process with neither a queue pair nor device memory cannot be reached; its domains are numbers");
	process_start(&process, nameless_owner, &dm_bytes);
	context = ibv_import_device(descriptor_receive(process.sock));
	CHECK(context);
	message_receive(process.sock, &handles, sizeof(handles));
	pd = ibv_import_pd(context, handles.pd);
	CHECK(pd);
	errno = 0;
	CHECK(!ibv_import_mr(pd, handles.mr));
	CHECK_EQ(errno, EAGAIN);
	message_meet(process.sock);
	promise("with device memory it has a name");
	message_receive(process.sock, &handles, sizeof(handles));
	import_stopped(&process, context, pd, &handles);
	import_and_outlive(context, pd, &handles, process.sock);
	process_kill(&process);
	ibv_unimport_pd(pd);
	CHECK_ZERO(ibv_close_device(context));
}

/*
 * Of another process's device memory: no dma-buf, and no atomics that peers would find in this
 * process only.
 */
static void memory_is_the_owners(struct importer *im)
{
	const unsigned int access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;
	struct ibv_mr *mr;

	promise("imported device memory is registered without REMOTE_ATOMIC, and not exported");
	errno = 0;
	CHECK(!ibv_reg_dm_mr(im->pd, im->dm, 0, 64, access | IBV_ACCESS_REMOTE_ATOMIC));
	CHECK_EQ(errno, EOPNOTSUPP);
	mr = ibv_reg_dm_mr(im->pd, im->dm, 0, 64,
			   access | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	CHECK_SAY(mr, "ibv_reg_dm_mr: errno %d", errno);
	CHECK_ZERO(ibv_dereg_mr(mr));
	errno = 0;
	CHECK_EQ(ibv_dm_export_dmabuf_fd(im->dm), -1);
	CHECK_EQ(errno, EOPNOTSUPP);
}

int main(void)
{
	struct process process;
	struct importer im = {0};
	struct ibv_pd *original;
	uint32_t handle;

	watchdog(90);
	import_nameless(DM_BYTES);
	import_nameless(SMALL_DM);
	process_start(&process, owner, NULL);
	promise("an imported key copies through its owner's memory, though the owner is stopped");
	importer_open(&im, process.sock);
	message_meet(process.sock);
	process_stop(&process);
	pair_open(&im);
	use(&im);
	pair_close(&im);
	memory_is_the_owners(&im);
	process_continue(&process);
	message_meet(process.sock);

	promise("the owner's ibv_dereg_mr revokes what was imported");
	message_meet(process.sock);
	write_until_revoked(&im);
	message_meet(process.sock);
	expect_refused(&im, LKEY_UNKNOWN);
	message_meet(process.sock);
	ibv_unimport_mr(im.mr);

	promise("after the owner's death imported keys fail with a protection error that says so");
	message_receive(process.sock, &handle, sizeof(handle));
	im.mr = ibv_import_mr(im.pd, handle);
	CHECK_SAY(im.mr, "ibv_import_mr: errno %d", errno);
	process_kill(&process);
	expect_refused(&im, OWNER_GONE);
	expect_refused(&im, OWNER_GONE);
	ibv_unimport_mr(im.mr);
	errno = 0;
	CHECK(!ibv_import_mr(im.pd, handle));
	CHECK_EQ(errno, ENODEV);
	errno = 0;
	CHECK(!ibv_import_dm(im.resources.context, im.handles.dm));
	CHECK_EQ(errno, ENODEV);
	original = ibv_import_pd(im.resources.context, im.handles.pd);
	CHECK(original); /* a domain is a number: importing it needs no other process */
	ibv_unimport_pd(original);
	ibv_unimport_dm(im.dm);
	ibv_unimport_pd(im.pd);
	resources_close(&im.resources);
	return 0;
}
