/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: the command descriptor of a context shows handles of its objects, and gives memory only
 * to processes that the kernel would let read the owner's memory. A process with fewer
 * capabilities, one whose owner hides itself, and one of another group import what they see: device
 * memory is refused, a region becomes a key that reads and writes nothing, and no descriptor, key
 * or lock of the owner comes along. A process of another user cannot import the context.
 *
 * usage: passport equal|capabilities|hidden|group|user
 */
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/intruder.h"
#include "support/process.h"

enum {
	USER = INTRUDER_VICTIM,
	SIZE = 4096,
	NO_DIRECT_ACCESS = 0x704,
	OWNERS = 0x5a,
	IMPORTERS = 0x33,
	BOUND_MS = 5000 /* ibv_import_mr(3), ibv_import_dm(3): 3 s; and what a busy machine adds */
};

/* What the importer is told, as another process of the program would tell it. */
struct handles {
	uint64_t addr;
	uint32_t pd, mr, dm;
};

struct row {
	const char *name;
	void (*owner)(void);
	void (*importer)(void);
	bool is_given;
	bool is_refused; /* the context itself */
};

static void user(void)
{
	user_become(USER);
	CHECK_ZERO(prctl(PR_SET_DUMPABLE, 1));
}

static void hidden_user(void)
{
	user_become(USER);
	CHECK_ZERO(prctl(PR_SET_DUMPABLE, 0));
}

static void other_user(void)
{
	user_become(INTRUDER_STRANGER);
	CHECK_ZERO(prctl(PR_SET_DUMPABLE, 1));
}

static void other_group(void)
{
	CHECK_ZERO(setgroups(0, NULL));
	CHECK_ZERO(setresgid(USER + 1, USER + 1, USER + 1));
	CHECK_ZERO(setresuid(USER, USER, USER));
	CHECK_ZERO(prctl(PR_SET_DUMPABLE, 1));
}

static void drop_capabilities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}, {0}};

	CHECK_ZERO(syscall(SYS_capset, &head, none));
	CHECK_EQ(prctl(PR_GET_DUMPABLE), 1);
}

static const struct row rows[] = {
	{"equal", user, user, .is_given = true}, /* the control */
	{"capabilities", NULL, drop_capabilities, .is_given = false},
	{"hidden", hidden_user, user, .is_given = false},
	{"group", user, other_group, .is_given = false},
	{"user", user, other_user, .is_refused = true},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static int owner(int sock, void *argument)
{
	const struct row *row = argument;
	struct ibv_alloc_dm_attr attr = {.length = SIZE};
	struct resources resources;
	unsigned char bytes[64];
	struct endpoint ep;

	promise(row->name);
	if (row->owner)
		row->owner();
	resources_open(&resources, 16, false);
	ep_open_on(&ep, &resources, NULL, NULL, SIZE);
	memset(ep.buffer, OWNERS, SIZE);
	struct ibv_dm *dm = ibv_alloc_dm(resources.context, &attr);

	CHECK(dm);
	struct handles handles = {.addr = (uintptr_t)ep.buffer,
				  .pd = resources.pd->handle,
				  .mr = ep.mr->handle,
				  .dm = dm->handle};

	descriptor_send(sock, resources.context->cmd_fd);
	message_send(sock, &handles, sizeof(handles));
	message_meet(sock);
	CHECK_EQ(ep.buffer[0], row->is_given ? IMPORTERS : OWNERS);
	CHECK_ZERO(ibv_memcpy_from_dm(bytes, dm, 0, sizeof(bytes)));
	CHECK_EQ(bytes[0], row->is_given ? IMPORTERS : 0);
	CHECK_ZERO(ibv_free_dm(dm));
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

/* Descriptors and mappings of this process by which it could reach another one's memory or keys. */
static int gifts(void)
{
	char path[300], text[512];
	DIR *dir = opendir("/proc/self/fd");
	FILE *maps = fopen("/proc/self/maps", "re");
	int count = 0;

	CHECK(dir && maps);
	for (struct dirent *e; (e = readdir(dir));) {
		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		ssize_t n = readlink(path, text, sizeof(text) - 1);

		text[n < 0 ? 0 : n] = '\0';
		count += n > 4 && !strcmp(text + n - 4, "/mem");
	}
	closedir(dir);
	while (fgets(text, sizeof(text), maps))
		count += strstr(text, "memfd:verbatim-keys") || strstr(text, "memfd:verbatim-turn");
	fclose(maps);
	return count;
}

struct importer {
	struct resources resources;
	struct endpoint here, there; /* lead to each other: what fails, fails for the key */
};

/* WRITE between the importer's two queue pairs. */
static void write_between(struct importer *im, struct ibv_sge from, uint64_t to, uint32_t rkey,
			  enum ibv_wc_status status)
{
	struct ibv_send_wr *bad, wr = {.wr_id = 5,
				       .sg_list = &from,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.rdma = {.remote_addr = to, .rkey = rkey}};
	struct ibv_wc wc;

	ep_open_on(&im->here, &im->resources, NULL, NULL, SIZE);
	ep_open_on(&im->there, &im->resources, NULL, NULL, SIZE);
	ep_link(&im->here, &im->there);
	memset(im->here.buffer, IMPORTERS, SIZE);
	if (from.lkey == 0)
		from = (struct ibv_sge){im->here.local.addr, 64, im->here.mr->lkey};
	if (rkey == 0) {
		wr.wr.rdma.remote_addr = im->there.local.addr;
		wr.wr.rdma.rkey = im->there.local.rkey;
	}
	CHECK_ZERO(ibv_post_send(im->here.qp, &wr, &bad));
	completion_expect(im->resources.cq, 5, status, &wc);
	if (status == IBV_WC_LOC_PROT_ERR)
		CHECK_EQ(wc.vendor_err, NO_DIRECT_ACCESS);
	if (rkey == 0)
		CHECK_EQ(im->there.buffer[0], status == IBV_WC_SUCCESS ? OWNERS : 0);
	ep_close(&im->here);
	ep_close(&im->there);
}

static void use_region(struct importer *im, const struct handles *handles, bool is_given)
{
	uint64_t since = now_ms();
	struct ibv_mr *mr = ibv_import_mr(im->resources.pd, handles->mr);

	CHECK_SAY(mr, "ibv_import_mr: errno %d", errno);
	CHECK(now_ms() - since < BOUND_MS);
	write_between(im, (struct ibv_sge){handles->addr, 64, mr->lkey}, 0, 0,
		      is_given ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
	write_between(im, (struct ibv_sge){0, 64, 0}, handles->addr, mr->rkey,
		      is_given ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
	ibv_unimport_mr(mr);
}

static void use_device_memory(struct importer *im, const struct handles *handles, bool is_given)
{
	unsigned char bytes[64];
	uint64_t since = now_ms();

	errno = 0;
	struct ibv_dm *dm = ibv_import_dm(im->resources.context, handles->dm);

	CHECK(now_ms() - since < BOUND_MS);
	if (!is_given) {
		CHECK(!dm);
		CHECK_EQ(errno, EPERM);
		return;
	}
	CHECK_SAY(dm, "ibv_import_dm: errno %d", errno);
	memset(bytes, IMPORTERS, sizeof(bytes));
	CHECK_ZERO(ibv_memcpy_to_dm(dm, 0, bytes, sizeof(bytes)));
	ibv_unimport_dm(dm);
}

static void import_and_use(int passport, const struct handles *handles, bool is_given)
{
	struct importer im;
	struct endpoint first;

	resources_open(&im.resources, 16, false);
	CHECK_ZERO(ibv_destroy_cq(im.resources.cq));
	CHECK_ZERO(ibv_dealloc_pd(im.resources.pd));
	CHECK_ZERO(ibv_close_device(im.resources.context));
	im.resources.context = ibv_import_device(passport);
	CHECK_SAY(im.resources.context, "ibv_import_device: errno %d", errno);
	im.resources.pd = ibv_import_pd(im.resources.context, handles->pd);
	im.resources.cq = ibv_create_cq(im.resources.context, 16, NULL, NULL, 0);
	CHECK(im.resources.pd && im.resources.cq);
	/* What this process has of its own comes with its first queue pair. */
	ep_open_on(&first, &im.resources, NULL, NULL, SIZE);
	int before = gifts();

	use_region(&im, handles, is_given);
	use_device_memory(&im, handles, is_given);
	CHECK_EQ(gifts() > before, is_given);
	ep_close(&first);
	resources_close(&im.resources);
}

static int importer(int sock, void *argument)
{
	const struct row *row = argument;
	struct handles handles;
	int passport = descriptor_receive(sock);

	promise(row->name);
	message_receive(sock, &handles, sizeof(handles));
	if (row->importer)
		row->importer();
	if (row->is_refused) {
		errno = 0;
		CHECK(!ibv_import_device(passport));
		CHECK_EQ(errno, EPERM);
	} else {
		import_and_use(passport, &handles, row->is_given);
	}
	message_meet(sock);
	return 0;
}

int main(int argc, char **argv)
{
	const struct row *row = rows;
	struct process a, b;

	watchdog(80);
	CHECK_SAY(argc == 2, "usage: passport equal|capabilities|hidden|group|user");
	while (row < rows + ROWS && strcmp(row->name, argv[1]))
		row++;
	CHECK_SAY(row < rows + ROWS, "no row %s", argv[1]);
	network_leave();
	process_start_pair(&a, importer, &b, owner, (void *)(uintptr_t)row);
	process_expect_success(&a, 60000);
	process_expect_success(&b, PROCESS_PATIENCE_MS);
	return 0;
}
