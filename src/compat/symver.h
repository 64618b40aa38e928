/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Attaching a function to a name at a version node that is not the default one.
 *
 * Whoever was linked against such a symbol finds it; nobody new can be linked against it. The
 * function must be a global one with VB_EXPORT, and the node must be in libibverbs.map.
 */
#ifndef VB_COMPAT_SYMVER_H
#define VB_COMPAT_SYMVER_H

#define VB_SYMVER(function, name, node) __asm__(".symver " #function ", " #name "@" node)

/* A private symbol that rdma-core's providers bind: all three nodes, or those since 64. */
#define VB_SYMVER_PRIVATE(function, name)                \
	VB_SYMVER(function, name, "IBVERBS_PRIVATE_34"); \
	VB_SYMVER_PRIVATE_64(function, name)
#define VB_SYMVER_PRIVATE_64(function, name)             \
	VB_SYMVER(function, name, "IBVERBS_PRIVATE_64"); \
	VB_SYMVER(function, name, "IBVERBS_PRIVATE_65")

#endif
