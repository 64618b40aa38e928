/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The GID and P_Key tables: ibv_query_gid(3), ibv_query_gid_ex(3), ibv_query_pkey(3). */
#include <string.h>

#include "verbs/face.h"
#include "verbs/gid.h"

static void copy_entry(void *dst, size_t dst_size, const struct ibv_gid_entry *entry)
{
	memset(dst, 0, dst_size);
	memcpy(dst, entry, dst_size < sizeof(*entry) ? dst_size : sizeof(*entry));
}

/*
 * Copies as many of one port's entries as fit. Returns how many there are so far, or a negative
 * errno.
 */
static ssize_t collect_port(struct ibv_context *ctx, uint32_t port, char *entries, size_t have,
			    size_t max_entries, size_t entry_size)
{
	struct ibv_port_attr attr = {0};
	int err = vb_ops(ctx)->query_port(ctx, (uint8_t)port, &attr);

	if (err)
		return err;
	for (int i = 0; i < attr.gid_tbl_len; i++) {
		struct ibv_gid_entry entry = {0};

		err = vb_ops(ctx)->query_gid_entry(ctx, port, (uint32_t)i, &entry);
		if (err == -ENODATA)
			continue;
		if (err)
			return err;
		if (have < max_entries)
			copy_entry(entries + have * entry_size, entry_size, &entry);
		have++;
	}
	return (ssize_t)have;
}

static ssize_t collect(struct ibv_context *ctx, struct ibv_gid_entry *entries, size_t max_entries,
		       size_t entry_size)
{
	struct ibv_device_attr_ex attr = {0};
	ssize_t have = 0;
	int err = vb_ops(ctx)->query_device(ctx, &attr);

	if (err)
		return err;
	for (uint32_t port = 1; port <= attr.orig_attr.phys_port_cnt && have >= 0; port++)
		have = collect_port(ctx, port, (char *)entries, (size_t)have, max_entries,
				    entry_size);
	return have;
}

/*
 * Counts first: when the caller's memory is too small, it stays as it is, unless an address comes
 * in between.
 */
static ssize_t query_table(struct ibv_context *ctx, struct ibv_gid_entry *entries,
			   size_t max_entries, size_t entry_size)
{
	ssize_t have = collect(ctx, NULL, 0, entry_size);

	if (have >= 0 && (size_t)have <= max_entries)
		have = collect(ctx, entries, max_entries, entry_size);
	if (have >= 0 && (size_t)have > max_entries)
		have = vb_refuse(EINVAL, VB_REASON_ARG,
				 "query_gid_table: %zd entries, room for %zu", have, max_entries);
	return have;
}

VB_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries,
				       size_t max_entries, uint32_t flags, size_t entry_size)
{
	ssize_t ret = vb_check_flags("query_gid_table", "flags", flags, 0);

	if (!ret && !ctx)
		ret = vb_refuse_null("query_gid_table", "context");
	if (!ret && (!entry_size || (!entries && max_entries)))
		ret = vb_refuse(EINVAL, VB_REASON_ARG,
				"query_gid_table: nowhere to put entries of %zu bytes", entry_size);
	if (!ret)
		ret = query_table(ctx, entries, max_entries, entry_size);
	if (ret < 0)
		errno = (int)-ret;
	return ret;
}

VB_EXPORT int _ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
				struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry found = {0};
	int err;

	if (!ctx || !entry || !entry_size)
		return vb_answer(vb_refuse_null("query_gid_ex", ctx ? "entry" : "context"));
	err = vb_check_flags("query_gid_ex", "flags", flags, 0);
	if (!err)
		err = vb_ops(ctx)->query_gid_entry(ctx, port, index, &found);
	if (!err)
		copy_entry(entry, entry_size, &found);
	return vb_answer(err);
}

/*
 * An empty slot inside the table reads as zeros, because programs walk the table and skip such
 * slots.
 */
static int query_gid(struct ibv_context *ctx, uint8_t port, int index, struct ibv_gid_entry *entry)
{
	int err;

	if (!ctx)
		return vb_refuse_null("query_gid", "context");
	if (index < 0)
		return vb_refuse(EINVAL, VB_REASON_ARG, "query_gid: index %d", index);
	err = vb_ops(ctx)->query_gid_entry(ctx, port, (uint32_t)index, entry);
	if (err != -ENODATA)
		return err;
	*entry = (struct ibv_gid_entry){0};
	return 0;
}

VB_EXPORT int ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
	struct ibv_gid_entry entry = {0};
	int err;

	if (!gid)
		return vb_answer_minus_one(vb_refuse_null("query_gid", "gid"));
	err = query_gid(ctx, port, index, &entry);
	if (!err)
		*gid = entry.gid;
	return vb_answer_minus_one(err);
}

int vb_gid_type(struct ibv_context *ctx, uint8_t port, int index, uint32_t *type)
{
	struct ibv_gid_entry entry = {0};
	int err = query_gid(ctx, port, index, &entry);

	if (!err)
		*type = entry.gid_type;
	return err;
}

int vb_gid_find(struct ibv_context *ctx, uint8_t port, const union ibv_gid *gid, uint32_t type)
{
	struct ibv_port_attr attr = {0};
	int err = vb_ops(ctx)->query_port(ctx, port, &attr);

	if (err)
		return err;
	for (int i = 0; i < attr.gid_tbl_len; i++) {
		struct ibv_gid_entry entry = {0};

		if (vb_ops(ctx)->query_gid_entry(ctx, port, (uint32_t)i, &entry))
			continue;
		if (entry.gid_type == type && !memcmp(&entry.gid, gid, sizeof(*gid)))
			return i;
	}
	return -ENOENT;
}

VB_EXPORT int ibv_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
	if (!ctx || !pkey)
		return vb_answer_minus_one(vb_refuse_null("query_pkey", ctx ? "pkey" : "context"));
	return vb_answer_minus_one(vb_ops(ctx)->query_pkey(ctx, port, index, pkey));
}

VB_EXPORT int ibv_get_pkey_index(struct ibv_context *ctx, uint8_t port, __be16 pkey)
{
	struct ibv_port_attr attr = {0};
	int err = ctx ? vb_ops(ctx)->query_port(ctx, port, &attr)
		      : vb_refuse_null("get_pkey_index", "context");

	for (int i = 0; !err && i < attr.pkey_tbl_len; i++) {
		__be16 entry = 0;

		err = vb_ops(ctx)->query_pkey(ctx, port, i, &entry);
		if (!err && entry == pkey)
			return i;
	}
	if (!err)
		err = vb_refuse(EINVAL, VB_REASON_ARG, "get_pkey_index: the table lacks the key");
	return vb_answer_minus_one(err);
}
