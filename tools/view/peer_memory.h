/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel's directories by which NCCL, UCX and NVSHMEM learn that adapters reach the memory of a
 * GPU. Software devices do not, so programs with a view find them empty or missing.
 */
#ifndef TOOLS_VIEW_PEER_MEMORY_H
#define TOOLS_VIEW_PEER_MEMORY_H

#define PEER_MEMORY \
	"/sys/module/nvidia_peermem", "/sys/module/nv_peer_mem", "/sys/kernel/mm/memory_peers"

#endif
