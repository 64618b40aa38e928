/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file of ibv_context.cmd_fd: a sealed memfd that only its context's process writes. It names
 * the process and lists, by handle, the objects that others may import (ibv_import_device(3)). Like
 * any descriptor it can be passed by dup(2) and SCM_RIGHTS.
 */
#ifndef VB_OBJECT_PASSPORT_H
#define VB_OBJECT_PASSPORT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define VB_PASSPORT_MAGIC   0x7662706173733031ull
#define VB_PASSPORT_VERSION 4

/* Handle tables grow by doubling while a quarter is free. */
#define VB_PASSPORT_PDS     (1u << 17)
#define VB_PASSPORT_MRS     (1u << 21)
#define VB_PASSPORT_DMS     (1u << 16)

struct vb_passport_pd {
	uint32_t id; /* 0: no such object */
	uint32_t pad;
};

struct vb_passport_mr {
	uint32_t key; /* 0: no such object */
	uint32_t pd;
	uint64_t length;
};

struct vb_passport_dm {
	uint32_t key; /* key of the owner; a new one at each allocation; 0: no such object */
	uint32_t pd;
	uint64_t addr; /* in its owner's address space */
	uint64_t length;
	uint64_t pad;
};

struct vb_passport {
	uint64_t magic;
	uint32_t version;
	uint32_t uid;
	uint64_t nonce; /* identifies the process for its peers; 0: it shares nothing yet */
	uint32_t pid;   /* for messages */
	/* A block of its queue pair numbers, by whose name it can be called; 0: none yet. */
	uint32_t block;
	uint64_t token; /* random: identifies the context */
	char device[IBV_SYSFS_NAME_MAX];
	char pad[4096 - 8 - 4 - 4 - 8 - 4 - 4 - 8 - IBV_SYSFS_NAME_MAX];
	struct vb_passport_pd pd[VB_PASSPORT_PDS];
	struct vb_passport_mr mr[VB_PASSPORT_MRS];
	struct vb_passport_dm dm[VB_PASSPORT_DMS];
};

/* In a forked child *fd is not the library's to close. Returns 0 or -errno. */
int vb_passport_create(const struct ibv_device *device, struct vb_passport **passport, int *fd);
/*
 * Maps the passport behind a descriptor, read-only. -EBADF, -EINVAL, -EPERM with the reason
 * recorded.
 */
int vb_passport_map(int fd, const struct vb_passport **passport);
void vb_passport_unmap(const struct vb_passport *passport);
/* Whether the passport's context is still open, as far as its process tells. */
bool vb_passport_valid(const struct vb_passport *passport);
/* Called when the context is being closed. NULL: the context has none. */
void vb_passport_end(struct vb_passport *passport);

/* Called when the process has a name: writes it into the passport if it is new there. */
void vb_passport_name(struct vb_passport *passport);

/* An object is made, or ends (zeros). `passport` NULL: nothing is written. */
void vb_passport_put_pd(struct vb_passport *passport, uint32_t handle, uint32_t id);
void vb_passport_put_mr(struct vb_passport *passport, uint32_t handle, uint32_t key, uint32_t pd,
			uint64_t length);
void vb_passport_put_dm(struct vb_passport *passport, uint32_t handle,
			const struct vb_passport_dm *dm);

#endif
