/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Both sides of the socket to an endpoint in another process. */
#include "support/endpoint_apart.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"

/* The descriptor of the socket, for the second copy of the program. */
#define SOCKET_ENV "VB_TEST_ENDPOINT_SOCKET"

static void apart_start(struct endpoint *ep)
{
	int pair[2];

	CHECK_ZERO(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	ep->pid = fork();
	CHECK(ep->pid >= 0);
	if (!ep->pid) {
		char number[16];

		close(pair[0]);
		snprintf(number, sizeof(number), "%d", pair[1]);
		setenv(SOCKET_ENV, number, 1);
		execl("/proc/self/exe", "far-end", (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	ep->sock = pair[0];
}

void apart_ask(struct endpoint *ep, const struct ep_request *request, struct ep_reply *reply)
{
	CHECK(send(ep->sock, request, sizeof(*request), MSG_NOSIGNAL) == (ssize_t)sizeof(*request));
	CHECK(recv(ep->sock, reply, sizeof(*reply), 0) == (ssize_t)sizeof(*reply));
}

int apart_do(struct endpoint *ep, const struct ep_request *request)
{
	struct ep_reply reply;

	apart_ask(ep, request, &reply);
	return reply.result;
}

void apart_open(struct endpoint *ep)
{
	struct ep_request request = {.verb = EP_OPEN, .config = ep->config};
	struct ep_reply reply;

	apart_start(ep);
	apart_ask(ep, &request, &reply);
	ep->local = reply.opened.local;
	ep->cap = reply.opened.cap;
	ep->lkey = reply.opened.lkey;
	ep->size = reply.opened.size;
}

void apart_close(struct endpoint *ep)
{
	int status;

	CHECK_ZERO(apart_do(ep, &(struct ep_request){.verb = EP_CLOSE}));
	close(ep->sock);
	CHECK_EQ(waitpid(ep->pid, &status, 0), ep->pid);
	CHECK_SAY(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		  "the process of the far endpoint ended with %#x", (unsigned int)status);
}

/* One region of the test is named by its index; -1: none. */
static int bind_asked(struct endpoint *ep, const struct ep_request *r, uint32_t *rkey)
{
	struct ep_key region = {.index = r->b};

	return ep_bind(ep, r->a, r->b < 0 ? NULL : &region, r->offset, r->length, r->c, rkey);
}

static int state_asked(struct endpoint *ep, const struct ep_request *r)
{
	switch (r->verb) {
	case EP_BRING_TO:
		return ep_bring_to(ep, &r->peer, (enum ibv_qp_state)r->a);
	case EP_MODIFY:
		return ep_modify(ep, &r->attr, r->a);
	case EP_STATE:
		return (int)ep_state(ep);
	default:
		return (int)ep_port_counter(ep, r->a);
	}
}

static int memory_asked(struct endpoint *ep, const struct ep_request *r, struct ep_reply *reply)
{
	switch (r->verb) {
	case EP_POKE:
		ep_poke(ep, r->offset, r->data, r->length);
		return 0;
	case EP_PEEK:
		ep_peek(ep, r->offset, reply->data, r->length);
		return 0;
	case EP_VANISH:
		ep_vanish(ep, r->offset, r->length);
		return 0;
	case EP_REG:
		return ep_reg(ep, r->offset, r->length, r->a, r->b, &reply->key);
	case EP_DEREG:
		return ep_dereg(ep, r->a);
	case EP_WINDOW:
		return ep_window(ep, r->a, (enum ibv_mw_type)r->b);
	case EP_BIND:
		return bind_asked(ep, r, &reply->key.rkey);
	default:
		return ep_window_free(ep, r->a);
	}
}

static int asked(struct endpoint *ep, struct ep_request *r, struct ep_reply *reply)
{
	switch (r->verb) {
	case EP_OPEN:
		ep_open(ep, &r->config, EP_HERE);
		reply->opened = *ep;
		return 0;
	case EP_CLOSE:
		ep_close(ep);
		return 0;
	case EP_BRING_TO:
	case EP_MODIFY:
	case EP_STATE:
	case EP_COUNTER:
		return state_asked(ep, r);
	case EP_POST_RECV:
		return ep_post_recv(ep, r->wr.wr_id, r->sge, r->a);
	case EP_POST_SEND:
		r->wr.sg_list = r->sge;
		return ep_post_send(ep, &r->wr);
	case EP_POLL:
		return ep_poll(ep, (enum ep_cq)r->a, reply->wc, r->b, r->c);
	case EP_EVENT:
		return ep_event(ep, &reply->event, r->a);
	default:
		return memory_asked(ep, r, reply);
	}
}

/* The other process: does what it is asked for until it is told to close. */
_Noreturn static void serve(int sock)
{
	static struct ep_request request;
	static struct ep_reply reply;
	struct endpoint ep;

	prctl(PR_SET_PDEATHSIG, SIGKILL);         /* no process outlives a test that failed */
	CHECK(freopen("/dev/null", "w", stdout)); /* the near end reports */
	promise("far endpoint");
	for (;;) {
		if (recv(sock, &request, sizeof(request), 0) != (ssize_t)sizeof(request))
			exit(1);
		memset(&reply, 0, sizeof(reply));
		reply.result = asked(&ep, &request, &reply);
		if (send(sock, &reply, sizeof(reply), 0) != (ssize_t)sizeof(reply))
			exit(1);
		if (request.verb == EP_CLOSE)
			exit(0);
	}
}

enum ep_place ep_main(int argc, char **argv)
{
	const char *sock = getenv(SOCKET_ENV);

	if (sock)
		serve(atoi(sock));
	setvbuf(stdout, NULL, _IOLBF, 0);
	return argc > 1 && !strcmp(argv[1], "--two-processes") ? EP_APART : EP_HERE;
}
