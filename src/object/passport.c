/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Passports of contexts. */
#include "object/passport.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "base/reason.h"
#include "process/process.h"
#include "host/descriptor.h"
#include "host/shared.h"
#include "host/trust.h"

_Static_assert(sizeof(struct vb_passport) % 4096 == 0, "a passport is whole memory pages");
_Static_assert(offsetof(struct vb_passport, pd) == 4096 && sizeof(struct vb_passport_mr) == 16 &&
		       sizeof(struct vb_passport_dm) == 32,
	       "importers of other builds read it: another layout has another version");
/*
 * The program's own low numbers may be passed for import; the library's descriptors stay clear of
 * them.
 */
#define FIRST_NUMBER 256

int vb_passport_create(const struct ibv_device *device, struct vb_passport **passport, int *fd)
{
	int adopted;
	void *map;
	int err = vb_shared_create("verbatim-context", sizeof(**passport), &map, &adopted);

	if (!err) {
		*fd = fcntl(adopted, F_DUPFD_CLOEXEC, FIRST_NUMBER);
		if (*fd < 0)
			*fd = fcntl(adopted, F_DUPFD_CLOEXEC, 0);
		err = *fd < 0 ? -errno : 0;
		vb_descriptor_close(adopted);
		if (err)
			vb_shared_unmap(map, sizeof(**passport));
	}
	if (err)
		return vb_refuse(-err, VB_REASON_SYSTEM, "memfd of a context: %s", strerror(-err));
	struct vb_passport *p = map;

	p->version = VB_PASSPORT_VERSION;
	p->uid = (uint32_t)geteuid();
	p->pid = (uint32_t)getpid();
	p->token = vb_random64();
	snprintf(p->device, sizeof(p->device), "%s", device->name);
	vb_passport_name(p);
	__atomic_store_n(&p->magic, VB_PASSPORT_MAGIC, __ATOMIC_RELEASE);
	*passport = p;
	return 0;
}

int vb_passport_map(int fd, const struct vb_passport **passport)
{
	const char *defect = "it is not one";
	struct stat st;
	void *map;

	if (fcntl(fd, F_GETFD) < 0)
		return vb_refuse(EBADF, VB_REASON_ARG, "import_device: descriptor %d is not open",
				 fd);
	int err = vb_shared_map(fd, sizeof(struct vb_passport), false, &map, &defect);

	if (err)
		return vb_refuse(err == -EBADMSG ? EINVAL : -err, VB_REASON_ARG,
				 "import_device: descriptor %d is no command descriptor: %s", fd,
				 defect);
	const struct vb_passport *p = map;

	/*
	 * A process that has the descriptor was given it. This check prevents mistakes, not
	 * attacks; memory is given by host/trust.h.
	 */
	if (fstat(fd, &st) || !vb_trust_same_user(st.st_uid)) {
		vb_passport_unmap(p);
		return vb_refuse(EPERM, VB_REASON_PEER_USER,
				 "import_device: descriptor %d belongs to another user", fd);
	}
	if (!vb_passport_valid(p) || p->version != VB_PASSPORT_VERSION) {
		vb_passport_unmap(p);
		return vb_refuse(EINVAL, VB_REASON_PEER_VERSION,
				 "import_device: descriptor %d is closed, or of another version",
				 fd);
	}
	*passport = p;
	return 0;
}

void vb_passport_unmap(const struct vb_passport *passport)
{
	vb_shared_unmap(passport, sizeof(*passport));
}

bool vb_passport_valid(const struct vb_passport *passport)
{
	return __atomic_load_n(&passport->magic, __ATOMIC_ACQUIRE) == VB_PASSPORT_MAGIC;
}

void vb_passport_end(struct vb_passport *passport)
{
	if (passport)
		__atomic_store_n(&passport->magic, 0, __ATOMIC_RELEASE);
	vb_passport_unmap(passport);
}

void vb_passport_name(struct vb_passport *passport)
{
	struct vb_node *node = vb_process_node_started();

	if (!node)
		return;
	const struct vb_page_header *head = &vb_node_page(node)->header;

	if (__atomic_load_n(&head->num_blocks, __ATOMIC_ACQUIRE))
		__atomic_store_n(&passport->block, head->block[0], __ATOMIC_RELAXED);
	__atomic_store_n(&passport->nonce, head->nonce, __ATOMIC_RELEASE);
}

void vb_passport_put_pd(struct vb_passport *p, uint32_t handle, uint32_t id)
{
	if (p && handle < VB_PASSPORT_PDS)
		__atomic_store_n(&p->pd[handle].id, id, __ATOMIC_RELEASE);
}

/* The member that says whether the object exists is stored last and cleared first. */
void vb_passport_put_mr(struct vb_passport *p, uint32_t handle, uint32_t key, uint32_t pd,
			uint64_t length)
{
	if (!p || handle >= VB_PASSPORT_MRS)
		return;
	struct vb_passport_mr *e = &p->mr[handle];

	vb_passport_name(p);
	__atomic_store_n(&e->key, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&e->pd, pd, __ATOMIC_RELEASE);
	__atomic_store_n(&e->length, length, __ATOMIC_RELEASE);
	__atomic_store_n(&e->key, key, __ATOMIC_RELEASE);
}

void vb_passport_put_dm(struct vb_passport *p, uint32_t handle, const struct vb_passport_dm *dm)
{
	if (!p || handle >= VB_PASSPORT_DMS)
		return;
	struct vb_passport_dm *e = &p->dm[handle];

	vb_passport_name(p);
	__atomic_store_n(&e->key, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&e->pd, dm->pd, __ATOMIC_RELEASE);
	__atomic_store_n(&e->addr, dm->addr, __ATOMIC_RELEASE);
	__atomic_store_n(&e->length, dm->length, __ATOMIC_RELEASE);
	__atomic_store_n(&e->key, dm->key, __ATOMIC_RELEASE);
}
