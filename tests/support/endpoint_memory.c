/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The memory of an endpoint: its buffer, and the regions and windows that a test adds. */
#include "support/endpoint.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/check.h"
#include "support/endpoint_apart.h"

void ep_poke(struct endpoint *ep, size_t offset, const void *data, size_t length)
{
	struct ep_request request = {.verb = EP_POKE};

	if (ep->place == EP_HERE) {
		memcpy(ep->buffer + offset, data, length);
		return;
	}
	for (size_t done = 0; done < length; done += request.length) {
		request.offset = offset + done;
		request.length = length - done < EP_CHUNK ? length - done : EP_CHUNK;
		memcpy(request.data, (const uint8_t *)data + done, request.length);
		apart_do(ep, &request);
	}
}

void ep_peek(struct endpoint *ep, size_t offset, void *data, size_t length)
{
	struct ep_request request = {.verb = EP_PEEK};
	struct ep_reply reply;

	if (ep->place == EP_HERE) {
		memcpy(data, ep->buffer + offset, length);
		return;
	}
	for (size_t done = 0; done < length; done += request.length) {
		request.offset = offset + done;
		request.length = length - done < EP_CHUNK ? length - done : EP_CHUNK;
		apart_ask(ep, &request, &reply);
		memcpy((uint8_t *)data + done, reply.data, request.length);
	}
}

void ep_fill(struct endpoint *ep, size_t offset, int byte, size_t length)
{
	uint8_t *data = malloc(length);

	CHECK(data);
	memset(data, byte, length);
	ep_poke(ep, offset, data, length);
	free(data);
}

bool ep_is_filled(struct endpoint *ep, size_t offset, int byte, size_t length)
{
	uint8_t *data = malloc(length);
	size_t same = 0;

	CHECK(data);
	ep_peek(ep, offset, data, length);
	while (same < length && data[same] == (uint8_t)byte)
		same++;
	free(data);
	return same == length;
}

/* Maps pages of an empty file: the addresses stay taken, so that no other mapping gets there. */
void ep_vanish(struct endpoint *ep, size_t offset, size_t length)
{
	int fd;

	if (ep->place == EP_APART) {
		apart_do(ep, &(struct ep_request){
				     .verb = EP_VANISH, .offset = offset, .length = length});
		return;
	}
	fd = memfd_create("empty", MFD_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(mmap(ep->buffer + offset, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		   0) != MAP_FAILED);
	close(fd);
}

static int reg_here(struct endpoint *ep, size_t offset, size_t length, int access, bool other_pd,
		    struct ep_key *key)
{
	struct ibv_mr *mr;
	int index = 0;

	while (index < EP_EXTRA_MRS && ep->extra[index])
		index++;
	CHECK(index < EP_EXTRA_MRS);
	*key = (struct ep_key){0};
	mr = ibv_reg_mr(other_pd ? ep->other_pd : ep->pd, ep->buffer + offset, length, access);
	if (!mr)
		return errno;
	ep->extra[index] = mr;
	*key = (struct ep_key){.index = index, .lkey = mr->lkey, .rkey = mr->rkey};
	return 0;
}

int ep_reg(struct endpoint *ep, size_t offset, size_t length, int access, bool other_pd,
	   struct ep_key *key)
{
	struct ep_request request = {
		.verb = EP_REG, .offset = offset, .length = length, .a = access, .b = other_pd};
	struct ep_reply reply;

	if (ep->place == EP_HERE)
		return reg_here(ep, offset, length, access, other_pd, key);
	apart_ask(ep, &request, &reply);
	*key = reply.key;
	return reply.result;
}

int ep_dereg(struct endpoint *ep, int index)
{
	int err;

	if (ep->place == EP_APART)
		return apart_do(ep, &(struct ep_request){.verb = EP_DEREG, .a = index});
	err = ibv_dereg_mr(ep->extra[index]);
	if (!err)
		ep->extra[index] = NULL;
	return err;
}

int ep_window(struct endpoint *ep, int index, enum ibv_mw_type type)
{
	if (ep->place == EP_APART)
		return apart_do(
			ep, &(struct ep_request){.verb = EP_WINDOW, .a = index, .b = (int)type});
	ep->window[index] = ibv_alloc_mw(ep->pd, type);
	return ep->window[index] ? 0 : errno;
}

/* A window of type 1 is bound by a call, of type 2 by a request. */
static int bind_here(struct endpoint *ep, struct ibv_mw *mw, const struct ibv_mw_bind_info *info,
		     uint32_t *rkey)
{
	struct ibv_mw_bind bind = {
		.wr_id = 77, .send_flags = IBV_SEND_SIGNALED, .bind_info = *info};
	struct ibv_send_wr wr = ep_wr(IBV_WR_BIND_MW, 77, NULL, 0);
	int err;

	if (mw->type == IBV_MW_TYPE_1) {
		err = ibv_bind_mw(ep->qp, mw, &bind);
		*rkey = mw->rkey;
		return err;
	}
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = *rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = *info;
	return ep_post_send(ep, &wr);
}

int ep_bind(struct endpoint *ep, int index, const struct ep_key *region, size_t offset,
	    size_t length, int access, uint32_t *rkey)
{
	struct ep_request request = {.verb = EP_BIND,
				     .a = index,
				     .b = region ? region->index : -1,
				     .c = access,
				     .offset = offset,
				     .length = length};
	struct ibv_mw_bind_info info = {.length = length, .mw_access_flags = (unsigned int)access};
	struct ep_reply reply;

	if (ep->place == EP_HERE) {
		if (region) {
			info.mr = ep->extra[region->index];
			info.addr = (uintptr_t)ep->buffer + offset;
		}
		return bind_here(ep, ep->window[index], &info, rkey);
	}
	apart_ask(ep, &request, &reply);
	*rkey = reply.key.rkey;
	return reply.result;
}

int ep_window_free(struct endpoint *ep, int index)
{
	int err;

	if (ep->place == EP_APART)
		return apart_do(ep, &(struct ep_request){.verb = EP_WINDOW_FREE, .a = index});
	err = ibv_dealloc_mw(ep->window[index]);
	if (!err)
		ep->window[index] = NULL;
	return err;
}
