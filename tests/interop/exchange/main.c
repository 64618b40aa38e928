/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Usage: exchange -d DEVICE -G                                              lists its GIDs
 *        exchange -d DEVICE -g GID_INDEX -m MTU -p PORT [-t TESTS] [-l]             server
 *        exchange -d DEVICE -g GID_INDEX -m MTU -p PORT [-t TESTS] [-l] HOST        client
 * TESTS: of rc, uc, ud, multicast, errors, comma separated. -l: packets get lost. -s SEED. Both
 * sides need the same ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exchange.h"

static const struct {
	const char *name;
	void (*run)(struct exchange *x);
} tests[] = {{"rc", test_rc},
	     {"uc", test_uc},
	     {"ud", test_ud},
	     {"multicast", test_multicast},
	     {"errors", test_errors}};

static void usage(void)
{
	fail("usage: exchange -d DEVICE -G | -g GID_INDEX -m MTU -p PORT [-t TESTS] [-s SEED] "
	     "[-l] [HOST]");
}

static bool parse(struct exchange *x, int argc, char **argv)
{
	bool list = false;
	int option;

	while ((option = getopt(argc, argv, "d:g:m:p:t:s:lG")) != -1) {
		if (option == 'd')
			x->device = optarg;
		else if (option == 'g')
			x->gid_index = atoi(optarg);
		else if (option == 'm')
			x->mtu = (uint32_t)strtoul(optarg, NULL, 0);
		else if (option == 'p')
			x->port = optarg;
		else if (option == 't')
			x->tests = optarg;
		else if (option == 's')
			x->seed = (uint32_t)strtoul(optarg, NULL, 0);
		else if (option == 'l')
			x->lossy = true;
		else if (option == 'G')
			list = true;
		else
			usage();
	}
	x->server = argv[optind];
	if (!x->device || (!list && !x->port))
		usage();
	return list;
}

static bool wanted(const struct exchange *x, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = x->tests; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (!strncmp(at, name, length) && (at[length] == ',' || !at[length]))
			return true;
	return false;
}

static void agree(struct exchange *x)
{
	const uint32_t mine[] = {x->mtu, x->lossy, (uint32_t)strlen(x->tests), x->seed};
	uint32_t theirs[4];

	tcp_swap(x, mine, theirs, sizeof(mine));
	if (memcmp(mine, theirs, sizeof(mine)))
		fail("the other side was started with other options");
}

int main(int argc, char **argv)
{
	struct exchange x = {.tests = "rc,uc,ud,multicast,errors", .mtu = 1024, .seed = 1};
	unsigned int count = 0;

	if (parse(&x, argc, argv)) {
		device_list_gids(&x);
		return 0;
	}
	device_open(&x);
	tcp_connect(&x);
	agree(&x);
	for (unsigned int i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (wanted(&x, tests[i].name)) {
			tests[i].run(&x);
			count++;
		}
	if (!count)
		fail("no test of that name: %s", x.tests);
	barrier(&x, "the end");
	must(ibv_dereg_mr(x.mr), "ibv_dereg_mr");
	must(ibv_destroy_cq(x.cq), "ibv_destroy_cq");
	must(ibv_dealloc_pd(x.pd), "ibv_dealloc_pd");
	must(ibv_close_device(x.context), "ibv_close_device");
	free(x.memory);
	close(x.sock);
	say("all done: %u tests", count);
	return 0;
}
