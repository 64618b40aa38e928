/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every failure explains itself: each error completion carries a code in vendor_err, and with
 * VERBATIM_LOG=debug the file that VERBS_LOG_FILE names gets a line with the particulars, at the
 * side where the fault arose. Refused calls leave a line as well.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define FILE_ENV "VERBS_LOG_FILE"

static enum ep_place place;
static const char *path;
static long seen; /* bytes of the log that earlier cases have looked at */

/* Whether the log grew by a line holding all of @words (a NULL-terminated list). */
static bool log_says(const char *const *words)
{
	FILE *file = fopen(path, "r");
	char line[1024];
	bool found = false;

	if (!file)
		return false;
	fseek(file, seen, SEEK_SET);
	while (!found && fgets(line, sizeof(line), file)) {
		found = true;
		for (int i = 0; words[i]; i++)
			found &= strstr(line, words[i]) != NULL;
	}
	fclose(file);
	return found;
}

static void log_seen(void)
{
	struct stat st;

	seen = stat(path, &st) ? 0 : (long)st.st_size;
}

#define LOG_SAYS(...)                                                         \
	do {                                                                  \
		const char *const words[] = {__VA_ARGS__, NULL};              \
                                                                              \
		EXPECT_SAY(log_says(words), "no line with %s", #__VA_ARGS__); \
		log_seen();                                                   \
	} while (0)

static const char *hex(char *text, uint32_t number)
{
	sprintf(text, "%#x", number);
	return text;
}

/* A send with a key that was never given out: the line names queue pair, element and key. */
static void local_key(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct endpoint near, far;
	char qpn[16], key[16];
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	uint32_t code;

	expect_case("unknown lkey");
	ep_pair(&near, &far, &config, &config, place);
	sge = ep_sge(&near, 0, 100);
	sge.lkey = 0xdeadbeef;
	wr = ep_wr(IBV_WR_SEND, 1, &sge, 1);
	log_seen();
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_LOC_PROT_ERR);
	code = wc.vendor_err;
	EXPECT(code != 0);
	LOG_SAYS(hex(qpn, near.local.qpn), hex(key, 0xdeadbeef));

	expect_case("flushed behind it: another code");
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
	EXPECT(wc.vendor_err != 0 && wc.vendor_err != code);
	ep_pair_close(&near, &far);
}

static void local_range(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct endpoint near, far;
	char key[16];
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	expect_case("beyond the local region");
	ep_pair(&near, &far, &config, &config, place);
	sge = ep_sge(&near, 65536 - 50, 100);
	wr = ep_wr(IBV_WR_SEND, 1, &sge, 1);
	log_seen();
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_LOC_PROT_ERR);
	EXPECT(wc.vendor_err != 0);
	LOG_SAYS(hex(key, near.lkey), "65536");
	ep_pair_close(&near, &far);
}

/* The target says which key and what range; both processes write into one file here. */
static void remote(const char *name, uint64_t offset, uint32_t length, bool wrong_key)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct endpoint near, far;
	char key[16];
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	expect_case("%s", name);
	ep_pair(&near, &far, &config, &config, place);
	sge = ep_sge(&near, 0, length);
	wr = ep_wr(IBV_WR_RDMA_WRITE, 1, &sge, 1);
	wr.wr.rdma.remote_addr = far.local.addr + offset;
	wr.wr.rdma.rkey = wrong_key ? 0xdeadbeef : far.local.rkey;
	CHECK(ep_post_recv(&far, 2, NULL, 0) == 0);
	log_seen();
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_REM_ACCESS_ERR);
	EXPECT(wc.vendor_err != 0);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
	EXPECT(wc.vendor_err != 0);
	LOG_SAYS(hex(key, wr.wr.rdma.rkey));
	ep_pair_close(&near, &far);
}

static void receive_key(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct endpoint near, far;
	char key[16];
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	uint32_t code;

	expect_case("receive with an unknown lkey");
	ep_pair(&near, &far, &config, &config, place);
	sge = ep_sge(&far, 0, 100);
	sge.lkey = 0xdeadbee1;
	CHECK(ep_post_recv(&far, 1, &sge, 1) == 0);
	sge = ep_sge(&near, 0, 100);
	wr = ep_wr(IBV_WR_SEND, 2, &sge, 1);
	log_seen();
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_REM_OP_ERR);
	code = wc.vendor_err;
	EXPECT(code != 0);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_LOC_PROT_ERR);
	EXPECT(wc.vendor_err != 0 && wc.vendor_err != code);
	LOG_SAYS(hex(key, 0xdeadbee1));
	ep_pair_close(&near, &far);
}

/*
 * Two programs that disagree about the first PSN: the requester's line has what it sent and what is
 * expected, the target's too.
 */
static void psns(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, NULL, 0);
	struct peer other;
	struct endpoint near, far;
	char sent[16], expected[16];
	struct ibv_wc wc;

	expect_case("PSNs that do not fit");
	config.timeout = 10;
	config.retry_cnt = 1;
	ep_open(&near, &config, EP_HERE);
	ep_open(&far, &config, place);
	other = near.local;
	other.psn = 0x654321;
	CHECK(ep_bring_to(&far, &other, IBV_QPS_RTS) == 0);
	CHECK(ep_bring_to(&near, &far.local, IBV_QPS_RTS) == 0);
	log_seen();
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_RETRY_EXC_ERR);
	EXPECT_EQ(wc.vendor_err, 0x510);
	LOG_SAYS("RETRY_EXC", hex(sent, config.psn), hex(expected, 0x654321), "rq_psn");
	ep_pair_close(&near, &far);
}

/* Refusals at the call. */
static void refused_calls(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, NULL, 0);
	struct ibv_cq *cq;
	char qpn[16];
	struct endpoint ep;

	ep_open(&ep, &config, EP_HERE);
	expect_case("refused: modify");
	log_seen();
	EXPECT_EQ(ibv_modify_qp(ep.qp, &attr, IBV_QP_STATE), EINVAL);
	LOG_SAYS(hex(qpn, ep.local.qpn), "RESET", "RTS");
	expect_case("refused: post in RESET");
	EXPECT_EQ(ep_post_send(&ep, &wr), EINVAL);
	LOG_SAYS(hex(qpn, ep.local.qpn), "RESET");
	expect_case("refused: register");
	EXPECT(ibv_reg_mr(ep.pd, ep.buffer, 10, IBV_ACCESS_REMOTE_WRITE) == NULL);
	LOG_SAYS("LOCAL_WRITE");
	expect_case("refused: create CQ");
	cq = ibv_create_cq(ep.context, 0, NULL, NULL, 0);
	EXPECT(cq == NULL);
	LOG_SAYS("cqe");
	expect_case("refused: busy");
	EXPECT_EQ(ibv_dealloc_pd(ep.pd), EBUSY);
	LOG_SAYS("pd");
	ep_close(&ep);
}

/* The variables are read once by the library, so the program starts anew with them set. */
static void start_with_log(char **argv)
{
	static char name[] = "/tmp/verbatim-log-XXXXXX";
	int fd = mkstemp(name);

	CHECK(fd >= 0);
	close(fd);
	CHECK(setenv(FILE_ENV, name, 1) == 0);
	CHECK(setenv("VERBATIM_LOG", "debug", 1) == 0);
	CHECK(setenv("VB_TEST_LOG_FILE", name, 1) == 0);
	execv("/proc/self/exe", argv);
	CHECK(!"the program could be started again");
}

int main(int argc, char **argv)
{
	int verdict;

	path = getenv("VB_TEST_LOG_FILE");
	if (!path)
		start_with_log(argv);
	place = ep_main(argc, argv);
	local_key();
	local_range();
	remote("unknown rkey", 0, 100, true);
	remote("beyond the remote region", 65536 - 50, 100, false);
	receive_key();
	psns();
	refused_calls();
	verdict = expect_done();
	if (!verdict)
		unlink(path);
	else
		fprintf(stderr, "the log is kept in %s\n", path);
	return verdict;
}
