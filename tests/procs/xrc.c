/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promises about XRC domains of several processes (ibv_open_xrcd(3), ibv_open_qp(3), IBA annex
 * A14):
 *   domain   a domain belongs to an inode, whichever process opens it, also after a rename; O_CREAT
 *            and O_EXCL hold across processes, and the last process that closes or dies takes it
 *            along
 *   crowd    processes that open a file's domain all at once have one domain, however many of them
 *            die meanwhile
 *   shared   a receive queue pair is opened by two processes: each request goes to the queue that
 *            it names, in whichever process that is; an error is told to both
 *   creator  the process that made the queue pair is killed, or leaves, while another one holds it:
 *            every message of a stream still arrives, once and in order
 *   stopped  a process that stands still (the queue's, the queue pair's home) delays requests and
 *            fails none
 *   queue    the process of a queue is killed: requests for its queue fail, and nobody waits for it
 *
 * usage: xrc domain|crowd|shared|creator|stopped|queue [ROUNDS [NETNS]] NETNS: a network namespace
 * (/proc/PID/ns/net) that senders live in, so that they are on another host (VB_TEST_DEVICE names
 * the device in both).
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/process.h"
#include "support/qp_state.h"
#include "support/random.h"
#include "support/xrc.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Receives lie behind a word for atomics and before what is written. */
enum { RECEIVES = 8, MESSAGE = 3000, WORD_AT = 8192, RECEIVE_AT = 8704, LAST = 1 << 30 };
enum { CROWD = 8 };

struct shared {
	char path[64];
	volatile uint32_t sent;
	volatile bool stop;
};

static struct shared *shared;
static const char *sender_net;

/* What the referee carries between the processes. */
struct introduction {
	struct peer peer;
	struct xrc_target target;
	struct xrc_target other;
	bool leaves;
};

static struct ibv_xrcd *domain_expect(struct ibv_context *context, const char *path, int oflags,
				      int err)
{
	struct ibv_xrcd *xrcd;

	errno = 0;
	xrcd = xrc_domain(context, path, oflags);
	CHECK_EQ(xrcd ? 0 : errno, err);
	return xrcd;
}

/* What is told about objects; the addresses of a fresh interface may still change. */
static int object_event(struct ibv_context *context, unsigned int ms)
{
	int type;

	do {
		type = event_next(context, ms);
	} while (type == IBV_EVENT_GID_CHANGE);
	return type;
}

/* domain */

static int domain_member(int sock, void *unused)
{
	struct resources resources;
	struct ibv_xrcd *xrcd = NULL;
	char order;

	(void)unused;
	resources_open(&resources, 16, false);
	for (;;) {
		message_receive(sock, &order, 1);
		switch (order) {
		case 'c': /* create */
			xrcd = domain_expect(resources.context, shared->path, O_CREAT | O_EXCL, 0);
			break;
		case 'o': /* open what there is */
			xrcd = domain_expect(resources.context, shared->path, 0, 0);
			break;
		case 'x': /* there is one */
			domain_expect(resources.context, shared->path, O_CREAT | O_EXCL, EINVAL);
			break;
		case 'n': /* there is none */
			domain_expect(resources.context, shared->path, 0, EAGAIN);
			break;
		case 'd':
			CHECK(xrcd);
			CHECK_ZERO(ibv_close_xrcd(xrcd));
			break;
		default:
			resources_close(&resources);
			return 0;
		}
		message_send(sock, &order, 1);
	}
}

static void order(struct process *process, char what)
{
	message_send(process->sock, &what, 1);
	message_receive(process->sock, &what, 1);
}

static void domain_test(void)
{
	struct process a, b, c;
	char moved[80];

	promise("a domain belongs to an inode, across processes and renames, as long as somebody has it open");
	process_start(&a, domain_member, NULL);
	process_start(&b, domain_member, NULL);
	process_start(&c, domain_member, NULL);
	order(&b, 'n');
	order(&a, 'c');
	order(&b, 'x');
	order(&b, 'o');
	snprintf(moved, sizeof(moved), "%s.moved", shared->path);
	CHECK(rename(shared->path, moved) == 0);
	order(&c, 'n'); /* another file by now */
	CHECK(rename(moved, shared->path) == 0);
	order(&c, 'x');
	order(&a, 'd');
	order(&a, 'x');
	order(&c, 'o'); /* its creator has left */
	order(&b, 'd');
	process_kill(&c); /* the last one */
	order(&a, 'n');
	order(&a, 'c');
	order(&b, 'o');
	process_kill(&a);
	order(&b, 'x');
	order(&b, 'd');
	order(&b, 'n');
	message_send(b.sock, "e", 1);
	process_expect_success(&b, PROCESS_PATIENCE_MS);
}

/* crowd */

static int crowd_member(int sock, void *unused)
{
	struct resources resources;
	struct xrc_queue queue;
	struct ibv_xrcd *xrcd;
	struct ibv_qp *qp, *other;
	uint32_t numbers[CROWD];
	char go;

	(void)unused;
	promise("everybody finds the same domain");
	resources_open(&resources, 16, false);
	message_meet(sock);
	message_receive(sock, &go, 1);
	xrcd = domain_expect(resources.context, shared->path, O_CREAT, 0);
	xrc_queue_open(&queue, &resources, xrcd);
	qp = xrc_receiver(resources.context, xrcd);
	CHECK(qp);
	message_send(sock, &qp->qp_num, sizeof(qp->qp_num));
	message_receive(sock, numbers, sizeof(numbers));
	for (int i = 0; i < CROWD; i++) {
		if (!numbers[i])
			continue;
		other = xrc_receiver_open(resources.context, xrcd, numbers[i]);
		CHECK_SAY(other, "no queue pair 0x%x of another process", numbers[i]);
		CHECK_ZERO(ibv_destroy_qp(other));
	}
	message_send(sock, &go, 1);
	message_receive(sock, &go, 1); /* no process looks for it any more */
	CHECK_ZERO(ibv_destroy_qp(qp));
	xrc_queue_close(&queue);
	CHECK_ZERO(ibv_close_xrcd(xrcd));
	resources_close(&resources);
	return 0;
}

static void crowd_test(uint64_t *seed)
{
	struct process member[CROWD];
	uint32_t numbers[CROWD] = {0};
	char go = 0;

	promise("processes that open a domain at once share it");
	for (int i = 0; i < CROWD; i++)
		process_start(&member[i], crowd_member, NULL);
	for (int i = 0; i < CROWD; i++)
		message_meet(member[i].sock);
	for (int i = 0; i < CROWD; i++)
		message_send(member[i].sock, &go, 1);
	/* Two of them may have come anywhere. */
	for (int i = 0; i < 2; i++) {
		if (random_next(seed) % 2)
			sleep_ms((unsigned int)(random_next(seed) % 8));
		process_kill(&member[i]);
	}
	for (int i = 2; i < CROWD; i++)
		message_receive(member[i].sock, &numbers[i], sizeof(numbers[i]));
	for (int i = 2; i < CROWD; i++)
		message_send(member[i].sock, numbers, sizeof(numbers));
	for (int i = 2; i < CROWD; i++)
		message_receive(member[i].sock, &go, 1);
	for (int i = 2; i < CROWD; i++)
		message_send(member[i].sock, &go, 1);
	for (int i = 2; i < CROWD; i++)
		process_expect_success(&member[i], PROCESS_PATIENCE_MS);
}

/* The parts of the other tests. */

struct member {
	struct resources resources;
	struct ibv_xrcd *xrcd;
	struct xrc_queue queue;
	struct ibv_qp *qp;
};

/* Any process that holds the queue pair tells what the creator has set. */
static void psn_expect(const struct member *m)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK_ZERO(ibv_query_qp(m->qp, &attr, IBV_QP_SQ_PSN, &init));
	CHECK_EQ(attr.sq_psn, xrc_peer(&m->resources, m->qp).psn);
}

static void member_open(struct member *m, int sock, bool creates)
{
	struct introduction in, out = {0};

	resources_open(&m->resources, 64, false);
	message_receive(sock, &in, sizeof(in));
	m->xrcd = domain_expect(m->resources.context, shared->path, creates ? O_CREAT : 0, 0);
	xrc_queue_open(&m->queue, &m->resources, m->xrcd);
	if (creates) {
		m->qp = xrc_receiver(m->resources.context, m->xrcd);
		CHECK(m->qp);
		xrc_receiver_connect(&m->resources, m->qp, &in.peer);
	} else {
		CHECK(!xrc_receiver_open(m->resources.context, m->xrcd, in.peer.qpn ^ 1));
		m->qp = xrc_receiver_open(m->resources.context, m->xrcd, in.peer.qpn);
		CHECK_SAY(m->qp, "ibv_open_qp of another process's queue pair: errno %d", errno);
		CHECK_EQ(qp_state(m->qp), IBV_QPS_RTS);
	}
	psn_expect(m);
	for (int i = 0; i < RECEIVES; i++)
		xrc_post(&m->queue, (uint64_t)i, RECEIVE_AT + (size_t)i * MESSAGE, MESSAGE);
	out.peer = xrc_peer(&m->resources, m->qp);
	out.target = xrc_target(&m->queue);
	message_send(sock, &out, sizeof(out));
}

static void member_close(struct member *m)
{
	CHECK_ZERO(ibv_destroy_qp(m->qp));
	xrc_queue_close(&m->queue);
	CHECK_ZERO(ibv_close_xrcd(m->xrcd));
	resources_close(&m->resources);
}

/* One numbered message arrives, whole, by the shared queue pair. */
static uint32_t member_receive(struct member *m)
{
	const unsigned char *data;
	struct ibv_wc wc;
	uint32_t number;
	size_t at;

	completion_next(m->queue.cq, &wc);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.qp_num, m->qp->qp_num);
	CHECK_EQ(wc.byte_len, MESSAGE);
	at = RECEIVE_AT + (size_t)wc.wr_id * MESSAGE;
	data = m->queue.buffer + at;
	memcpy(&number, data, sizeof(number));
	for (uint32_t i = sizeof(number); i < MESSAGE; i++)
		CHECK_EQ(data[i], (number + i) & 0xff);
	xrc_post(&m->queue, wc.wr_id, at, MESSAGE);
	return number;
}

static void sender_fill(struct endpoint *ep, uint32_t number)
{
	memcpy(ep->buffer, &number, sizeof(number));
	for (uint32_t i = sizeof(number); i < MESSAGE; i++)
		ep->buffer[i] = (unsigned char)(number + i);
}

static void sender_open(struct endpoint *ep, struct resources *resources, int sock,
			struct introduction *in)
{
	struct introduction out = {0};

	if (sender_net) {
		int fd = open(sender_net, O_RDONLY | O_CLOEXEC);

		CHECK(fd >= 0);
		CHECK_ZERO(setns(fd, CLONE_NEWNET));
		close(fd);
	}
	resources_open(resources, 64, false);
	xrc_sender_open(ep, resources);
	/*
	 * Within a host patience does not depend on the machine. Between hosts a packet for a
	 * process that is gone is lost.
	 */
	ep->config.timeout = sender_net ? 16 : 0;
	out.peer = ep->local;
	message_send(sock, &out, sizeof(out));
	message_receive(sock, in, sizeof(*in));
	ep_connect(ep, &in->peer);
}

static void request_done(struct resources *resources, struct endpoint *ep,
			 enum ibv_wr_opcode opcode, const struct xrc_target *target,
			 uint32_t length)
{
	CHECK_ZERO(xrc_request(ep, opcode, target, length));
	completion_expect(resources->cq, 1, IBV_WC_SUCCESS, NULL);
}

/* Introduces a creator, a second holder and a sender to each other. */
static void introduce(struct process *creator, struct process *holder, struct process *sender)
{
	struct introduction from_sender, from_creator, from_holder;

	message_receive(sender->sock, &from_sender, sizeof(from_sender));
	message_send(creator->sock, &from_sender, sizeof(from_sender));
	message_receive(creator->sock, &from_creator, sizeof(from_creator));
	message_send(holder->sock, &from_creator, sizeof(from_creator));
	message_receive(holder->sock, &from_holder, sizeof(from_holder));
	from_creator.other = from_holder.target;
	message_send(sender->sock, &from_creator, sizeof(from_creator));
}

/* shared */

static int shared_member(int sock, void *creates)
{
	struct member m;
	uint64_t word;
	char go;

	promise("a queue gets what names it, in whichever process it is");
	member_open(&m, sock, creates != NULL);
	for (uint32_t i = 0; i < 40; i++)
		CHECK_EQ(member_receive(&m), 2 * i + !creates);
	message_receive(sock, &go, 1);
	memcpy(&word, m.queue.buffer + WORD_AT, sizeof(word));
	CHECK_EQ(word, 10);
	CHECK(m.queue.buffer[XRC_BUFFER - 1] == 0x77);
	completion_none(m.queue.cq, 1);
	promise("both holders learn of an error");
	message_send(sock, &go, 1);
	CHECK_EQ(object_event(m.resources.context, PROCESS_PATIENCE_MS), IBV_EVENT_QP_REQ_ERR);
	CHECK_EQ(qp_state(m.qp), IBV_QPS_ERR);
	message_meet(sock);
	member_close(&m);
	return 0;
}

static int shared_sender(int sock, void *unused)
{
	struct xrc_target target[2], word;
	struct introduction in;
	struct resources resources;
	struct endpoint ep;
	char go = 0;

	(void)unused;
	promise("SEND, WRITE, READ and ATOMIC through one queue pair to queues of two processes");
	sender_open(&ep, &resources, sock, &in);
	target[0] = in.target;
	target[1] = in.other;
	for (uint32_t i = 0; i < 80; i++) {
		sender_fill(&ep, i);
		request_done(&resources, &ep, IBV_WR_SEND, &target[i % 2], MESSAGE);
	}
	for (int i = 0; i < 20; i++) {
		word = target[i % 2];
		word.addr += WORD_AT;
		request_done(&resources, &ep, IBV_WR_ATOMIC_FETCH_AND_ADD, &word, 8);
		CHECK_EQ(*(uint64_t *)(void *)ep.buffer, i / 2);
	}
	for (int i = 0; i < 2; i++) {
		word = target[i];
		word.addr += XRC_BUFFER / 2;
		memset(ep.buffer, 0x77, XRC_BUFFER / 2);
		request_done(&resources, &ep, IBV_WR_RDMA_WRITE, &word, XRC_BUFFER / 2);
		memset(ep.buffer, 0, XRC_BUFFER / 2);
		request_done(&resources, &ep, IBV_WR_RDMA_READ, &word, XRC_BUFFER / 2);
		CHECK(ep.buffer[0] == 0x77 && ep.buffer[XRC_BUFFER / 2 - 1] == 0x77);
	}
	message_send(sock, &go, 1);
	message_receive(sock, &go, 1);
	target[1].number ^= 0x400000;
	CHECK_ZERO(xrc_request(&ep, IBV_WR_SEND, &target[1], 8));
	completion_expect(resources.cq, 1, IBV_WC_REM_INV_REQ_ERR, NULL);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static void shared_test(void)
{
	struct process creator, holder, sender;
	static char yes[1];
	char go = 0;

	process_start(&creator, shared_member, yes);
	process_start(&holder, shared_member, NULL);
	process_start(&sender, shared_sender, NULL);
	introduce(&creator, &holder, &sender);
	message_receive(sender.sock, &go, 1);
	message_send(creator.sock, &go, 1);
	message_send(holder.sock, &go, 1);
	message_receive(creator.sock, &go, 1);
	message_receive(holder.sock, &go, 1);
	message_send(sender.sock, &go, 1);
	process_expect_success(&sender, PROCESS_PATIENCE_MS);
	message_meet(creator.sock);
	message_meet(holder.sock);
	process_expect_success(&creator, PROCESS_PATIENCE_MS);
	process_expect_success(&holder, PROCESS_PATIENCE_MS);
}

/* creator */

static int stream_creator(int sock, void *unused)
{
	struct member m;
	char go;

	(void)unused;
	promise("the creator takes part until it dies or leaves");
	member_open(&m, sock, true);
	message_receive(sock, &go, 1); /* killed here, or told to leave */
	member_close(&m);
	return 0;
}

static int stream_holder(int sock, void *unused)
{
	struct member m;
	uint32_t number, next = 0;
	uint64_t word;

	(void)unused;
	promise("every message arrives once and in order although the queue pair's creator is gone");
	member_open(&m, sock, false);
	while ((number = member_receive(&m)) != LAST) {
		CHECK_EQ(number, next);
		next++;
	}
	CHECK_EQ(next, shared->sent);
	memcpy(&word, m.queue.buffer + WORD_AT, sizeof(word));
	CHECK_EQ(word, next); /* atomics are executed once, too */
	CHECK_EQ(qp_state(m.qp), IBV_QPS_RTS);
	CHECK_EQ(object_event(m.resources.context, 0), -1);
	message_meet(sock);
	member_close(&m);
	return 0;
}

static int stream_sender(int sock, void *unused)
{
	struct introduction in;
	struct resources resources;
	struct xrc_target word;
	struct endpoint ep;

	(void)unused;
	promise("no request fails because the queue pair's creator is gone");
	sender_open(&ep, &resources, sock, &in);
	word = in.other;
	word.addr += WORD_AT;
	while (!shared->stop) {
		sender_fill(&ep, shared->sent);
		request_done(&resources, &ep, IBV_WR_SEND, &in.other, MESSAGE);
		request_done(&resources, &ep, IBV_WR_ATOMIC_FETCH_AND_ADD, &word, 8);
		CHECK_EQ(*(uint64_t *)(void *)ep.buffer, shared->sent);
		shared->sent++;
	}
	sender_fill(&ep, LAST);
	request_done(&resources, &ep, IBV_WR_SEND, &in.other, MESSAGE);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static void sent_reaches(uint32_t count)
{
	uint64_t until = now_ms() + PROCESS_PATIENCE_MS;

	while (shared->sent < count) {
		processes_check();
		CHECK_SAY(now_ms() < until, "the stream stands still at %u", shared->sent);
		sleep_ms(1);
	}
}

static void stand_still(struct process *process)
{
	process_stop(process);
	sleep_ms(600);
	process_continue(process);
	sent_reaches(shared->sent + 20);
}

static void creator_test(bool leaves, bool stops, uint64_t *seed)
{
	struct process creator, holder, sender;
	uint32_t at = (uint32_t)(random_next(seed) % 60);
	char go = 0;

	promise("the creator of a receive queue pair goes, the queue pair stays");
	shared->sent = 0;
	shared->stop = false;
	process_start(&creator, stream_creator, NULL);
	process_start(&holder, stream_holder, NULL);
	process_start(&sender, stream_sender, NULL);
	introduce(&creator, &holder, &sender);
	sent_reaches(at);
	if (stops) {
		promise("a stopped process delays requests and fails none");
		stand_still(&holder);
		stand_still(&creator);
	}
	if (leaves) {
		message_send(creator.sock, &go, 1);
		process_expect_success(&creator, PROCESS_PATIENCE_MS);
	} else {
		process_kill(&creator);
	}
	sent_reaches(shared->sent + 50);
	shared->stop = true;
	process_expect_success(&sender, PROCESS_PATIENCE_MS);
	message_meet(holder.sock);
	process_expect_success(&holder, PROCESS_PATIENCE_MS);
}

/* queue */

static int queue_creator(int sock, void *unused)
{
	struct member m;

	(void)unused;
	promise("the home of a queue pair does not wait for a process that has died");
	member_open(&m, sock, true);
	CHECK_EQ(object_event(m.resources.context, PROCESS_PATIENCE_MS), IBV_EVENT_QP_REQ_ERR);
	CHECK_EQ(qp_state(m.qp), IBV_QPS_ERR);
	message_meet(sock);
	member_close(&m);
	return 0;
}

static int queue_holder(int sock, void *unused)
{
	struct member m;

	(void)unused;
	member_open(&m, sock, false);
	while (member_receive(&m) != LAST)
		continue;
	return 1; /* it is killed before */
}

static int queue_sender(int sock, void *unused)
{
	struct introduction in;
	struct resources resources;
	struct ibv_wc wc = {0};
	struct endpoint ep;

	(void)unused;
	promise("requests for the queue of a dead process fail: invalid request");
	sender_open(&ep, &resources, sock, &in);
	do {
		sender_fill(&ep, shared->sent);
		CHECK_ZERO(xrc_request(&ep, IBV_WR_SEND, &in.other, MESSAGE));
		completion_next(resources.cq, &wc);
		shared->sent++;
	} while (wc.status == IBV_WC_SUCCESS);
	CHECK_EQ(wc.status, IBV_WC_REM_INV_REQ_ERR);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static void queue_test(uint64_t *seed)
{
	struct process creator, holder, sender;
	uint32_t at = (uint32_t)(random_next(seed) % 60);

	shared->sent = 0;
	process_start(&creator, queue_creator, NULL);
	process_start(&holder, queue_holder, NULL);
	process_start(&sender, queue_sender, NULL);
	introduce(&creator, &holder, &sender);
	sent_reaches(at);
	process_kill(&holder);
	process_expect_success(&sender, PROCESS_PATIENCE_MS);
	message_meet(creator.sock);
	process_expect_success(&creator, PROCESS_PATIENCE_MS);
}

/* replaced */

/* Has the domain open, and hands it on to every process that opens it. */
static int bystander(int sock, void *unused)
{
	struct resources resources;
	struct ibv_xrcd *xrcd;
	struct xrc_queue queue;

	(void)unused;
	resources_open(&resources, 64, false);
	xrcd = domain_expect(resources.context, shared->path, 0, 0);
	xrc_queue_open(&queue, &resources, xrcd);
	message_meet(sock);
	message_meet(sock);
	xrc_queue_close(&queue);
	CHECK_ZERO(ibv_close_xrcd(xrcd));
	resources_close(&resources);
	return 0;
}

static void sending_rests(void)
{
	uint32_t before;

	do {
		before = shared->sent;
		sleep_ms(200);
	} while (shared->sent != before);
}

/*
 * The process that executes a request dies, and another takes its seat in the domain before the
 * queue pair's home is told of either. The request fails all the same, and the home waits for no
 * answer of the wrong process.
 */
static void replaced_test(uint64_t *seed)
{
	struct process creator, holder, sender, keeper, newcomer;
	uint32_t at = (uint32_t)(random_next(seed) % 60);

	shared->sent = 0;
	process_start(&creator, queue_creator, NULL);
	process_start(&holder, queue_holder, NULL);
	process_start(&sender, queue_sender, NULL);
	introduce(&creator, &holder, &sender);
	process_start(&keeper, bystander, NULL);
	message_meet(keeper.sock);
	sent_reaches(at);
	process_stop(&holder);
	sending_rests();
	process_stop(&creator);
	process_kill(&holder);
	process_start(&newcomer, bystander, NULL);
	message_meet(newcomer.sock);
	process_continue(&creator);
	process_expect_success(&sender, PROCESS_PATIENCE_MS);
	message_meet(creator.sock);
	process_expect_success(&creator, PROCESS_PATIENCE_MS);
	message_meet(newcomer.sock);
	process_expect_success(&newcomer, PROCESS_PATIENCE_MS);
	message_meet(keeper.sock);
	process_expect_success(&keeper, PROCESS_PATIENCE_MS);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "shared";
	int rounds = argc > 2 ? atoi(argv[2]) : 1;
	const char *given = getenv("SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : 4711;

	sender_net = argc > 3 ? argv[3] : NULL;
	watchdog(100);
	shared = memory_shared(sizeof(*shared));
	snprintf(shared->path, sizeof(shared->path), "/tmp/verbatim-xrc-%d", (int)getpid());
	for (int i = 0; i < rounds; i++) {
		if (!strcmp(what, "domain"))
			domain_test();
		else if (!strcmp(what, "crowd"))
			crowd_test(&seed);
		else if (!strcmp(what, "shared"))
			shared_test();
		else if (!strcmp(what, "creator"))
			creator_test(i % 2, false, &seed);
		else if (!strcmp(what, "stopped"))
			creator_test(true, true, &seed);
		else if (!strcmp(what, "replaced"))
			replaced_test(&seed);
		else
			queue_test(&seed);
	}
	unlink(shared->path);
	return 0;
}
