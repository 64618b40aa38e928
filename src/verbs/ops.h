/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table through which the face calls a device.
 *
 * The face (src/verbs) checks what can be checked without knowing the device, and converts results.
 * The device does the work. Every function here returns 0 or a negative errno, and has recorded the
 * reason of a refusal (base/reason.h). Objects are the public structures; the device embeds them in
 * its own. All functions are thread-safe.
 *
 * Destroying an object that delivers events (CQ, QP, SRQ) takes three steps, because
 * ibv_destroy_*(3) waits for acknowledgements, which only the face counts. retire_*() refuses with
 * -EBUSY, or detaches the object so that no further event arises, and tells how many events the
 * program has fetched. The face waits until that many were acknowledged. free_*() releases the
 * memory and cannot fail.
 */
#ifndef VB_VERBS_OPS_H
#define VB_VERBS_OPS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vb_events_got {
	uint32_t comp;  /* completion events fetched by ibv_get_cq_event */
	uint32_t async; /* asynchronous events fetched by ibv_get_async_event */
};

/*
 * The fields of a buffer that need no device (ibv_alloc_buf(3)); the device's own structure begins
 * with it.
 */
struct ibv_buf {
	struct ibv_context *context;
};

struct vb_ops {
	/*
	 * Device and port attributes. query_device fills all of *attr; the face copies what fits
	 * the caller's structure.
	 */
	int (*query_device)(struct ibv_context *ctx, struct ibv_device_attr_ex *attr);
	int (*query_port)(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr);
	int (*query_port_speed)(struct ibv_context *ctx, uint32_t port, uint64_t *speed_100mbps);
	/* -EINVAL: no such port or index; -ENODATA: the entry is empty. */
	int (*query_gid_entry)(struct ibv_context *ctx, uint32_t port, uint32_t index,
			       struct ibv_gid_entry *entry);
	int (*query_pkey)(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey);
	int (*query_rt_values)(struct ibv_context *ctx, struct ibv_values_ex *values);

	int (*alloc_pd)(struct ibv_context *ctx, struct ibv_pd **pd);
	int (*dealloc_pd)(struct ibv_pd *pd); /* for parent domains as well */
	int (*alloc_parent_domain)(struct ibv_context *ctx,
				   const struct ibv_parent_domain_init_attr *attr,
				   struct ibv_pd **pd);
	int (*alloc_td)(struct ibv_context *ctx, struct ibv_td **td);
	int (*dealloc_td)(struct ibv_td *td);

	/*
	 * `access`: optional bits that the device does not know are ignored; other unknown bits are
	 * refused.
	 */
	int (*reg_mr)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
		      unsigned int access, struct ibv_mr **mr);
	/* Returns 0 or a negative enum ibv_rereg_mr_err_code. */
	int (*rereg_mr)(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
			int access);
	int (*dereg_mr)(struct ibv_mr *mr);

	int (*alloc_dm)(struct ibv_context *ctx, const struct ibv_alloc_dm_attr *attr,
			struct ibv_dm **dm);
	int (*free_dm)(struct ibv_dm *dm);
	int (*copy_dm)(struct ibv_dm *dm, uint64_t offset, void *host, size_t length, bool to);
	int (*reg_dm_mr)(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
			 unsigned int access, struct ibv_mr **mr);
	int (*reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
			     int fd, unsigned int access, struct ibv_mr **mr);
	int (*alloc_null_mr)(struct ibv_pd *pd, struct ibv_mr **mr);
	int (*advise_mr)(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
			 const struct ibv_sge *sge, uint32_t num_sge);

	int (*alloc_mw)(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw);
	int (*dealloc_mw)(struct ibv_mw *mw);
	/* Windows of type 1. On success mw->rkey is the key that the bind will make valid. */
	int (*bind_mw)(struct ibv_qp *qp, struct ibv_mw *mw, const struct ibv_mw_bind *bind);

	int (*export_dm)(struct ibv_dm *dm); /* returns a descriptor */

	int (*alloc_buf)(struct ibv_pd *pd, size_t size, struct ibv_buf **buf, void **addr);
	int (*free_buf)(struct ibv_buf *buf);
	int (*reg_buf_mr)(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length,
			  uint64_t iova, unsigned int access, struct ibv_mr **mr);
	int (*export_buf)(struct ibv_buf *buf); /* returns a descriptor */
	int (*alloc_dmah)(struct ibv_context *ctx, const struct ibv_dmah_init_attr *attr,
			  struct ibv_dmah **dmah);
	int (*dealloc_dmah)(struct ibv_dmah *dmah);
	int (*check_dmah)(struct ibv_context *ctx, struct ibv_dmah *dmah);

	/* Views of another context's objects. Destroying a view leaves the original. */
	int (*import_pd)(struct ibv_context *ctx, uint32_t handle, struct ibv_pd **pd);
	int (*import_mr)(struct ibv_pd *pd, uint32_t handle, struct ibv_mr **mr);
	int (*import_dm)(struct ibv_context *ctx, uint32_t handle, struct ibv_dm **dm);

	int (*create_comp_channel)(struct ibv_context *ctx, struct ibv_comp_channel **channel);
	int (*destroy_comp_channel)(struct ibv_comp_channel *channel);
	/*
	 * Blocks unless the descriptor has O_NONBLOCK (-EAGAIN). -EINTR: a signal came. Counts the
	 * event as fetched.
	 */
	int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			    void **cq_context);
	int (*get_async_event)(struct ibv_context *ctx, struct ibv_async_event *event);

	/*
	 * `extended`: the program called ibv_create_cq_ex(3). The object is always large enough for
	 * struct ibv_cq_ex.
	 */
	int (*create_cq)(struct ibv_context *ctx, const struct ibv_cq_init_attr_ex *attr,
			 bool extended, struct ibv_cq **cq);
	int (*resize_cq)(struct ibv_cq *cq, int cqe);
	int (*modify_cq)(struct ibv_cq *cq, const struct ibv_modify_cq_attr *attr);
	int (*retire_cq)(struct ibv_cq *cq, struct vb_events_got *got);
	void (*free_cq)(struct ibv_cq *cq);

	/* On success the attributes get their actual values. */
	int (*create_srq)(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr,
			  struct ibv_srq **srq);
	int (*modify_srq)(struct ibv_srq *srq, const struct ibv_srq_attr *attr, int mask);
	int (*query_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr);
	int (*retire_srq)(struct ibv_srq *srq, struct vb_events_got *got);
	void (*free_srq)(struct ibv_srq *srq);
	/* On failure *bad is the first operation that was not done. */
	int (*post_srq_ops)(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad);
	int (*get_srq_num)(struct ibv_srq *srq, uint32_t *number);

	int (*open_xrcd)(struct ibv_context *ctx, const struct ibv_xrcd_init_attr *attr,
			 struct ibv_xrcd **xrcd);
	int (*close_xrcd)(struct ibv_xrcd *xrcd);

	/* On success, and only then, the capabilities get their actual values. */
	int (*create_qp)(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr,
			 struct ibv_qp **qp);
	int (*open_qp)(struct ibv_context *ctx, const struct ibv_qp_open_attr *attr,
		       struct ibv_qp **qp);
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init);
	int (*modify_qp)(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask);
	int (*query_qp_data_in_order)(struct ibv_qp *qp, enum ibv_wr_opcode op,
				      uint32_t flags); /* returns the bits */
	int (*modify_qp_rate_limit)(struct ibv_qp *qp, const struct ibv_qp_rate_limit_attr *attr);
	int (*set_ece)(struct ibv_qp *qp, struct ibv_ece *ece); /* *ece gets the accepted options */
	int (*query_ece)(struct ibv_qp *qp, struct ibv_ece *ece);
	int (*retire_qp)(struct ibv_qp *qp, struct vb_events_got *got);
	void (*free_qp)(struct ibv_qp *qp);

	/*
	 * Completion counters: each counts the successes or the errors of the objects that it is
	 * attached to.
	 */
	int (*query_comp_cntr_caps)(struct ibv_context *ctx, struct ibv_comp_cntr_caps *caps);
	int (*create_comp_cntr)(struct ibv_context *ctx, const struct ibv_comp_cntr_init_attr *attr,
				struct ibv_comp_cntr **cntr);
	int (*destroy_comp_cntr)(struct ibv_comp_cntr *cntr);
	int (*change_comp_cntr)(struct ibv_comp_cntr *cntr, bool errors, bool set, uint64_t value);
	int (*read_comp_cntr)(struct ibv_comp_cntr *cntr, bool errors, uint64_t *value);
	int (*attach_comp_cntr)(struct ibv_qp *qp, struct ibv_comp_cntr *cntr, uint32_t op_mask);

	/* Flow steering and its counters. */
	int (*create_flow)(struct ibv_qp *qp, const struct ibv_flow_attr *attr,
			   struct ibv_flow **flow);
	int (*destroy_flow)(struct ibv_flow *flow);
	int (*create_counters)(struct ibv_context *ctx, struct ibv_counters **counters);
	int (*destroy_counters)(struct ibv_counters *counters);
	int (*attach_counters)(struct ibv_counters *counters,
			       const struct ibv_counter_attach_attr *attr);
	int (*read_counters)(struct ibv_counters *counters, uint64_t *values, uint32_t count);

	/* Receive work queues. On success the attributes get their actual values. */
	int (*create_wq)(struct ibv_context *ctx, struct ibv_wq_init_attr *attr,
			 struct ibv_wq **wq);
	int (*modify_wq)(struct ibv_wq *wq, const struct ibv_wq_attr *attr);
	int (*retire_wq)(struct ibv_wq *wq, struct vb_events_got *got);
	void (*free_wq)(struct ibv_wq *wq);
	int (*create_rwq_ind_table)(struct ibv_context *ctx,
				    const struct ibv_rwq_ind_table_init_attr *attr,
				    struct ibv_rwq_ind_table **table);
	int (*destroy_rwq_ind_table)(struct ibv_rwq_ind_table *table);

	int (*create_ah)(struct ibv_pd *pd, const struct ibv_ah_attr *attr, struct ibv_ah **ah);
	int (*destroy_ah)(struct ibv_ah *ah);

	int (*attach_mcast)(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
	int (*detach_mcast)(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
};

/*
 * verbs_context.priv points to this structure. The contexts of a forked child get a table that
 * refuses calls on inherited objects (reason FORKED); therefore the table is reached through the
 * context.
 */
struct vb_face {
	const struct vb_ops *ops;
};

static inline const struct vb_ops *vb_ops(struct ibv_context *ctx)
{
	struct verbs_context *vctx =
		(struct verbs_context *)(void *)((char *)ctx -
						 offsetof(struct verbs_context, context));

	return ((const struct vb_face *)(const void *)vctx->priv)->ops;
}

/*
 * The provider: devices and contexts. open() returns a context whose fast-path slots
 * (ops.post_send, post_recv, post_srq_recv, poll_cq, req_notify_cq) the device has set. The face
 * sets the other slots (verbs/slots.h) before the program sees the context.
 */
struct vb_provider {
	/*
	 * A NULL-terminated list of *count devices. A device has the same pointer as long as it
	 * exists.
	 */
	int (*list_devices)(struct ibv_device ***list, int *count);
	void (*free_list)(struct ibv_device **list);
	__be64 (*device_guid)(struct ibv_device *device);
	int (*open)(struct ibv_device *device, struct ibv_context **ctx);
	/* Owns the descriptor when it succeeds. */
	int (*import_device)(int cmd_fd, struct ibv_context **ctx);
	int (*close)(struct ibv_context *ctx);
};

extern const struct vb_provider vb_provider; /* defined in src/provider/provider.c */

#endif
