/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of calls that make contexts, domains, memory and completion objects. */
#include "room_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "support/check.h"

/* Contexts and their kin. */

static int get_list(struct room *r)
{
	return room_made(r, ibv_get_device_list(NULL));
}

static int free_list(struct room *r)
{
	ibv_free_device_list(r->made);
	return 0;
}

static int open_device(struct room *r)
{
	return room_made(r, ibv_open_device(r->list[0]));
}

static int close_device(struct room *r)
{
	return ibv_close_device(r->made);
}

/* A refused descriptor stays the caller's. */
static int import_device(struct room *r)
{
	int fd = fcntl(r->ctx->cmd_fd, F_GETFD) < 0 ? -1 : r->made_fd;
	int err;

	if (fd <= 0) {
		fd = dup(r->ctx->cmd_fd);
		CHECK(fd > 0);
	}
	err = room_made(r, ibv_import_device(fd));
	r->made_fd = err ? fd : 0;
	return err;
}

static int close_import(struct room *r)
{
	int err = ibv_close_device(r->made);

	r->made_fd = dup(r->ctx->cmd_fd);
	return err;
}

static int alloc_pd(struct room *r)
{
	return room_made(r, ibv_alloc_pd(r->ctx));
}

static int dealloc_pd(struct room *r)
{
	return ibv_dealloc_pd(r->made);
}

static int import_pd(struct room *r)
{
	return room_made(r, ibv_import_pd(r->view, r->pd->handle));
}

static int import_pd_of_peer(struct room *r)
{
	return room_made(r, ibv_import_pd(r->view, r->peer_number));
}

static int unimport_pd(struct room *r)
{
	ibv_unimport_pd(r->made);
	return 0;
}

static int alloc_td(struct room *r)
{
	struct ibv_td_init_attr attr = {0};

	return room_made(r, ibv_alloc_td(r->ctx, &attr));
}

static int dealloc_td(struct room *r)
{
	return ibv_dealloc_td(r->made);
}

static int alloc_parent(struct room *r)
{
	struct ibv_parent_domain_init_attr attr = {.pd = r->pd, .td = r->td};

	return room_made(r, ibv_alloc_parent_domain(r->ctx, &attr));
}

static int create_channel(struct room *r)
{
	return room_made(r, ibv_create_comp_channel(r->ctx));
}

static int destroy_channel(struct room *r)
{
	return ibv_destroy_comp_channel(r->made);
}

static int open_private_xrcd(struct room *r)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	return room_made(r, ibv_open_xrcd(r->ctx, &attr));
}

static int open_shared_xrcd(struct room *r)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = r->fd,
		.oflags = O_CREAT | O_EXCL,
	};

	return room_made(r, ibv_open_xrcd(r->ctx, &attr));
}

static int close_xrcd(struct room *r)
{
	return ibv_close_xrcd(r->made);
}

static int create_ah(struct room *r)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};

	if (ibv_query_gid(r->ctx, 1, 0, &attr.grh.dgid))
		return errno;
	return room_made(r, ibv_create_ah(r->pd, &attr));
}

static int destroy_ah(struct room *r)
{
	return ibv_destroy_ah(r->made);
}

/* What cannot be looked at anew is as it was. */
static int query_port(struct room *r)
{
	struct ibv_port_attr attr;

	return ibv_query_port(r->ctx, 1, &attr);
}

static int query_gids(struct room *r)
{
	struct ibv_gid_entry entry[16];
	ssize_t n = ibv_query_gid_table(r->ctx, entry, 16, 0);

	return n > 0 ? 0 : n < 0 ? (int)-n : -1;
}

static int no_undo(struct room *r)
{
	(void)r;
	return 0;
}

/* Memory. */

static int reg_mr(struct room *r)
{
	return room_made(r, ibv_reg_mr(r->pd, room_memory, ROOM_BYTES, ROOM_ALL_ACCESS));
}

static int reg_mr_iova(struct room *r)
{
	return room_made(r, ibv_reg_mr_iova(r->pd, room_memory, ROOM_BYTES, 4096, ROOM_ALL_ACCESS));
}

static int reg_mr_ex(struct room *r)
{
	struct ibv_mr_init_attr attr = {.comp_mask = IBV_REG_MR_MASK_ADDR,
					.addr = room_memory,
					.length = ROOM_BYTES,
					.access = ROOM_ALL_ACCESS};

	return room_made(r, ibv_reg_mr_ex(r->pd, &attr));
}

static int reg_dmabuf_mr(struct room *r)
{
	return room_made(r, ibv_reg_dmabuf_mr(r->pd, 0, ROOM_BYTES, 0, r->fd, ROOM_ALL_ACCESS));
}

static int reg_null_mr(struct room *r)
{
	return room_made(r, ibv_alloc_null_mr(r->pd));
}

static int reg_dm_mr(struct room *r)
{
	return room_made(r, ibv_reg_dm_mr(r->pd, r->dm, 0, ROOM_BYTES,
					  ROOM_ALL_ACCESS | IBV_ACCESS_ZERO_BASED));
}

static int reg_buf_mr(struct room *r)
{
	return room_made(r, ibv_reg_buf_mr(r->pd, r->buf, r->memory, ROOM_BYTES, ROOM_ALL_ACCESS));
}

static int dereg_mr(struct room *r)
{
	return ibv_dereg_mr(r->made);
}

static int import_mr(struct room *r)
{
	return room_made(r, ibv_import_mr(r->view_pd, r->mr->handle));
}

static int unimport_mr(struct room *r)
{
	ibv_unimport_mr(r->made);
	return 0;
}

static int alloc_dm(struct room *r)
{
	struct ibv_alloc_dm_attr attr = {.length = ROOM_BYTES};

	return room_made(r, ibv_alloc_dm(r->ctx, &attr));
}

static int free_dm(struct room *r)
{
	return ibv_free_dm(r->made);
}

static int import_dm(struct room *r)
{
	return room_made(r, ibv_import_dm(r->view, r->dm->handle));
}

static int import_dm_of_peer(struct room *r)
{
	return room_made(r, ibv_import_dm(r->view, r->peer_number));
}

static int unimport_dm(struct room *r)
{
	ibv_unimport_dm(r->made);
	return 0;
}

static int alloc_buf(struct room *r)
{
	return ibv_alloc_buf(r->pd, ROOM_BYTES, (struct ibv_buf **)&r->made) ? 0 : errno;
}

static int free_buf(struct room *r)
{
	ibv_free_buf(r->made);
	return 0;
}

static int alloc_mw(struct room *r)
{
	return room_made(r, ibv_alloc_mw(r->pd, IBV_MW_TYPE_2));
}

static int dealloc_mw(struct room *r)
{
	return ibv_dealloc_mw(r->made);
}

static int alloc_dmah(struct room *r)
{
	struct ibv_dmah_init_attr attr = {.comp_mask = IBV_DMAH_INIT_ATTR_MASK_PH, .ph = 1};

	return room_made(r, ibv_alloc_dmah(r->ctx, &attr));
}

static int dealloc_dmah(struct room *r)
{
	return ibv_dealloc_dmah(r->made);
}

/* Completion. */

static int create_cq(struct room *r)
{
	return room_made(r, ibv_create_cq(r->ctx, 512, NULL, NULL, 0));
}

static int create_cq_ex(struct room *r)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 512,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = r->parent,
	};

	return room_made(r, ibv_create_cq_ex(r->ctx, &attr));
}

static int destroy_cq(struct room *r)
{
	return ibv_destroy_cq(r->made);
}

static int resize_cq(struct room *r)
{
	return ibv_resize_cq(r->cq, 4096);
}

static int resize_back(struct room *r)
{
	return ibv_resize_cq(r->cq, 16);
}

static int create_comp_cntr(struct room *r)
{
	struct ibv_comp_cntr_init_attr attr = {0};

	return room_made(r, ibv_create_comp_cntr(r->ctx, &attr));
}

static int destroy_comp_cntr(struct room *r)
{
	return ibv_destroy_comp_cntr(r->made);
}

static int create_counters(struct room *r)
{
	struct ibv_counters_init_attr attr = {0};

	return room_made(r, ibv_create_counters(r->ctx, &attr));
}

static int destroy_counters(struct room *r)
{
	return ibv_destroy_counters(r->made);
}

const struct room_call room_calls[] = {
	ROOM_CALL("get_device_list", room_nothing, get_list, free_list,
		  .refused = ROOM_MEMORY | ROOM_DESCRIPTORS, .other_errno = ENOMEM),
	ROOM_CALL("open_device", room_with_list, open_device, close_device,
		  .refused = ROOM_MEMORY | ROOM_MAPS | ROOM_DESCRIPTORS),
	ROOM_CALL("import_device", room_with_spare_descriptor, import_device, close_import,
		  .refused = ROOM_MEMORY | ROOM_MAPS | ROOM_DESCRIPTORS, .other_errno = ENOMEM),
	ROOM_CALL("alloc_pd", room_with_context, alloc_pd, dealloc_pd, .refused = ROOM_MEMORY),
	ROOM_CALL("alloc_td", room_with_context, alloc_td, dealloc_td, .refused = ROOM_MEMORY),
	ROOM_CALL("alloc_parent_domain", room_with_td, alloc_parent, dealloc_pd,
		  .refused = ROOM_MEMORY),
	ROOM_CALL("create_comp_channel", room_with_context, create_channel, destroy_channel,
		  .refused = ROOM_MEMORY | ROOM_DESCRIPTORS),
	ROOM_CALL("open_xrcd, private", room_with_context, open_private_xrcd, close_xrcd,
		  .refused = ROOM_MEMORY | ROOM_MAPS),
	ROOM_CALL("open_xrcd, of a file", room_with_file, open_shared_xrcd, close_xrcd,
		  .refused = ROOM_MEMORY | ROOM_MAPS | ROOM_DESCRIPTORS | ROOM_SYSTEM |
			     ROOM_THREADS),
	ROOM_CALL("query_port", room_with_context, query_port, no_undo, .refused = 0),
	ROOM_CALL("query_gid_table", room_with_context, query_gids, no_undo, .refused = 0),
	ROOM_CALL("create_ah", room_with_context, create_ah, destroy_ah, .refused = ROOM_MEMORY),
	ROOM_CALL("reg_mr", room_with_context, reg_mr, dereg_mr,
		  .refused = ROOM_MEMORY | ROOM_MAPS | ROOM_DESCRIPTORS),
	ROOM_CALL("reg_mr_iova", room_with_context, reg_mr_iova, dereg_mr, .refused = ROOM_MEMORY),
	ROOM_CALL("reg_mr_ex", room_with_context, reg_mr_ex, dereg_mr, .refused = ROOM_MEMORY),
	ROOM_CALL("reg_dmabuf_mr", room_with_file, reg_dmabuf_mr, dereg_mr,
		  .refused = ROOM_MEMORY | ROOM_MAPS),
	ROOM_CALL("alloc_null_mr", room_with_context, reg_null_mr, dereg_mr,
		  .refused = ROOM_MEMORY),
	ROOM_CALL("alloc_dm", room_with_context, alloc_dm, free_dm,
		  .refused = ROOM_MEMORY | ROOM_MAPS | ROOM_DESCRIPTORS),
	ROOM_CALL("reg_dm_mr", room_with_dm, reg_dm_mr, dereg_mr, .refused = ROOM_MEMORY),
	ROOM_CALL("alloc_buf", room_with_context, alloc_buf, free_buf,
		  .refused = ROOM_MEMORY | ROOM_MAPS | ROOM_DESCRIPTORS),
	ROOM_CALL("reg_buf_mr", room_with_buf, reg_buf_mr, dereg_mr, .refused = ROOM_MEMORY),
	ROOM_CALL("import_pd", room_with_view, import_pd, unimport_pd, .refused = ROOM_MEMORY),
	ROOM_CALL("import_pd of another process", room_with_view_of_peer, import_pd_of_peer,
		  unimport_pd, .refused = ROOM_MEMORY),
	ROOM_CALL("import_mr", room_with_view, import_mr, unimport_mr, .refused = ROOM_MEMORY),
	ROOM_CALL("import_dm", room_with_view, import_dm, unimport_dm, .refused = ROOM_MEMORY),
	ROOM_CALL("import_dm of another process", room_with_memory_of_peer, import_dm_of_peer,
		  unimport_dm, .refused = ROOM_MEMORY | ROOM_MAPS),
	ROOM_CALL("alloc_mw", room_with_context, alloc_mw, dealloc_mw,
		  .refused = ROOM_MEMORY | ROOM_MAPS | ROOM_DESCRIPTORS),
	ROOM_CALL("alloc_dmah", room_with_context, alloc_dmah, dealloc_dmah,
		  .refused = ROOM_MEMORY),
	ROOM_CALL("create_cq", room_with_context, create_cq, destroy_cq,
		  .refused = ROOM_MEMORY | ROOM_MAPS),
	ROOM_CALL("create_cq_ex, thread domain", room_with_parent, create_cq_ex, destroy_cq,
		  .refused = ROOM_MEMORY | ROOM_MAPS),
	ROOM_CALL("resize_cq", room_with_cq, resize_cq, resize_back, .refused = ROOM_MAPS),
	ROOM_CALL("create_comp_cntr", room_with_context, create_comp_cntr, destroy_comp_cntr,
		  .refused = ROOM_MEMORY),
	ROOM_CALL("create_counters", room_with_context, create_counters, destroy_counters,
		  .refused = ROOM_MEMORY),
	{.name = NULL},
};
