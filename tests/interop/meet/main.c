/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Usage: meet -t SCENE -p PORT [-k] -b ADDRESS      passive side
 *        meet -t SCENE -p PORT [-k] ADDRESS         active side
 * Both play the scene:
 *   active, passive, both  connect, a message each way, and that side begins the end
 *   reject                 the passive side refuses
 *   absent                 nobody listens: only the active side
 *   datagram               service id resolution, and a datagram each way
 *   datagram-reject        the passive side refuses it
 *   datagram-absent        nobody listens: only the active side
 *   killed                 after a message each way, the side with -k ends by SIGKILL; a DREQ tells its peer
 *   lost                   the same, no DREQ tells it, and another process answers the peer's
 *   lost-alone             the same, and nobody does
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "meet.h"

enum {
	UD_QKEY = 0x01234567,
	CONSUMER = 28,
	NO_SERVICE = 8,
	SIDR_NO_SERVICE = 1,
	SIDR_REJECTED = 2
};

static uint8_t asked[ASK_BYTES], answered[ANSWER_BYTES];

static struct rdma_conn_param ask_param(void)
{
	private_data(asked, ASK_BYTES, 'a');
	return (struct rdma_conn_param){.private_data = asked,
					.private_data_len = ASK_BYTES,
					.responder_resources = 2,
					.initiator_depth = 3,
					.flow_control = 1,
					.retry_count = 6,
					.rnr_retry_count = 5};
}

static void accept_it(struct end *end)
{
	struct rdma_conn_param param = {.private_data = answered,
					.private_data_len = ANSWER_BYTES,
					.responder_resources = 3,
					.initiator_depth = 1,
					.rnr_retry_count = 4,
					.qp_num = end->id->qp->qp_num};

	private_data(answered, ANSWER_BYTES, 'b');
	check(!rdma_accept(end->id, &param), "rdma_accept");
}

static void connect_it(struct end *end, const struct options *options, enum rdma_port_space ps)
{
	struct rdma_conn_param param = ask_param();

	resolve(end, options, ps);
	check(!rdma_connect(end->id, &param), "rdma_connect");
}

/* Both ends of an established connection, after a message each way. */
static void meet(struct end *end, const struct options *options)
{
	struct rdma_cm_event *event;

	if (options->host) {
		connect_it(end, options, RDMA_PS_TCP);
		event = next(end, RDMA_CM_EVENT_ESTABLISHED);
		check_private_data(event->param.conn.private_data,
				   event->param.conn.private_data_len, 196, ANSWER_BYTES, 'b');
		check(event->param.conn.responder_resources == 1 &&
			      event->param.conn.initiator_depth == 3,
		      "the depths are the responder's, as this side sees them");
		check(event->param.conn.rnr_retry_count == 4,
		      "the RNR retries are the responder's");
		rdma_ack_cm_event(event);
	} else {
		listen_at(end, options, RDMA_PS_TCP);
		request(end);
		accept_it(end);
		check(!pass(end, RDMA_CM_EVENT_ESTABLISHED), "established without a fault");
	}
	send_message(end, options->host ? 1 : 2);
	check(completion(end->id->send_cq) == IBV_WC_SUCCESS, "the message is sent");
	check_message(end, options->host ? 2 : 1);
}

static void disconnect(struct end *end, const struct options *options, bool active, bool passive)
{
	meet(end, options);
	if (options->host ? active : passive) {
		check(!rdma_disconnect(end->id), "rdma_disconnect");
		check(!pass(end, RDMA_CM_EVENT_DISCONNECTED), "the peer answered the disconnect");
	} else {
		check(!pass(end, RDMA_CM_EVENT_DISCONNECTED), "the disconnect's status");
		check(!rdma_disconnect(end->id), "rdma_disconnect after the peer's");
	}
}

static void scene_active(struct end *end, const struct options *options)
{
	disconnect(end, options, true, false);
}

static void scene_passive(struct end *end, const struct options *options)
{
	disconnect(end, options, false, true);
}

static void scene_both(struct end *end, const struct options *options)
{
	disconnect(end, options, true, true);
}

static void refuse(struct end *end, const struct options *options, enum rdma_port_space ps)
{
	listen_at(end, options, ps);
	request(end);
	private_data(answered, ANSWER_BYTES, 'c');
	check(!rdma_reject(end->id, answered, ANSWER_BYTES), "rdma_reject");
}

static void scene_reject(struct end *end, const struct options *options)
{
	struct rdma_cm_event *event;

	if (!options->host) {
		refuse(end, options, RDMA_PS_TCP);
		return;
	}
	connect_it(end, options, RDMA_PS_TCP);
	event = next(end, RDMA_CM_EVENT_REJECTED);
	if (event->status != CONSUMER)
		fail("rejected with reason %d", event->status);
	check_private_data(event->param.conn.private_data, event->param.conn.private_data_len, 148,
			   ANSWER_BYTES, 'c');
	rdma_ack_cm_event(event);
	check(completion(end->id->recv_cq) == IBV_WC_WR_FLUSH_ERR, "the receive is flushed");
}

static void scene_absent(struct end *end, const struct options *options)
{
	connect_it(end, options, RDMA_PS_TCP);
	check(pass(end, RDMA_CM_EVENT_REJECTED) == NO_SERVICE, "rejected: no such service");
}

static void scene_datagram(struct end *end, const struct options *options)
{
	struct rdma_cm_event *event;

	if (!options->host) {
		listen_at(end, options, RDMA_PS_UDP);
		request(end);
		accept_it(end);
		check_message(end, 1);
		return;
	}
	connect_it(end, options, RDMA_PS_UDP);
	event = next(end, RDMA_CM_EVENT_ESTABLISHED);
	check_private_data(event->param.ud.private_data, event->param.ud.private_data_len, 136,
			   ANSWER_BYTES, 'b');
	check(event->param.ud.qkey == UD_QKEY, "the Q_Key");
	end->remote_qpn = event->param.ud.qp_num;
	end->remote_qkey = event->param.ud.qkey;
	end->ah = ibv_create_ah(end->id->pd, &event->param.ud.ah_attr);
	check(end->ah, "ibv_create_ah of the event's address");
	rdma_ack_cm_event(event);
	send_message(end, 1);
	check(completion(end->id->send_cq) == IBV_WC_SUCCESS, "the datagram is sent");
}

static void scene_datagram_reject(struct end *end, const struct options *options)
{
	if (!options->host) {
		refuse(end, options, RDMA_PS_UDP);
		return;
	}
	connect_it(end, options, RDMA_PS_UDP);
	check(pass(end, RDMA_CM_EVENT_UNREACHABLE) == SIDR_REJECTED, "refused by the application");
}

static void scene_datagram_absent(struct end *end, const struct options *options)
{
	connect_it(end, options, RDMA_PS_UDP);
	check(pass(end, RDMA_CM_EVENT_UNREACHABLE) == SIDR_NO_SERVICE, "refused: no such service");
}

static void meet_and_die(struct end *end, const struct options *options)
{
	meet(end, options);
	if (options->dies)
		kill(getpid(), SIGKILL);
}

/* A kernel disconnects for its process that died. */
static void scene_killed(struct end *end, const struct options *options)
{
	meet_and_die(end, options);
	check(!pass(end, RDMA_CM_EVENT_DISCONNECTED), "the dead peer's disconnect");
	check(!rdma_disconnect(end->id), "rdma_disconnect after the peer's");
}

/* Nobody disconnects for the process that died: the queue pair's retries tell. */
static void scene_lost_alone(struct end *end, const struct options *options)
{
	meet_and_die(end, options);
	sleep(1);
	send_message(end, 3);
	check(completion(end->id->send_cq) == IBV_WC_RETRY_EXC_ERR,
	      "the message fails by its retries");
}

/* The same, but another process of the dead one's host answers the DREQ. */
static void scene_lost(struct end *end, const struct options *options)
{
	scene_lost_alone(end, options);
	check(!rdma_disconnect(end->id), "rdma_disconnect from who died");
	check(!pass(end, RDMA_CM_EVENT_DISCONNECTED), "its host answers the disconnect");
}

static const struct {
	const char *name;
	void (*play)(struct end *end, const struct options *options);
} scenes[] = {{"active", scene_active},
	      {"passive", scene_passive},
	      {"both", scene_both},
	      {"reject", scene_reject},
	      {"absent", scene_absent},
	      {"datagram", scene_datagram},
	      {"datagram-reject", scene_datagram_reject},
	      {"datagram-absent", scene_datagram_absent},
	      {"killed", scene_killed},
	      {"lost", scene_lost},
	      {"lost-alone", scene_lost_alone}};

static void play(const char *name, const struct options *options)
{
	struct end end = {0};

	for (unsigned int i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		if (strcmp(scenes[i].name, name))
			continue;
		scenes[i].play(&end, options);
		leave(&end);
		printf("all done\n");
		return;
	}
	fail("no scene is called %s", name);
}

int main(int argc, char **argv)
{
	struct options options = {0};
	const char *scene = "";
	int option;

	while ((option = getopt(argc, argv, "t:p:b:k")) != -1) {
		if (option == 't')
			scene = optarg;
		else if (option == 'p')
			options.port = optarg;
		else if (option == 'b')
			options.bind = optarg;
		else if (option == 'k')
			options.dies = true;
		else
			fail("usage: meet -t SCENE -p PORT [-k] -b ADDRESS | HOST");
	}
	options.host = argv[optind];
	if (!options.port || (!options.host && !options.bind))
		fail("usage: meet -t SCENE -p PORT [-k] -b ADDRESS | HOST");
	play(scene, &options);
	return 0;
}
