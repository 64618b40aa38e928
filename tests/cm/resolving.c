/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdma_resolve_addrinfo(3) does not wait for a slow name server: the call returns, the event follows,
 * and an id can be destroyed in between. The resolver here answers when the test lets it: it stands
 * before that of the C library.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "cm.h"
#include "support/check.h"
#include "support/clock.h"

enum { PATIENCE_MS = 20000, PAUSE_US = 100000 };

static _Atomic int calls, returns;
static _Atomic bool held; /* the resolver does not answer yet */

__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
						       const struct addrinfo *hints,
						       struct addrinfo **result)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
	const uint64_t until = now_ms() + PATIENCE_MS;
	int code;

	atomic_fetch_add(&calls, 1);
	while (atomic_load(&held) && now_ms() < until)
		usleep(1000);
	*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	code = real(node, service, hints, result);
	atomic_fetch_add(&returns, 1);
	return code;
}

static void begin(struct rdma_cm_id *id, const struct rdma_addrinfo *hints)
{
	const int before = atomic_load(&returns);

	EXPECT_EQ(rdma_resolve_addrinfo(id, OWN_V4, "7", hints), 0);
	EXPECT_SAY(atomic_load(&returns) == before, "the call has waited for the resolver");
}

int main(void)
{
	struct rdma_event_channel *channel;
	struct sockaddr_in source = {.sin_family = AF_INET};
	struct rdma_addrinfo *hints, *found = NULL;
	struct rdma_cm_id *id, *sync, *gone[4];

	cm_network();
	channel = rdma_create_event_channel();
	CHECK(channel);
	id = cm_id(channel, RDMA_PS_TCP);
	expect_case("the call returns, the hints may go, and the event follows");
	hints = calloc(1, sizeof(*hints));
	CHECK(hints);
	hints->ai_flags = RAI_NUMERICHOST;
	hints->ai_src_addr = (struct sockaddr *)&source;
	hints->ai_src_len = sizeof(source);
	atomic_store(&held, true);
	begin(id, hints);
	free(hints);
	source.sin_family = 0;
	EXPECT(!cm_waits(channel));
	EXPECT_MINUS1(rdma_query_addrinfo(id, &found), ENOENT);
	EXPECT_MINUS1(rdma_resolve_addrinfo(id, OWN_V4, "7", NULL), EBUSY);
	atomic_store(&held, false);
	EXPECT_EQ(cm_pass(channel, RDMA_CM_EVENT_ADDRINFO_RESOLVED), 0);
	CHECK_ZERO(rdma_query_addrinfo(id, &found));
	EXPECT(found->ai_src_addr && found->ai_src_addr->sa_family == AF_INET);
	rdma_freeaddrinfo(found);
	EXPECT_EQ(atomic_load(&calls), 1);

	expect_case("ids are destroyed meanwhile");
	atomic_store(&held, true);
	for (int i = 0; i < 4; i++) {
		gone[i] = cm_id(channel, RDMA_PS_TCP);
		begin(gone[i], NULL);
	}
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(rdma_destroy_id(gone[i]), 0);
	EXPECT_EQ(atomic_load(&returns), 1);
	atomic_store(&held, false);
	for (uint64_t until = now_ms() + PATIENCE_MS;
	     atomic_load(&returns) < 5 && now_ms() < until;)
		usleep(1000);
	EXPECT_EQ(atomic_load(&returns), 5);
	usleep(PAUSE_US);
	EXPECT(!cm_waits(channel));

	expect_case("a synchronous id waits");
	CHECK_ZERO(rdma_create_id(NULL, &sync, NULL, RDMA_PS_TCP));
	EXPECT_EQ(rdma_resolve_addrinfo(sync, OWN_V4, "7", NULL), 0);
	EXPECT_EQ(atomic_load(&returns), 6);
	EXPECT_EQ(rdma_query_addrinfo(sync, &found), 0);
	rdma_freeaddrinfo(found);
	CHECK_ZERO(rdma_destroy_id(sync));
	CHECK_ZERO(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
	return expect_done();
}
