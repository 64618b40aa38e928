/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What completion queues and their channels refuse, row by row, and that what was refused changed
 * nothing: ibv_create_cq(3), ibv_create_cq_ex(3), ibv_resize_cq(3), ibv_poll_cq(3),
 * ibv_get_cq_event(3), ibv_get_async_event(3).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static struct ibv_context *ctx, *other;
static struct ibv_pd *pd, *other_pd;
static struct ibv_comp_channel *channel, *other_channel;
static struct ibv_device_attr device;

static void creation(void)
{
	const struct {
		const char *what;
		int cqe;
		struct ibv_comp_channel *channel;
		int vector;
	} rows[] = {
		{"no entries", 0, NULL, 0},
		{"-1 entries", -1, NULL, 0},
		{"the least number", INT_MIN, NULL, 0},
		{"one entry too many", device.max_cqe + 1, NULL, 0},
		{"the largest number", INT_MAX, NULL, 0},
		{"vector -1", 4, NULL, -1},
		{"one vector too many", 4, NULL, ctx->num_comp_vectors},
		{"the largest vector", 4, NULL, INT_MAX},
		{"another context's channel", 4, other_channel, 0},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		expect_case("create_cq: %s", rows[i].what);
		EXPECT_NULL(ibv_create_cq(ctx, rows[i].cqe, NULL, rows[i].channel, rows[i].vector),
			    EINVAL);
	}
	expect_case("create_cq: refused ones do not use the channel");
	EXPECT_EQ(ibv_destroy_comp_channel(other_channel), 0);
	other_channel = ibv_create_comp_channel(other);
	CHECK(other_channel);
}

static void creation_ex_row(const char *what, struct ibv_cq_init_attr_ex attr, int err)
{
	struct ibv_cq_init_attr_ex before;
	struct ibv_cq_ex *cq;

	memcpy(&before, &attr, sizeof(attr));
	expect_case("create_cq_ex: %s", what);
	if (err) {
		EXPECT_NULL(ibv_create_cq_ex(ctx, &attr), err);
	} else {
		cq = ibv_create_cq_ex(ctx, &attr);
		CHECK(cq);
		EXPECT_EQ(cq->cqe, attr.cqe);
		EXPECT(cq->channel == attr.channel && cq->cq_context == attr.cq_context);
		EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	}
	EXPECT_UNTOUCHED(attr, before);
}

static void creation_ex(void)
{
	const uint32_t max = (uint32_t)device.max_cqe, vectors = (uint32_t)ctx->num_comp_vectors;
	const struct {
		const char *what;
		struct ibv_cq_init_attr_ex attr;
		int err;
	} rows[] = {
		{"one entry", {.cqe = 1}, 0},
		{"max_cqe", {.cqe = max, .cq_context = &device}, 0},
		{"no entries", {.cqe = 0}, EINVAL},
		{"one entry too many", {.cqe = max + 1}, EINVAL},
		{"the largest number", {.cqe = UINT32_MAX}, EINVAL},
		{"the last vector", {.cqe = 4, .comp_vector = vectors - 1}, 0},
		{"one vector too many", {.cqe = 4, .comp_vector = vectors}, EINVAL},
		{"the largest vector", {.cqe = 4, .comp_vector = UINT32_MAX}, EINVAL},
		{"a channel", {.cqe = 4, .channel = channel}, 0},
		{"another context's channel", {.cqe = 4, .channel = other_channel}, EINVAL},
		{"the first unknown mask bit", {.cqe = 4, .comp_mask = 1u << 2}, EINVAL},
		{"the last mask bit", {.cqe = 4, .comp_mask = 1u << 31}, EINVAL},
		{"the first unknown flag",
		 {.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = 1u << 2},
		 EINVAL},
		{"the last flag",
		 {.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = 1u << 31},
		 EINVAL},
		{"no flag at all", {.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS}, 0},
		{"flags without their mask bit are not looked at", {.cqe = 4, .flags = 0xff}, 0},
		{"no parent domain", {.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD}, EINVAL},
		{"an ordinary pd for a parent domain",
		 {.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = pd},
		 EINVAL},
		{"another context's pd",
		 {.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = other_pd},
		 ENOENT},
		{"a pd without its mask bit is not looked at",
		 {.cqe = 4, .parent_domain = other_pd},
		 0},
		{"every field", {.cqe = 4, .wc_flags = IBV_CREATE_CQ_SUP_WC_FLAGS}, 0},
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		creation_ex_row(rows[i].what, rows[i].attr, rows[i].err);
	for (int bit = 0; bit < 64; bit++) {
		struct ibv_cq_init_attr_ex attr = {.cqe = 4, .wc_flags = 1ull << bit};

		if (attr.wc_flags & IBV_CREATE_CQ_SUP_WC_FLAGS)
			continue;
		expect_case("create_cq_ex: wc_flags bit %d", bit);
		EXPECT_NULL(ibv_create_cq_ex(ctx, &attr), EOPNOTSUPP);
	}
}

/* A queue pair in ERR: each receive posted to it is an entry of its queue at once. */
static struct ibv_qp *flusher(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_recv_wr = 64, .max_recv_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	CHECK(qp);
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_ERR;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	return qp;
}

static void entries(struct ibv_qp *qp, uint64_t first, uint64_t n)
{
	for (uint64_t i = first; i < first + n; i++) {
		struct ibv_recv_wr recv = {.wr_id = i}, *bad;

		CHECK(!ibv_post_recv(qp, &recv, &bad));
	}
}

static void resize(void)
{
	const struct {
		const char *what;
		int cqe;
	} rows[] = {
		{"no entries", 0},
		{"-1 entries", -1},
		{"the least number", INT_MIN},
		{"one entry too many", device.max_cqe + 1},
		{"the largest number", INT_MAX},
		{"one less than are unpolled", 4},
	};
	struct ibv_cq *cq = ibv_create_cq(ctx, 8, NULL, channel, 0), *told;
	struct ibv_qp *qp = flusher(cq);
	struct ibv_wc wc[8];
	void *cq_context;
	uint32_t handle;

	entries(qp, 0, 5);
	for (size_t i = 0; i < COUNT(rows); i++) {
		expect_case("resize: %s", rows[i].what);
		EXPECT_REFUSED(ibv_resize_cq(cq, rows[i].cqe), EINVAL);
		EXPECT_EQ(cq->cqe, 8);
	}
	expect_case("resize: handle overwritten");
	handle = cq->handle;
	cq->handle = 0xdeadbeef;
	EXPECT_REFUSED(ibv_resize_cq(cq, 16), ENOENT);
	EXPECT_EQ(ibv_req_notify_cq(cq, 0), ENOENT);
	cq->handle = handle;
	EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
	EXPECT_EQ(cq->cqe, 8);
	expect_case("resize: to exactly max_cqe, and to exactly what is unpolled");
	EXPECT_EQ(ibv_resize_cq(cq, device.max_cqe), 0);
	EXPECT_EQ(cq->cqe, device.max_cqe);
	EXPECT_EQ(ibv_resize_cq(cq, 5), 0);
	EXPECT_EQ(cq->cqe, 5);
	EXPECT_EQ(ibv_poll_cq(cq, 8, wc), 5);
	for (uint64_t i = 0; i < 5; i++)
		EXPECT_EQ(wc[i].wr_id, i);

	expect_case("resize: stays armed");
	EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
	EXPECT_EQ(ibv_resize_cq(cq, 9), 0);
	entries(qp, 9, 1);
	EXPECT_EQ(ibv_get_cq_event(channel, &told, &cq_context), 0);
	EXPECT(told == cq);
	ibv_ack_cq_events(cq, 1);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

/*
 * What an iteration has passed is given back at its end only, so it counts (ibv_create_cq_ex(3)).
 */
static void resize_in_iteration(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 8, .wc_flags = IBV_CREATE_CQ_SUP_WC_FLAGS};
	struct ibv_cq_ex *ex = ibv_create_cq_ex(ctx, &attr);
	struct ibv_cq *cq = ibv_cq_ex_to_cq(ex);
	struct ibv_qp *qp;

	CHECK(ex);
	qp = flusher(cq);
	entries(qp, 0, 3);
	expect_case("resize inside an iteration");
	CHECK(!ibv_start_poll(ex, NULL) && !ibv_next_poll(ex));
	EXPECT_REFUSED(ibv_resize_cq(cq, 2), EINVAL);
	EXPECT_EQ(ibv_resize_cq(cq, 3), 0);
	EXPECT_EQ(ex->wr_id, 1);
	EXPECT_EQ(ibv_next_poll(ex), 0);
	EXPECT_EQ(ex->wr_id, 2);
	EXPECT_EQ(ibv_resize_cq(cq, 4), 0);
	EXPECT_EQ(ibv_next_poll(ex), ENOENT);
	ibv_end_poll(ex);
	EXPECT_EQ(ibv_resize_cq(cq, 1), 0);
	entries(qp, 7, 1);
	EXPECT_EQ(ibv_start_poll(ex, NULL), 0);
	EXPECT_EQ(ex->wr_id, 7);
	ibv_end_poll(ex);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

static void modify(void)
{
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE};
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	uint32_t handle;

	CHECK(cq);
	for (int bit = 1; bit < 32; bit++) {
		expect_case("modify: mask bit %d", bit);
		attr.attr_mask = IBV_CQ_ATTR_MODERATE | 1u << bit;
		EXPECT_REFUSED(ibv_modify_cq(cq, &attr), EINVAL);
	}
	expect_case("modify: handle overwritten");
	attr.attr_mask = IBV_CQ_ATTR_MODERATE;
	handle = cq->handle;
	cq->handle = 0xdeadbeef;
	EXPECT_REFUSED(ibv_modify_cq(cq, &attr), ENOENT);
	cq->handle = handle;
	EXPECT_EQ(ibv_modify_cq(cq, &attr), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

static void poll_arguments(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	struct ibv_wc wc = {.wr_id = 77};
	struct ibv_qp *qp;

	CHECK(cq);
	qp = flusher(cq);
	entries(qp, 1, 1);
	expect_case("poll: a negative number of entries takes none");
	EXPECT_EQ(ibv_poll_cq(cq, -1, &wc), -EINVAL);
	EXPECT_EQ(ibv_poll_cq(cq, INT_MIN, &wc), -EINVAL);
	EXPECT_EQ(ibv_poll_cq(cq, 0, &wc), 0);
	EXPECT_EQ(wc.wr_id, 77);
	EXPECT_EQ(ibv_poll_cq(cq, INT_MAX, &wc), 1);
	EXPECT_EQ(wc.wr_id, 1);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

static void iteration_arguments(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr;

	for (int bit = 0; bit < 32; bit++) {
		expect_case("start_poll: comp_mask bit %d", bit);
		attr.comp_mask = 1u << bit;
		EXPECT_EQ(ibv_start_poll(cq, &attr), EINVAL);
	}
}

/*
 * What a queue has to say after an overrun, entry by entry: those that are in it, then EIO for as
 * long as it lives.
 */
static void overrun(uint32_t flags)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 8,
					   .wc_flags = IBV_WC_STANDARD_FLAGS,
					   .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					   .flags = flags};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &attr);
	struct ibv_poll_cq_attr none = {.comp_mask = 0};
	struct ibv_async_event event;
	struct ibv_qp *qp;
	struct ibv_wc wc;

	expect_case("overrun of a queue made smaller, flags %u", flags);
	CHECK(cq);
	EXPECT_EQ(ibv_resize_cq(ibv_cq_ex_to_cq(cq), 3), 0);
	qp = flusher(ibv_cq_ex_to_cq(cq));
	entries(qp, 0, 3);
	iteration_arguments(cq);
	expect_case("overrun: the fourth of three, flags %u", flags);
	entries(qp, 3, 1);
	CHECK(ibv_get_async_event(ctx, &event) == 0);
	EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
	EXPECT(event.element.cq == ibv_cq_ex_to_cq(cq));
	ibv_ack_async_event(&event);
	for (uint64_t i = 0; i < 3; i++) {
		EXPECT_EQ(i ? ibv_next_poll(cq) : ibv_start_poll(cq, &none), 0);
		EXPECT_EQ(cq->wr_id, i);
	}
	EXPECT_EQ(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	EXPECT_EQ(ibv_start_poll(cq, &none), EIO);
	EXPECT_EQ(ibv_start_poll(cq, NULL), EIO); /* no end_poll was due */
	EXPECT_EQ(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc), -EIO);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/*
 * Something that cannot be read takes the descriptor's place; returns the descriptor under another
 * number.
 */
static int descriptor_hide(int fd, const char *path, int flags)
{
	int kept = fcntl(fd, F_DUPFD_CLOEXEC, 0), instead = open(path, flags);

	CHECK(kept >= 0 && instead >= 0);
	CHECK(dup2(instead, fd) == fd);
	close(instead);
	return kept;
}

static void descriptor_show(int fd, int kept)
{
	CHECK(dup2(kept, fd) == fd);
	close(kept);
}

/*
 * A descriptor that the program has closed, or put something else under, is told of; afterwards
 * events come as ever.
 */
static void descriptors(void)
{
	static const struct {
		const char *what, *path;
		int flags, err;
	} rows[] = {
		{"closed", "/", O_PATH, EBADF},
		{"something else", "/dev/null", O_RDONLY, EBADF},
	};
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, channel, 0), *told = NULL;
	struct ibv_async_event event;
	void *cq_context = &device;
	struct ibv_qp *qp = flusher(cq);

	EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
	entries(qp, 1, 1);
	for (size_t i = 0; i < COUNT(rows); i++) {
		int kept = descriptor_hide(channel->fd, rows[i].path, rows[i].flags);

		expect_case("get_cq_event: descriptor: %s", rows[i].what);
		EXPECT_MINUS1(ibv_get_cq_event(channel, &told, &cq_context), rows[i].err);
		EXPECT(!told && cq_context == &device);
		descriptor_show(channel->fd, kept);
	}
	expect_case("get_cq_event: the event is still there");
	EXPECT_EQ(ibv_get_cq_event(channel, &told, &cq_context), 0);
	EXPECT(told == cq && !cq_context);
	ibv_ack_cq_events(cq, 0); /* of none: nothing */
	ibv_ack_cq_events(cq, 1);

	entries(qp, 2, 4);
	for (size_t i = 0; i < COUNT(rows); i++) {
		int kept = descriptor_hide(ctx->async_fd, rows[i].path, rows[i].flags);

		expect_case("get_async_event: descriptor: %s", rows[i].what);
		event.event_type = IBV_EVENT_DEVICE_FATAL;
		EXPECT_MINUS1(ibv_get_async_event(ctx, &event), rows[i].err);
		EXPECT_EQ(event.event_type, IBV_EVENT_DEVICE_FATAL);
		descriptor_show(ctx->async_fd, kept);
	}
	expect_case("get_async_event: the event is still there");
	EXPECT_EQ(ibv_get_async_event(ctx, &event), 0);
	EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
	ibv_ack_async_event(&event);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	ctx = device_open();
	other = device_open();
	CHECK(ibv_query_device(ctx, &device) == 0);
	pd = ibv_alloc_pd(ctx);
	other_pd = ibv_alloc_pd(other);
	channel = ibv_create_comp_channel(ctx);
	other_channel = ibv_create_comp_channel(other);
	CHECK(pd && other_pd && channel && other_channel);
	creation();
	creation_ex();
	resize();
	resize_in_iteration();
	modify();
	poll_arguments();
	overrun(0);
	overrun(IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	descriptors();
	EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
	EXPECT_EQ(ibv_destroy_comp_channel(other_channel), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_dealloc_pd(other_pd), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	EXPECT_EQ(ibv_close_device(other), 0);
	return expect_done();
}
