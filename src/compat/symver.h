/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Binds a function to a name at a version node that is not the default one.
 *
 * A binary that was linked against such a symbol finds it; a new binary cannot be linked against
 * it. The function must be a global one with VB_EXPORT, and the node must be in libibverbs.map.
 */
#ifndef VB_COMPAT_SYMVER_H
#define VB_COMPAT_SYMVER_H

#define VB_SYMVER(function, name, node)   __asm__(".symver " #function ", " #name "@" node)

/*
 * A private symbol that rdma-core's providers bind, at each node from the named one on. The number
 * in a node's name is the release that last removed or changed a symbol. A release that only adds
 * symbols adds them to the existing node. So each node has every symbol that any release with that
 * node had.
 */
#define VB_SYMVER_FROM_65(function, name) VB_SYMVER(function, name, "IBVERBS_PRIVATE_65")
#define VB_SYMVER_FROM_64(function, name)                \
	VB_SYMVER(function, name, "IBVERBS_PRIVATE_64"); \
	VB_SYMVER_FROM_65(function, name)
#define VB_SYMVER_FROM_59(function, name)                \
	VB_SYMVER(function, name, "IBVERBS_PRIVATE_59"); \
	VB_SYMVER_FROM_64(function, name)
#define VB_SYMVER_FROM_34(function, name)                \
	VB_SYMVER(function, name, "IBVERBS_PRIVATE_34"); \
	VB_SYMVER(function, name, "IBVERBS_PRIVATE_57"); \
	VB_SYMVER_FROM_59(function, name)
#define VB_SYMVER_FROM_33(function, name)                \
	VB_SYMVER(function, name, "IBVERBS_PRIVATE_33"); \
	VB_SYMVER_FROM_34(function, name)
#define VB_SYMVER_FROM_25(function, name)                \
	VB_SYMVER(function, name, "IBVERBS_PRIVATE_25"); \
	VB_SYMVER_FROM_33(function, name)

/* Symbols that later nodes lack. */
#define VB_SYMVER_ONLY_25(function, name) VB_SYMVER(function, name, "IBVERBS_PRIVATE_25")
#define VB_SYMVER_25_TO_34(function, name)               \
	VB_SYMVER(function, name, "IBVERBS_PRIVATE_25"); \
	VB_SYMVER(function, name, "IBVERBS_PRIVATE_33"); \
	VB_SYMVER(function, name, "IBVERBS_PRIVATE_34")

#endif
