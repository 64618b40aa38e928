/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The private symbols that have an answer, and the hooks that providers call. */
#include "compat/private_served.h"

#include <stdarg.h>

#include "base/log.h"
#include "compat/symver.h"
#include "verbs/face.h"
#include "verbs/gid.h"

VB_EXPORT int vb_private_query_gid_type(struct ibv_context *ctx, uint8_t port_num,
					unsigned int index, enum vb_gid_type_sysfs *type)
{
	uint32_t found = IBV_GID_TYPE_IB;
	int err = type ? vb_gid_type(ctx, port_num, (int)index, &found)
		       : vb_refuse_null("query_gid_type", "type");

	if (!err)
		*type = found == IBV_GID_TYPE_ROCE_V2 ? VB_GID_TYPE_SYSFS_ROCE_V2
						      : VB_GID_TYPE_SYSFS_IB_ROCE_V1;
	return vb_answer_minus_one(err);
}
VB_SYMVER_FROM_25(vb_private_query_gid_type, ibv_query_gid_type);

VB_EXPORT void vb_private_log(struct verbs_context *ctx, uint32_t level, const char *fmt, ...)
{
	va_list ap;

	(void)ctx;
	if (level < VB_LOG_ERROR || level > VB_LOG_DEBUG)
		return;
	va_start(ap, fmt);
	vb_vlog((enum vb_log_level)level, fmt, ap);
	va_end(ap);
}
VB_SYMVER_FROM_34(vb_private_log, __verbs_log);

/* Providers ask without needing an answer, so nothing is logged. */
static int no_sysfs_directory(void)
{
	errno = ENOENT;
	return -1;
}

VB_EXPORT int vb_private_read_ibdev_sysfs_file(char *buf, size_t size, void *sysfs_dev,
					       const char *fmt, ...)
{
	(void)buf;
	(void)size;
	(void)sysfs_dev;
	(void)fmt;
	return no_sysfs_directory();
}
VB_SYMVER_FROM_25(vb_private_read_ibdev_sysfs_file, ibv_read_ibdev_sysfs_file);

VB_EXPORT int vb_private_get_fw_ver(char *value, size_t size, void *sysfs_dev)
{
	(void)value;
	(void)size;
	(void)sysfs_dev;
	return no_sysfs_directory();
}
VB_SYMVER_ONLY_25(vb_private_get_fw_ver, ibv_get_fw_ver);

VB_EXPORT void vb_private_init_cq(struct ibv_cq *cq, struct ibv_context *ctx,
				  struct ibv_comp_channel *channel, void *cq_context)
{
	cq->context = ctx;
	cq->channel = channel;
	cq->cq_context = cq_context;
	cq->comp_events_completed = 0;
	cq->async_events_completed = 0;
	pthread_mutex_init(&cq->mutex, NULL);
	pthread_cond_init(&cq->cond, NULL);
}
VB_SYMVER_FROM_25(vb_private_init_cq, verbs_init_cq);

VB_EXPORT const char *vb_private_wr_opcode_str(enum ibv_wr_opcode opcode)
{
	static const char *const names[] = {
		[IBV_WR_RDMA_WRITE] = "RDMA write",
		[IBV_WR_RDMA_WRITE_WITH_IMM] = "RDMA write with immediate",
		[IBV_WR_SEND] = "send",
		[IBV_WR_SEND_WITH_IMM] = "send with immediate",
		[IBV_WR_RDMA_READ] = "RDMA read",
		[IBV_WR_ATOMIC_CMP_AND_SWP] = "compare and swap",
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = "fetch and add",
		[IBV_WR_LOCAL_INV] = "local invalidate",
		[IBV_WR_BIND_MW] = "bind memory window",
		[IBV_WR_SEND_WITH_INV] = "send with invalidate",
		[IBV_WR_TSO] = "segmented send",
		[IBV_WR_DRIVER1] = "provider's own",
		[IBV_WR_FLUSH] = "flush",
		[IBV_WR_ATOMIC_WRITE] = "atomic write",
	};
	size_t i = (size_t)opcode;

	return i < sizeof(names) / sizeof(names[0]) && names[i] ? names[i] : "unknown";
}
VB_SYMVER_FROM_34(vb_private_wr_opcode_str, ibv_wr_opcode_str);

VB_EXPORT unsigned int vb_private_ioctl_final_num_attrs(unsigned int num_attrs, void *link)
{
	(void)num_attrs;
	(void)link;
	return 0;
}
VB_SYMVER_FROM_25(vb_private_ioctl_final_num_attrs, __ioctl_final_num_attrs);

VB_EXPORT bool vb_private_allow_disassociate_destroy;
VB_SYMVER_FROM_25(vb_private_allow_disassociate_destroy, verbs_allow_disassociate_destroy);

VB_EXPORT void vb_private_register_driver(const void *ops)
{
	vb_log(VB_LOG_DEBUG, "a provider of kernel devices registered (%p); it is not used", ops);
}
VB_SYMVER(vb_private_register_driver, verbs_register_driver_25, "IBVERBS_PRIVATE_25");
VB_SYMVER(vb_private_register_driver, verbs_register_driver_33, "IBVERBS_PRIVATE_33");
VB_SYMVER(vb_private_register_driver, verbs_register_driver_34, "IBVERBS_PRIVATE_34");
VB_SYMVER(vb_private_register_driver, verbs_register_driver_57, "IBVERBS_PRIVATE_57");
VB_SYMVER(vb_private_register_driver, verbs_register_driver_59, "IBVERBS_PRIVATE_59");
VB_SYMVER(vb_private_register_driver, verbs_register_driver_64, "IBVERBS_PRIVATE_64");
VB_SYMVER(vb_private_register_driver, verbs_register_driver_65, "IBVERBS_PRIVATE_65");

VB_EXPORT void ibv_register_driver(const char *name, void *init_func)
{
	(void)init_func;
	vb_log(VB_LOG_DEBUG, "provider %s registered; it is not used", name ? name : "(no name)");
}
