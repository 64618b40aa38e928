/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Port counters: what N messages of S bytes add to them, over each link and by each operation; what
 * faults add, those of the network among them (VERBATIM_FAULT); that nothing is lost or counted
 * twice when processes end and their files are added up; that a number never goes back.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "base/port_counters.h"
#include "support/check.h"
#include "support/endpoint.h"
#include "support/folder.h"
#include "view/counters_show.h"
#include "view/counters_sum.h"

enum {
	MTU = 1024,
	MESSAGES = 40,
	SIZE = 3000,
	BUF = 1 << 16,
	ATOMICS = 10,
	PATIENCE = 4000,
	STILL = 40
};

static enum ep_place place;
static char view[] = "/tmp/verbatim-count-XXXXXX";
static char device[VB_COUNTER_DEVICE];
static struct endpoint near, far;
static struct vb_port_counters before, after;
static bool packets; /* the link is the one between hosts */
static bool faults;  /* and loses some (VERBATIM_FAULT) */

static void make_view(void)
{
	CHECK(mkdtemp(view));
	CHECK_ZERO(counters_prepare(view));
	setenv("VERBATIM_VIEW", view, 1);
}

static void remove_view(void)
{
	char command[PATH_MAX];

	snprintf(command, sizeof(command), "rm -rf '%s'", view);
	CHECK_ZERO(system(command));
}

static void sum(struct vb_port_counters *to)
{
	CHECK_ZERO(counters_sum(view, device, to));
}

/*
 * Acknowledgements may still be under way when a request is complete. Between hosts a queue pair
 * that ends sends some that nobody waits for: there it is enough that nothing has changed in some
 * looks, in each of which both processes have polled. Where packets get lost the sums of both sides
 * are never equal, and what is compared has been counted when a request is complete.
 */
static void sum_settled(struct vb_port_counters *to)
{
	static uint64_t lost;
	struct vb_port_counters last;
	int still = 0;

	sum(to);
	for (int i = 0; i < PATIENCE && !faults; i++) {
		struct ibv_wc wc;

		if (to->tx_packets == to->rx_packets + lost)
			return;
		if (packets && still == STILL) {
			lost = to->tx_packets - to->rx_packets;
			return;
		}
		last = *to;
		ep_poll(&near, EP_SEND_CQ, &wc, 1, 0);
		ep_poll(&far, EP_SEND_CQ, &wc, 1, 0);
		usleep(500);
		sum(to);
		still = memcmp(&last, to, sizeof(last)) ? 0 : still + 1;
	}
	CHECK_SAY(faults, "%llu packets were sent, %llu received",
		  (unsigned long long)to->tx_packets, (unsigned long long)to->rx_packets);
}

static void open_pair(enum ibv_qp_type type)
{
	struct ep_config config = ep_defaults(type);

	config.buf_len = BUF;
	config.mtu = IBV_MTU_1024;
	config.timeout = 12; /* 17 ms: lost packets are many */
	config.retry_cnt = 7;
	config.rnr_retry = 1;
	config.min_rnr_timer = 1;
	ep_pair(&near, &far, &config, &config, place);
	snprintf(device, sizeof(device), "%s", near.context->device->name);
	sum_settled(&before);
}

static uint64_t packets_of(uint32_t bytes)
{
	return (bytes + MTU - 1) / MTU;
}

static void one(enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_sge sge = ep_sge(&near, 0, length);
	struct ibv_send_wr wr = ep_wr(opcode, 1, &sge, 1);
	struct ibv_sge into = ep_sge(&far, 0, SIZE);
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = far.local.addr;
	wr.wr.rdma.rkey = far.local.rkey;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = far.local.addr;
		wr.wr.atomic.rkey = far.local.rkey;
		wr.wr.atomic.compare_add = 1;
	}
	if (opcode == IBV_WR_SEND)
		CHECK_ZERO(ep_post_recv(&far, 2, &into, 1));
	CHECK_ZERO(ep_post_send(&near, &wr));
	CHECK_EQ(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	if (opcode == IBV_WR_SEND)
		CHECK_EQ(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
}

/* `answers`: packets without payload that each message needs at least, besides acknowledgements. */
static void moved(const char *name, enum ibv_wr_opcode opcode, uint32_t length, uint32_t times,
		  uint32_t answers)
{
	uint32_t payload = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 0 : length;
	uint64_t data;

	expect_case("%s: %u messages of %u bytes", name, times, length);
	open_pair(IBV_QPT_RC);
	data = (payload ? packets_of(payload) : 1) + answers;
	for (uint32_t i = 0; i < times; i++)
		one(opcode, length);
	sum_settled(&after);
	if (faults) { /* what is sent again counts again */
		EXPECT(after.tx_bytes - before.tx_bytes >= (uint64_t)times * payload);
		ep_pair_close(&near, &far);
		return;
	}
	EXPECT_EQ(after.tx_bytes - before.tx_bytes, (uint64_t)times * payload);
	EXPECT_EQ(after.rx_bytes - before.rx_bytes, (uint64_t)times * payload);
	EXPECT(after.tx_packets - before.tx_packets >= times * data);
	EXPECT(after.tx_packets - before.tx_packets <= times * (data + 1) + (packets ? 2 : 0));
	EXPECT_EQ(after.rx_write_requests - before.rx_write_requests,
		  opcode == IBV_WR_RDMA_WRITE ? times : 0);
	EXPECT_EQ(after.rx_read_requests - before.rx_read_requests,
		  opcode == IBV_WR_RDMA_READ ? times : 0);
	EXPECT_EQ(after.rx_atomic_requests - before.rx_atomic_requests,
		  opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? times : 0);
	EXPECT_EQ(after.req_cqe_error, before.req_cqe_error);
	EXPECT_EQ(after.rx_errors, before.rx_errors);
	EXPECT(packets || after.rx_dropped == before.rx_dropped);
	ep_pair_close(&near, &far);
}

static void no_receive(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, &sge, 1);
	struct ibv_wc wc;

	expect_case("a SEND without a receive");
	open_pair(IBV_QPT_RC);
	sge = ep_sge(&near, 0, 8);
	CHECK_ZERO(ep_post_send(&near, &wr));
	EXPECT_EQ(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_RNR_RETRY_EXC_ERR);
	sum(&after);
	EXPECT_EQ(after.out_of_buffer - before.out_of_buffer, 2);
	EXPECT_EQ(after.rnr_nak_retry_err - before.rnr_nak_retry_err, 2);
	EXPECT_EQ(after.req_rnr_retries_exceeded - before.req_rnr_retries_exceeded, 1);
	EXPECT_EQ(after.req_cqe_error - before.req_cqe_error, 1);
	ep_pair_close(&near, &far);
}

static void no_access(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = ep_wr(IBV_WR_RDMA_WRITE, 1, &sge, 1);
	struct ibv_wc wc;

	expect_case("a WRITE with a wrong key");
	open_pair(IBV_QPT_RC);
	sge = ep_sge(&near, 0, 8);
	wr.wr.rdma.remote_addr = far.local.addr;
	wr.wr.rdma.rkey = far.local.rkey ^ 0xff;
	CHECK_ZERO(ep_post_send(&near, &wr));
	EXPECT_EQ(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_REM_ACCESS_ERR);
	sum(&after);
	EXPECT_EQ(after.resp_remote_access_errors - before.resp_remote_access_errors, 1);
	EXPECT_EQ(after.req_remote_access_errors - before.req_remote_access_errors, 1);
	EXPECT_EQ(after.tx_bytes - before.tx_bytes, 8);
	ep_pair_close(&near, &far);
}

/* Without VERBATIM_FAULT nothing is to be seen; with it, all of it. */
static void bad_network(void)
{
	expect_case(faults ? "packets that are lost, doubled and damaged"
			   : "a network without faults");
	sum(&after);
	EXPECT_EQ(after.duplicate_request > 0, faults);
	EXPECT_EQ(after.out_of_sequence > 0, faults);
	EXPECT_EQ(after.packet_seq_err > 0, faults);
	EXPECT_EQ(after.local_ack_timeout_err > 0, faults);
	EXPECT_EQ(after.rx_icrc > 0, faults);
	EXPECT_EQ(after.rx_errors >= after.rx_icrc, true);
}

static bool is_of_process(int dir, const char *name)
{
	(void)dir;
	return name[0] >= '0' && name[0] <= '9';
}

static int process_files(void)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/" VB_COUNTER_FOLDER, view);
	return folder_count(path, is_of_process);
}

/* Of the processes of this program only this one lives now. */
static void ended(void)
{
	int files = process_files();

	expect_case("files of processes that have ended");
	sum(&before);
	EXPECT(files >= (place == EP_APART ? 2 : 1));
	EXPECT(counters_fold(view));
	EXPECT_EQ(process_files(), 1);
	sum(&after);
	EXPECT_SAY(!memcmp(&before, &after, sizeof(before)), "the sum has changed");
	EXPECT(counters_fold(view)); /* there is nothing more to do */
	sum(&after);
	EXPECT_SAY(!memcmp(&before, &after, sizeof(before)), "the sum has changed");
}

static void read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);

	CHECK(fd >= 0);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
}

/* The preloaded library calls this when a program opens the file. */
static void shown(void)
{
	char path[PATH_MAX], text[64], want[64];
	int fd;

	expect_case("the file in the tree");
	snprintf(path, sizeof(path), "mkdir -p '%s/sys/x/%s/ports/1/counters'", view, device);
	CHECK_ZERO(system(path));
	snprintf(path, sizeof(path), "%s/sys/x/%s/ports/1/counters/port_xmit_data", view, device);
	fd = open(path, O_RDWR | O_CREAT, 0644);
	CHECK(fd >= 0);
	errno = EXDEV;
	EXPECT_EQ(counters_refresh(view, path), 0);
	EXPECT_EQ(errno, EXDEV);
	sum(&after);
	snprintf(want, sizeof(want), "%llu\n", (unsigned long long)after.tx_bytes / 4);
	read_text(path, text, sizeof(text));
	EXPECT_SAY(!strcmp(text, want), "the file has '%s', want '%s'", text, want);
	/* A descriptor that was opened before sees the number as well: perftest keeps it. */
	EXPECT(pread(fd, text, sizeof(text), 0) == (ssize_t)strlen(want));
	CHECK(ftruncate(fd, 0) == 0 && pwrite(fd, "99999999999999999999\n", 21, 0) == 21);
	EXPECT_EQ(counters_refresh(view, path), 0);
	EXPECT_EQ(pread(fd, text, sizeof(text), 0), strlen(want));
	close(fd);
	snprintf(path, sizeof(path), "%s/sys/x/%s/ports/1/state", view, device);
	EXPECT_EQ(counters_refresh(view, path), 0); /* no counter: nothing is done */
	EXPECT_EQ(counters_refresh(view, "/ports/1/counters/port_xmit_data"), 0);
}

int main(int argc, char **argv)
{
	if (!getenv("VERBATIM_VIEW"))
		make_view();
	packets = getenv("VERBATIM_LINK") != NULL;
	faults = getenv("VERBATIM_FAULT") != NULL;
	place = ep_main(argc, argv);
	moved("SEND", IBV_WR_SEND, SIZE, MESSAGES, 0);
	moved("SEND", IBV_WR_SEND, 1, MESSAGES, 0);
	moved("WRITE", IBV_WR_RDMA_WRITE, SIZE, MESSAGES, 0);
	moved("READ", IBV_WR_RDMA_READ, SIZE, MESSAGES, 1);
	moved("FETCH_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, ATOMICS, 1);
	if (!faults) {
		no_receive();
		no_access();
	}
	bad_network();
	shown();
	ended();
	remove_view();
	return expect_done();
}
