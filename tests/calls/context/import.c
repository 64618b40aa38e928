/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Imports within one process: a duplicate of cmd_fd opens the context a second time, handles name
 * its objects, what is imported is usable as the original is, and ends with it.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static struct endpoint near, far;

static struct ibv_context *import(const struct ibv_context *ctx)
{
	int fd = dup(ctx->cmd_fd);
	struct ibv_context *imported = ibv_import_device(fd);

	CHECK(fd >= 0 && imported);
	return imported;
}

static void devices(void)
{
	struct ibv_context *first = device_open(), *second, *third;
	int file = memfd_create("not a context", MFD_ALLOW_SEALING);
	struct ibv_device_attr attr;
	struct rlimit limit, none;
	int null = open("/dev/null", O_RDWR), fd, err;

	CHECK(file >= 0 && null >= 0);
	expect_case("descriptors that name no context");
	EXPECT_NULL(ibv_import_device(-1), EBADF);
	EXPECT_NULL(ibv_import_device(null), EINVAL);
	EXPECT_NULL(ibv_import_device(file), EINVAL);
	EXPECT_EQ(ftruncate(file, 16 << 20), 0);
	EXPECT_NULL(ibv_import_device(file), EINVAL);
	expect_case("no descriptor is left for looking at devices");
	fd = dup(first->cmd_fd);
	CHECK(fd >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0);
	none = (struct rlimit){0, limit.rlim_max};
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	second = ibv_import_device(fd);
	err = errno;
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	EXPECT(!second);
	EXPECT_EQ(err, EMFILE);
	EXPECT(fcntl(fd, F_GETFD) >= 0);
	close(fd);
	expect_case("a context of another user");
	fd = dup(first->cmd_fd);
	if (fchown(fd, geteuid() + 1, getegid()) == 0) { /* the superuser may */
		EXPECT_NULL(ibv_import_device(fd), EPERM);
		EXPECT_EQ(fchown(fd, geteuid(), getegid()), 0);
	}
	close(fd);
	expect_case("a refused descriptor stays the caller's");
	EXPECT(fcntl(null, F_GETFD) >= 0);
	close(file);
	close(null);
	expect_case("the same device");
	second = import(first);
	EXPECT(second != first && second->device == first->device);
	EXPECT_EQ(ibv_query_device(second, &attr), 0);
	expect_case("the import has its descriptor and closes it");
	fd = second->cmd_fd;
	EXPECT(fd >= 0 && fd != first->cmd_fd);
	expect_case("an import of an import");
	third = import(second);
	EXPECT_EQ(ibv_close_device(second), 0);
	EXPECT(fcntl(fd, F_GETFD) < 0);
	EXPECT_EQ(ibv_query_device(third, &attr), 0);
	expect_case("when the original is closed nothing more can be had of it");
	fd = dup(first->cmd_fd);
	EXPECT_EQ(ibv_close_device(first), 0);
	EXPECT_NULL(ibv_import_device(fd), EINVAL);
	close(fd);
	EXPECT_NULL(ibv_import_pd(third, 1), ENODEV);
	EXPECT_EQ(ibv_close_device(third), 0);
}

static void handles(void)
{
	struct ibv_context *ctx = device_open();
	struct ibv_context *view = import(ctx);
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *own = ibv_alloc_pd(view), *seen, *again;
	static char bytes[64];
	struct ibv_mr *mr = ibv_reg_mr(pd, bytes, sizeof(bytes), IBV_ACCESS_LOCAL_WRITE), *other;
	struct ibv_mr *null = ibv_alloc_null_mr(pd);
	uint32_t gone;

	CHECK(pd && own && mr && null);
	expect_case("handles that name nothing");
	EXPECT_NULL(ibv_import_pd(view, 0), ENOENT);
	EXPECT_NULL(ibv_import_pd(view, pd->handle + 1), ENOENT);
	EXPECT_NULL(ibv_import_pd(view, UINT32_MAX), ENOENT);
	EXPECT_NULL(ibv_import_mr(own, mr->handle + 1), ENOENT);
	EXPECT_NULL(ibv_import_mr(own, UINT32_MAX), ENOENT);
	EXPECT_NULL(ibv_import_dm(view, 1), ENOENT);
	EXPECT_NULL(ibv_import_dm(view, UINT32_MAX), ENOENT);
	own->handle += 100;
	EXPECT_NULL(ibv_import_mr(own, mr->handle), ENOENT);
	own->handle -= 100;
	EXPECT_NULL(ibv_import_mr(NULL, 1), EINVAL);
	expect_case("the null region is no memory to share");
	EXPECT_NULL(ibv_import_mr(own, null->handle), ENOENT);
	EXPECT_EQ(ibv_dereg_mr(null), 0);
	expect_case("an ordinary context has nothing to import from");
	EXPECT_NULL(ibv_import_pd(ctx, pd->handle), EINVAL);
	EXPECT_NULL(ibv_import_mr(pd, mr->handle), EINVAL);
	EXPECT_NULL(ibv_import_dm(ctx, 1), EINVAL);
	expect_case("a domain and a region");
	seen = ibv_import_pd(view, pd->handle);
	again = ibv_import_pd(view, pd->handle);
	CHECK(seen && again);
	EXPECT(seen->context == view && seen != pd);
	other = ibv_import_mr(seen, mr->handle);
	CHECK(other);
	EXPECT(other->pd == seen && other->context == view && !other->addr);
	EXPECT_EQ(other->length, sizeof(bytes));
	expect_case("an imported region cannot be re-registered");
	EXPECT_EQ(ibv_rereg_mr(other, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		  IBV_REREG_MR_ERR_INPUT);
	expect_case("a view in use stays, and its end leaves the original");
	errno = 0;
	ibv_unimport_pd(seen);
	EXPECT_EQ(errno, EBUSY);
	ibv_unimport_mr(other);
	ibv_unimport_pd(seen);
	EXPECT_EQ(ibv_dealloc_pd(again), 0);
	EXPECT_REFUSED(ibv_dealloc_pd(pd), EBUSY);
	expect_case("a handle of what is gone");
	gone = mr->handle;
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_NULL(ibv_import_mr(own, gone), ENOENT);
	gone = pd->handle;
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_NULL(ibv_import_pd(view, gone), ENOENT);
	EXPECT_EQ(ibv_dealloc_pd(own), 0);
	EXPECT_EQ(ibv_close_device(view), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
}

struct view {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
};

static void view_open(struct view *v, const struct endpoint *ep)
{
	v->ctx = import(ep->context);
	v->pd = ibv_import_pd(v->ctx, ep->pd->handle);
	CHECK(v->pd);
	v->mr = ibv_import_mr(v->pd, ep->mr->handle);
	CHECK(v->mr);
}

static void view_close(struct view *v)
{
	ibv_unimport_mr(v->mr);
	ibv_unimport_pd(v->pd);
	EXPECT_EQ(ibv_close_device(v->ctx), 0);
}

static int request(enum ibv_wr_opcode opcode, uint32_t lkey, uint32_t length, uint32_t rkey)
{
	struct ibv_sge sge = {.addr = (uintptr_t)near.buffer, .length = length, .lkey = lkey};
	struct ibv_send_wr wr = ep_wr(opcode, 7, &sge, 1);

	ep_target(&wr, far.local.addr, rkey);
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr.wr.atomic.compare_add = 5;
	return ep_run(&near, &wr);
}

static void traffic(void)
{
	struct view here, there;
	struct ibv_sge into;
	struct ibv_wc wc;
	uint64_t word = 1000;

	view_open(&here, &near);
	view_open(&there, &far);
	expect_case("WRITE with imported keys on both sides");
	ep_fill(&near, 0, 0x71, 5000);
	EXPECT_STATUS(request(IBV_WR_RDMA_WRITE, here.mr->lkey, 5000, there.mr->rkey),
		      IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 0, 0x71, 5000));
	expect_case("READ");
	ep_fill(&far, 0, 0x72, 5000);
	EXPECT_STATUS(request(IBV_WR_RDMA_READ, here.mr->lkey, 5000, there.mr->rkey),
		      IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&near, 0, 0x72, 5000));
	expect_case("atomic");
	ep_poke(&far, 0, &word, 8);
	EXPECT_STATUS(request(IBV_WR_ATOMIC_FETCH_AND_ADD, here.mr->lkey, 8, there.mr->rkey),
		      IBV_WC_SUCCESS);
	ep_peek(&near, 0, &word, 8);
	EXPECT_EQ(word, 1000);
	ep_peek(&far, 0, &word, 8);
	EXPECT_EQ(word, 1005);
	expect_case("SEND, received with an imported key");
	ep_fill(&near, 0, 0x73, 3000);
	into = (struct ibv_sge){
		.addr = far.local.addr + 100, .length = 3000, .lkey = there.mr->lkey};
	CHECK(ep_post_recv(&far, 3, &into, 1) == 0);
	EXPECT_STATUS(request(IBV_WR_SEND, here.mr->lkey, 3000, 0), IBV_WC_SUCCESS);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 100, 0x73, 3000));
	expect_case("the original's range bounds the view");
	EXPECT_STATUS(request(IBV_WR_RDMA_WRITE, here.mr->lkey, near.config.buf_len + 1,
			      there.mr->rkey),
		      IBV_WC_LOC_PROT_ERR);
	view_close(&here);
	view_close(&there);
}

static void mend(void)
{
	ep_relink(&near, &far);
	while (ep_wait_event(&far, IBV_EVENT_QP_ACCESS_ERR, 5))
		;
}

/* What the owner takes away is taken from the view as well. */
static void revocation(void)
{
	struct view there;
	struct ibv_mr *mr;

	mend();
	mr = ibv_reg_mr(far.pd, far.buffer, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(mr);
	there.ctx = import(far.context);
	there.pd = ibv_import_pd(there.ctx, far.pd->handle);
	CHECK(there.pd);
	there.mr = ibv_import_mr(there.pd, mr->handle);
	CHECK(there.mr);
	expect_case("the original's rights are the view's");
	EXPECT_STATUS(request(IBV_WR_RDMA_WRITE, near.mr->lkey, 64, there.mr->rkey),
		      IBV_WC_SUCCESS);
	EXPECT_STATUS(request(IBV_WR_RDMA_READ, near.mr->lkey, 64, there.mr->rkey),
		      IBV_WC_REM_ACCESS_ERR);
	mend();
	expect_case("after the original was deregistered");
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_STATUS(request(IBV_WR_RDMA_WRITE, near.mr->lkey, 64, there.mr->rkey),
		      IBV_WC_REM_ACCESS_ERR);
	mend();
	view_close(&there);
}

static void device_memory(void)
{
	struct ibv_context *view = import(far.context);
	struct ibv_alloc_dm_attr attr = {.length = 8192};
	struct ibv_dm *dm = ibv_alloc_dm(far.context, &attr), *seen;
	uint32_t words[4] = {1, 2, 3, 4}, read[4] = {0};
	struct ibv_pd *pd = ibv_alloc_pd(view);
	struct ibv_mr *mr;

	CHECK(dm && pd);
	expect_case("imported device memory shows the same bytes");
	seen = ibv_import_dm(view, dm->handle);
	CHECK(seen);
	EXPECT_EQ(ibv_memcpy_to_dm(dm, 4096, words, sizeof(words)), 0);
	EXPECT_EQ(ibv_memcpy_from_dm(read, seen, 4096, sizeof(read)), 0);
	EXPECT_EQ(memcmp(words, read, sizeof(read)), 0);
	EXPECT_REFUSED(ibv_memcpy_from_dm(read, seen, 8192, 4), EFAULT);
	expect_case("it can be registered, and is busy then");
	mr = ibv_reg_dm_mr(pd, seen, 0, 8192,
			   IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE |
				   IBV_ACCESS_REMOTE_ATOMIC);
	EXPECT(mr != NULL);
	errno = 0;
	ibv_unimport_dm(seen);
	EXPECT_EQ(errno, EBUSY);
	if (mr)
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
	ibv_unimport_dm(seen);
	expect_case("the original goes on");
	EXPECT_EQ(ibv_memcpy_from_dm(read, dm, 4096, sizeof(read)), 0);
	EXPECT_EQ(ibv_free_dm(dm), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(view), 0);
}

int main(int argc, char **argv)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	ep_main(argc, argv);
	devices();
	handles();
	ep_pair(&near, &far, &config, &config, EP_HERE);
	traffic();
	revocation();
	device_memory();
	ep_pair_close(&near, &far);
	return expect_done();
}
