/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions: ibv_reg_mr(3), ibv_rereg_mr(3), and the forms of registration. */
#include "verbs/face.h"
#include "verbs/slots.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* Every registration of an address range calls this. */
static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			  unsigned int access)
{
	struct ibv_mr *mr = NULL;
	int err;

	if (!pd)
		return vb_answer_null(vb_refuse_null("reg_mr", "pd"));
	err = vb_ops(pd->context)->reg_mr(pd, addr, length, iova, access, &mr);
	return err ? vb_answer_null(err) : mr;
}

VB_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return reg(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

VB_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
					 uint64_t iova, int access)
{
	return reg(pd, addr, length, iova, (unsigned int)access);
}

VB_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
					  uint64_t iova, unsigned int access)
{
	return reg(pd, addr, length, iova, access);
}

static struct ibv_mr *reg_dmabuf(const char *verb, struct ibv_pd *pd, uint64_t offset,
				 size_t length, uint64_t iova, int fd, unsigned int access)
{
	struct ibv_mr *mr = NULL;
	int err;

	if (!pd)
		return vb_answer_null(vb_refuse_null(verb, "pd"));
	err = vb_ops(pd->context)->reg_dmabuf_mr(pd, offset, length, iova, fd, access, &mr);
	return err ? vb_answer_null(err) : mr;
}

VB_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					   uint64_t iova, int fd, int access)
{
	return reg_dmabuf("reg_dmabuf_mr", pd, offset, length, iova, fd, (unsigned int)access);
}

struct ibv_mr *vb_slot_alloc_null_mr(struct ibv_pd *pd)
{
	struct ibv_mr *mr = NULL;
	int err = vb_ops(pd->context)->alloc_null_mr(pd, &mr);

	return err ? vb_answer_null(err) : mr;
}

int vb_slot_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		      struct ibv_sge *sg_list, uint32_t num_sge)
{
	return vb_answer(vb_ops(pd->context)->advise_mr(pd, advice, flags, sg_list, num_sge));
}

/*
 * Exactly one of ADDR and FD is needed. A buffer stands for memory with an address, not for a file.
 */
static int check_ex_mask(uint64_t mask)
{
	const uint64_t known = IBV_REG_MR_MASK_IOVA | IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_FD |
			       IBV_REG_MR_MASK_FD_OFFSET | IBV_REG_MR_MASK_DMAH |
			       IBV_REG_MR_MASK_BUF;
	const uint64_t file = IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_FD_OFFSET;
	int err = vb_check_mask("reg_mr_ex", "comp_mask", mask, known);

	if (err)
		return err;
	if (!(mask & IBV_REG_MR_MASK_ADDR) == !(mask & IBV_REG_MR_MASK_FD))
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK,
				 "reg_mr_ex: exactly one of addr and fd is needed");
	if ((mask & IBV_REG_MR_MASK_ADDR) && (mask & file))
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK, "reg_mr_ex: fd_offset without fd");
	if ((mask & IBV_REG_MR_MASK_BUF) && (mask & file))
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK, "reg_mr_ex: a buffer needs addr");
	return 0;
}

/* The hint changes nothing, but a handle that does not exist is refused. */
static int check_dmah(struct ibv_pd *pd, const struct ibv_mr_init_attr *attr)
{
	if (!(attr->comp_mask & IBV_REG_MR_MASK_DMAH))
		return 0;
	if (!attr->dmah)
		return vb_refuse_null("reg_mr_ex", "dmah");
	if (attr->access & IBV_ACCESS_ON_DEMAND)
		return vb_refuse(EINVAL, VB_REASON_ARG, "reg_mr_ex: a dmah with ON_DEMAND");
	return vb_ops(pd->context)->check_dmah(pd->context, attr->dmah);
}

static struct ibv_mr *reg_buf(struct ibv_pd *pd, const struct ibv_mr_init_attr *attr, uint64_t iova)
{
	struct ibv_mr *mr = NULL;
	int err;

	if (!attr->buf)
		return vb_answer_null(vb_refuse_null("reg_mr_ex", "buf"));
	err = vb_ops(pd->context)
		      ->reg_buf_mr(pd, attr->buf, attr->addr, attr->length, iova,
				   (unsigned int)attr->access, &mr);
	return err ? vb_answer_null(err) : mr;
}

VB_EXPORT struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr)
{
	uint64_t iova, offset;
	int err;

	if (!attr || !pd)
		return vb_answer_null(vb_refuse_null("reg_mr_ex", attr ? "pd" : "attr"));
	err = check_ex_mask(attr->comp_mask);
	if (!err)
		err = check_dmah(pd, attr);
	if (err)
		return vb_answer_null(err);
	if (attr->comp_mask & IBV_REG_MR_MASK_FD) {
		offset = (attr->comp_mask & IBV_REG_MR_MASK_FD_OFFSET) ? attr->fd_offset : 0;
		iova = (attr->comp_mask & IBV_REG_MR_MASK_IOVA) ? attr->iova : offset;
		return reg_dmabuf("reg_mr_ex", pd, offset, attr->length, iova, attr->fd,
				  (unsigned int)attr->access);
	}
	iova = (attr->comp_mask & IBV_REG_MR_MASK_IOVA) ? attr->iova : (uintptr_t)attr->addr;
	if (attr->comp_mask & IBV_REG_MR_MASK_BUF)
		return reg_buf(pd, attr, iova);
	return reg(pd, attr->addr, attr->length, iova, (unsigned int)attr->access);
}

/* After these faults the old registration is as it was (ibv_rereg_mr(3)). */
static int check_rereg(int flags, const struct ibv_pd *pd, const void *addr, size_t length,
		       int access)
{
	int err = vb_check_mask("rereg_mr", "flags", (unsigned int)flags,
				IBV_REREG_MR_FLAGS_SUPPORTED);

	if (!err && (flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!addr || !length))
		err = vb_refuse(EINVAL, VB_REASON_ARG, "rereg_mr: no range to change to");
	if (!err && (flags & IBV_REREG_MR_CHANGE_PD) && !pd)
		err = vb_refuse_null("rereg_mr", "pd");
	if (!err && access && !(flags & IBV_REREG_MR_CHANGE_ACCESS))
		err = vb_refuse(EINVAL, VB_REASON_ARG,
				"rereg_mr: access 0x%x without CHANGE_ACCESS",
				(unsigned int)access);
	if (!err && (flags & IBV_REREG_MR_CHANGE_TRANSLATION) &&
	    (uintptr_t)addr + (length - 1) < (uintptr_t)addr)
		err = vb_refuse(EINVAL, VB_REASON_ARG, "rereg_mr: %p+%zu wraps around", addr,
				length);
	return err;
}

VB_EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
			   size_t length, int access)
{
	int err, code;

	if (!mr) {
		errno = -vb_refuse_null("rereg_mr", "mr");
		return IBV_REREG_MR_ERR_INPUT;
	}
	err = check_rereg(flags, pd, addr, length, access);
	if (err) {
		errno = -err;
		return IBV_REREG_MR_ERR_INPUT;
	}
	code = vb_ops(mr->context)->rereg_mr(mr, flags, pd, addr, length, access);
	if (!code)
		return 0;
	errno = EINVAL;
	return code > 0 ? -code : code;
}

VB_EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	if (!mr)
		return vb_answer(vb_refuse_null("dereg_mr", "mr"));
	return vb_answer(vb_ops(mr->context)->dereg_mr(mr));
}
