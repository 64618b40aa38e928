/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Hostile neighbours: namespaces, users, callers, and the traffic of other processes. */
#include "support/intruder.h"

#include <grp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/check.h"

enum { LENGTH = 64 };

void user_become(uid_t user)
{
	CHECK_ZERO(setgroups(0, NULL));
	CHECK_ZERO(setresgid(user, user, user));
	CHECK_ZERO(setresuid(user, user, user));
}

void descriptors_limit(unsigned int most)
{
	struct rlimit limit;

	CHECK_ZERO(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = most;
	if (limit.rlim_max < most)
		limit.rlim_max = most;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		SKIP("%u descriptors may not be had here", most);
}

/* The which-th abstract name of the library in the kernel's list, counted round the list. */
static bool name_find(unsigned int which, struct sockaddr_un *addr, socklen_t *length)
{
	static char names[64][100];
	static unsigned int found;
	char line[512];

	/* The names of a process that has started stay, so the list is read only now and then. */
	if (which % 4096 == 0 || !found) {
		FILE *list = fopen("/proc/net/unix", "re");

		CHECK(list);
		for (found = 0; found < 64 && fgets(line, sizeof(line), list);) {
			const char *name = strstr(line, "@verbatim/");

			if (name && sscanf(name + 1, "%99s", names[found]) == 1)
				found++;
		}
		fclose(list);
	}
	if (!found)
		return false;
	const char *name = names[which % found];

	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	memcpy(addr->sun_path + 1, name, strlen(name));
	*length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
	return true;
}

int name_call_any(unsigned int which)
{
	struct sockaddr_un addr;
	socklen_t length;

	if (!name_find(which, &addr, &length))
		return -1;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, length)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Sleeps until a receive has completed; completions of sends are skipped. */
static void received(struct endpoint *ep)
{
	struct resources *r = ep->resources;
	struct ibv_wc wc;

	for (;;) {
		struct ibv_cq *cq;
		void *context;
		int n;

		while ((n = ibv_poll_cq(r->cq, 1, &wc)) == 1) {
			CHECK_SAY(wc.status == IBV_WC_SUCCESS, "status %d", wc.status);
			if (wc.opcode == IBV_WC_RECV)
				return;
		}
		CHECK_ZERO(n);
		CHECK_ZERO(ibv_req_notify_cq(r->cq, 0));
		n = ibv_poll_cq(r->cq, 1, &wc);
		if (n == 0) {
			CHECK_ZERO(ibv_get_cq_event(r->channel, &cq, &context));
			ibv_ack_cq_events(cq, 1);
			continue;
		}
		CHECK_EQ(n, 1);
		CHECK_SAY(wc.status == IBV_WC_SUCCESS, "status %d", wc.status);
		if (wc.opcode == IBV_WC_RECV)
			return;
	}
}

void ping_by_events(struct endpoint *ep, unsigned int rounds, bool first)
{
	CHECK_ZERO(ep_recv(ep, 1, 0, LENGTH));
	for (unsigned int i = 0; i < rounds; i++) {
		if (first)
			CHECK_ZERO(ep_send(ep, 2, LENGTH, LENGTH, IBV_SEND_SIGNALED));
		received(ep);
		CHECK_ZERO(ep_recv(ep, 1, 0, LENGTH));
		if (!first)
			CHECK_ZERO(ep_send(ep, 2, LENGTH, LENGTH, IBV_SEND_SIGNALED));
	}
}

static int victim(int sock, const struct ping *ping, bool first)
{
	struct resources resources;
	struct endpoint ep;

	promise(ping->promise);
	user_become(INTRUDER_VICTIM);
	resources_open(&resources, 64, true);
	ep_open_on(&ep, &resources, NULL, NULL, 4096);
	ep_exchange(&ep, sock);
	ping_by_events(&ep, ping->rounds, first);
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static int first_victim(int sock, void *ping)
{
	return victim(sock, ping, true);
}

static int second_victim(int sock, void *ping)
{
	return victim(sock, ping, false);
}

void victims_start(struct process *a, struct process *b, const struct ping *ping)
{
	process_start_pair(a, first_victim, b, second_victim, (void *)ping);
}
