/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The private symbols that programs call, with the prototypes that rdma-core's internal headers
 * give them, and the hooks that providers call when they are loaded.
 */
#ifndef VB_COMPAT_PRIVATE_SERVED_H
#define VB_COMPAT_PRIVATE_SERVED_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/* The GID type as sysfs writes it; sysfs has no word for the plain InfiniBand type. */
enum vb_gid_type_sysfs {
	VB_GID_TYPE_SYSFS_IB_ROCE_V1,
	VB_GID_TYPE_SYSFS_ROCE_V2,
};

/* Called by ibv_devinfo and pyverbs. 0, or -1 and errno. An empty entry has the first type. */
int vb_private_query_gid_type(struct ibv_context *ctx, uint8_t port_num, unsigned int index,
			      enum vb_gid_type_sysfs *type);

/* Writes a provider's line to verbatim's log; `level` counts as VERBS_LOG_LEVEL does. */
void vb_private_log(struct verbs_context *ctx, uint32_t level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Devices of verbatim have no directory in sysfs: returns -1 and ENOENT. */
int vb_private_read_ibdev_sysfs_file(char *buf, size_t size, void *sysfs_dev, const char *fmt, ...);
int vb_private_get_fw_ver(char *value, size_t size, void *sysfs_dev);

/* Sets the public fields of a provider's new CQ. */
void vb_private_init_cq(struct ibv_cq *cq, struct ibv_context *ctx,
			struct ibv_comp_channel *channel, void *cq_context);

const char *vb_private_wr_opcode_str(enum ibv_wr_opcode opcode);

/* The number of attributes of a command to the kernel: no commands are sent. */
unsigned int vb_private_ioctl_final_num_attrs(unsigned int num_attrs, void *link);

/* Whether a provider may free an object that the kernel has already taken away; not read here. */
extern bool vb_private_allow_disassociate_destroy;

/* Called by the constructor of every provider that a program is linked with; does nothing. */
void vb_private_register_driver(const void *ops);
void ibv_register_driver(const char *name, void *init_func);

#endif
