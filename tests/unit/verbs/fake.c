/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A device of the unit tests that is made of memory and records its calls. */
#include "fake.h"

#include <errno.h>
#include <string.h>

#include "verbs/ops.h"

struct fake fake;

static struct {
	struct vb_face face;
	struct verbs_context vctx;
} context;

static int answer(void)
{
	fake.calls++;
	return fake.err;
}

#define ANSWER_OBJECT(place, object)         \
	do {                                 \
		int answer_err = answer();   \
                                             \
		if (!answer_err)             \
			*(place) = (object); \
		return answer_err;           \
	} while (0)

static int query_device(struct ibv_context *ctx, struct ibv_device_attr_ex *attr)
{
	(void)ctx;
	attr->orig_attr.phys_port_cnt = 1;
	attr->orig_attr.max_qp = 77;
	attr->phys_port_cnt_ex = 1;
	attr->max_dm_size = 0x1122334455667788;
	return answer();
}

static int query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr)
{
	(void)ctx;
	if (port != 1)
		return -EINVAL;
	attr->state = IBV_PORT_ACTIVE;
	attr->gid_tbl_len = FAKE_GIDS;
	attr->pkey_tbl_len = FAKE_PKEYS;
	attr->flags = IBV_QPF_GRH_REQUIRED;
	attr->port_cap_flags2 = 0x1234;
	attr->active_speed_ex = 0x56789abc;
	return answer();
}

static int query_port_speed(struct ibv_context *ctx, uint32_t port, uint64_t *speed)
{
	(void)ctx;
	(void)port;
	ANSWER_OBJECT(speed, 1000);
}

static int query_gid_entry(struct ibv_context *ctx, uint32_t port, uint32_t index,
			   struct ibv_gid_entry *entry)
{
	(void)ctx;
	if (port != 1 || index >= FAKE_GIDS)
		return -EINVAL;
	if (!fake.gid[index].port_num)
		return -ENODATA;
	ANSWER_OBJECT(entry, fake.gid[index]);
}

static int query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
	(void)ctx;
	if (port != 1 || index < 0 || index >= FAKE_PKEYS)
		return -EINVAL;
	ANSWER_OBJECT(pkey, fake.pkey[index]);
}

static int query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	(void)ctx;
	(void)values;
	return answer();
}

static int alloc_pd(struct ibv_context *ctx, struct ibv_pd **pd)
{
	(void)ctx;
	ANSWER_OBJECT(pd, &fake.pd);
}

static int dealloc_pd(struct ibv_pd *pd)
{
	(void)pd;
	return answer();
}

static int reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access,
		  struct ibv_mr **mr)
{
	(void)pd;
	fake.access = access;
	fake.iova = iova;
	fake.mr.addr = addr;
	fake.mr.length = length;
	ANSWER_OBJECT(mr, &fake.mr);
}

static int rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		    int access)
{
	(void)mr;
	(void)flags;
	(void)pd;
	(void)addr;
	(void)length;
	(void)access;
	return answer() ? -IBV_REREG_MR_ERR_CMD : 0;
}

static int dereg_mr(struct ibv_mr *mr)
{
	(void)mr;
	return answer();
}

static int create_comp_channel(struct ibv_context *ctx, struct ibv_comp_channel **channel)
{
	(void)ctx;
	ANSWER_OBJECT(channel, &fake.channel);
}

static int destroy_comp_channel(struct ibv_comp_channel *channel)
{
	(void)channel;
	return answer();
}

static int get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	(void)channel;
	*cq_context = &fake;
	ANSWER_OBJECT(cq, &fake.cq);
}

static int get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	struct ibv_async_event found = {.event_type = IBV_EVENT_PORT_ERR, .element.port_num = 1};

	(void)ctx;
	ANSWER_OBJECT(event, found);
}

static int create_cq(struct ibv_context *ctx, const struct ibv_cq_init_attr_ex *attr, bool extended,
		     struct ibv_cq **cq)
{
	(void)extended;
	fake.cq_attr = *attr;
	fake.cq.context = ctx;
	ANSWER_OBJECT(cq, &fake.cq);
}

static int resize_cq(struct ibv_cq *cq, int cqe)
{
	(void)cq;
	(void)cqe;
	return answer();
}

static int modify_cq(struct ibv_cq *cq, const struct ibv_modify_cq_attr *attr)
{
	(void)cq;
	(void)attr;
	return answer();
}

static int retire(struct vb_events_got *got)
{
	got->comp = fake.got_comp;
	got->async = fake.got_async;
	return answer();
}

static int retire_cq(struct ibv_cq *cq, struct vb_events_got *got)
{
	(void)cq;
	return retire(got);
}

static void free_cq(struct ibv_cq *cq)
{
	(void)cq;
	fake.freed = true;
}

static int create_srq(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr,
		      struct ibv_srq **srq)
{
	fake.srq_attr = *attr;
	fake.srq.context = ctx;
	attr->attr.max_wr = 128;
	ANSWER_OBJECT(srq, &fake.srq);
}

static int modify_srq(struct ibv_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	(void)srq;
	(void)attr;
	(void)mask;
	return answer();
}

static int query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	(void)srq;
	attr->max_wr = 128;
	return answer();
}

static int retire_srq(struct ibv_srq *srq, struct vb_events_got *got)
{
	(void)srq;
	return retire(got);
}

static void free_srq(struct ibv_srq *srq)
{
	(void)srq;
	fake.freed = true;
}

static int create_qp(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr, struct ibv_qp **qp)
{
	fake.qp_attr = *attr;
	fake.qp.context = ctx;
	fake.qp.qp_type = attr->qp_type;
	attr->cap.max_send_wr = 256;
	ANSWER_OBJECT(qp, &fake.qp);
}

static int query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		    struct ibv_qp_init_attr *init)
{
	(void)qp;
	(void)mask;
	attr->qp_state = IBV_QPS_ERR;
	init->qp_type = IBV_QPT_UC;
	return answer();
}

static int modify_qp(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	(void)qp;
	(void)attr;
	(void)mask;
	return answer();
}

static int query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp;
	(void)op;
	(void)flags;
	return answer() ? fake.err : fake.data_bits;
}

static int retire_qp(struct ibv_qp *qp, struct vb_events_got *got)
{
	(void)qp;
	return retire(got);
}

static void free_qp(struct ibv_qp *qp)
{
	(void)qp;
	fake.freed = true;
}

static int create_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr, struct ibv_ah **ah)
{
	(void)pd;
	(void)attr;
	ANSWER_OBJECT(ah, &fake.ah);
}

static int destroy_ah(struct ibv_ah *ah)
{
	(void)ah;
	return answer();
}

static int group(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	return answer();
}

static int reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
			 unsigned int access, struct ibv_mr **mr)
{
	(void)pd;
	(void)offset;
	(void)length;
	(void)fd;
	fake.access = access;
	fake.iova = iova;
	ANSWER_OBJECT(mr, &fake.mr);
}

static int alloc_null_mr(struct ibv_pd *pd, struct ibv_mr **mr)
{
	(void)pd;
	ANSWER_OBJECT(mr, &fake.mr);
}

static int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		     const struct ibv_sge *sge, uint32_t num_sge)
{
	(void)pd;
	(void)advice;
	(void)flags;
	(void)sge;
	(void)num_sge;
	return answer();
}

static int alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw)
{
	(void)pd;
	fake.mw.type = type;
	ANSWER_OBJECT(mw, &fake.mw);
}

static int dealloc_mw(struct ibv_mw *mw)
{
	(void)mw;
	return answer();
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, const struct ibv_mw_bind *bind)
{
	(void)qp;
	(void)mw;
	(void)bind;
	return answer();
}

static const struct vb_ops ops = {
	.query_device = query_device,
	.query_port = query_port,
	.query_port_speed = query_port_speed,
	.query_gid_entry = query_gid_entry,
	.query_pkey = query_pkey,
	.query_rt_values = query_rt_values,
	.alloc_pd = alloc_pd,
	.dealloc_pd = dealloc_pd,
	.reg_mr = reg_mr,
	.rereg_mr = rereg_mr,
	.dereg_mr = dereg_mr,
	.reg_dmabuf_mr = reg_dmabuf_mr,
	.alloc_null_mr = alloc_null_mr,
	.advise_mr = advise_mr,
	.alloc_mw = alloc_mw,
	.dealloc_mw = dealloc_mw,
	.bind_mw = bind_mw,
	.create_comp_channel = create_comp_channel,
	.destroy_comp_channel = destroy_comp_channel,
	.get_cq_event = get_cq_event,
	.get_async_event = get_async_event,
	.create_cq = create_cq,
	.resize_cq = resize_cq,
	.modify_cq = modify_cq,
	.retire_cq = retire_cq,
	.free_cq = free_cq,
	.create_srq = create_srq,
	.modify_srq = modify_srq,
	.query_srq = query_srq,
	.retire_srq = retire_srq,
	.free_srq = free_srq,
	.create_qp = create_qp,
	.query_qp = query_qp,
	.modify_qp = modify_qp,
	.query_qp_data_in_order = query_qp_data_in_order,
	.retire_qp = retire_qp,
	.free_qp = free_qp,
	.create_ah = create_ah,
	.destroy_ah = destroy_ah,
	.attach_mcast = group,
	.detach_mcast = group,
};

static struct ibv_device *devices[] = {&fake.device, NULL};

static int list_devices(struct ibv_device ***list, int *count)
{
	*count = 1;
	ANSWER_OBJECT(list, devices);
}

static void free_list(struct ibv_device **list)
{
	(void)list;
	fake.freed = true;
}

static __be64 device_guid(struct ibv_device *device)
{
	(void)device;
	return 0x42;
}

static int open_device(struct ibv_device *device, struct ibv_context **ctx)
{
	context.vctx.context.device = device;
	ANSWER_OBJECT(ctx, &context.vctx.context);
}

static int close_device(struct ibv_context *ctx)
{
	(void)ctx;
	return answer();
}

const struct vb_provider vb_provider = {
	.list_devices = list_devices,
	.free_list = free_list,
	.device_guid = device_guid,
	.open = open_device,
	.close = close_device,
};

struct ibv_context *fake_reset(void)
{
	struct ibv_context *ctx;

	memset(&fake, 0, sizeof(fake));
	memset(&context, 0, sizeof(context));
	context.face.ops = &ops;
	context.vctx.priv = (struct verbs_ex_private *)(void *)&context.face;
	strcpy(fake.device.name, "fake0");
	ctx = ibv_open_device(&fake.device);
	fake.pd.context = ctx;
	fake.mr.context = ctx;
	fake.channel.context = ctx;
	fake.cq.context = ctx;
	fake.qp.context = ctx;
	fake.srq.context = ctx;
	fake.ah.context = ctx;
	fake.mw.context = ctx;
	fake.mw.type = IBV_MW_TYPE_1;
	fake.calls = 0;
	return ctx;
}
