/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * `verbatim devices`: every device with its port and addresses, through the public API, then the
 * devices that lists leave out, then what processes of the host can reach.
 */
#include <argp.h>
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "arguments.h"
#include "commands.h"
#include "device_file.h"
#include "host/domain.h"
#include "reach.h"
#include "udp/holder.h"

#define PATTERNS "VERBATIM_DEVICES"

enum { MAX_GIDS = 256, FIRST_PORT = 1, PORT = 4791 };

static void print_guid(__be64 guid)
{
	uint64_t v = be64toh(guid);

	printf("%04x:%04x:%04x:%04x", (unsigned int)(v >> 48), (unsigned int)(v >> 32 & 0xffff),
	       (unsigned int)(v >> 16 & 0xffff), (unsigned int)(v & 0xffff));
}

/*
 * The table holds an IPv4 address as ::ffff:a.b.c.d (IBA A17.4.4); it is printed without the
 * prefix.
 */
static void print_gid(const struct ibv_gid_entry *entry)
{
	char address[INET6_ADDRSTRLEN] = "?";
	char interface[IF_NAMESIZE] = "?";
	struct in6_addr in6;

	memcpy(&in6, entry->gid.raw, sizeof(in6));
	if (IN6_IS_ADDR_V4MAPPED(&in6))
		inet_ntop(AF_INET, &in6.s6_addr[12], address, sizeof(address));
	else
		inet_ntop(AF_INET6, &in6, address, sizeof(address));
	if_indextoname(entry->ndev_ifindex, interface);
	printf("    gid %" PRIu32 "  %-40s %-8s %s\n", entry->gid_index, address, interface,
	       entry->gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "other type");
}

static void print_gids(struct ibv_context *ctx)
{
	struct ibv_gid_entry entries[MAX_GIDS];
	ssize_t count = ibv_query_gid_table(ctx, entries, MAX_GIDS, 0);

	if (count < 0)
		printf("    no GIDs: %s\n", strerror((int)-count));
	for (ssize_t i = 0; i < count; i++)
		print_gid(&entries[i]);
}

static int print_port(struct ibv_context *ctx)
{
	struct ibv_port_attr port;
	int err = ibv_query_port(ctx, FIRST_PORT, &port);

	if (err) {
		fprintf(stderr, "verbatim devices: cannot query the port: %s\n", strerror(err));
		return err;
	}
	printf("    state %s, link layer %s, active MTU %u\n", ibv_port_state_str(port.state),
	       port.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "other",
	       128U << port.active_mtu);
	return 0;
}

/* `lacking` gets the path of the first file that does not exist. */
static void print_file(const struct ibv_device *device, char lacking[DEVICE_FILE_PATH])
{
	char path[DEVICE_FILE_PATH];
	bool usable = device_file_usable(device, path, sizeof(path));

	printf("    file %s: %s\n", path, usable ? "there" : "not there, or not for this user");
	if (!usable && !*lacking)
		memcpy(lacking, path, sizeof(path));
}

static int print_device(struct ibv_device *device, char file_lacking[DEVICE_FILE_PATH])
{
	struct ibv_context *ctx = ibv_open_device(device);
	int err;

	if (!ctx) {
		fprintf(stderr, "verbatim devices: cannot open %s: %s\n",
			ibv_get_device_name(device), strerror(errno));
		return -1;
	}
	printf("%s\n    node GUID ", ibv_get_device_name(device));
	print_guid(ibv_get_device_guid(device));
	putchar('\n');
	err = print_port(ctx);
	if (!err)
		print_gids(ctx);
	print_file(device, file_lacking);
	ibv_close_device(ctx);
	return err;
}

/* The device list under another value of VERBATIM_DEVICES (NULL: unset). */
static struct ibv_device **list_under(const char *patterns)
{
	if (patterns ? setenv(PATTERNS, patterns, 1) : unsetenv(PATTERNS))
		return NULL;
	return ibv_get_device_list(NULL);
}

static bool is_in(struct ibv_device **list, const struct ibv_device *device)
{
	while (*list && *list != device)
		list++;
	return *list;
}

/*
 * Prints the devices that programs do not see, each with the reason. `seen`: the list that programs
 * get.
 */
static void print_hidden(struct ibv_device **seen)
{
	const char *set = getenv(PATTERNS);
	char *patterns = set ? strdup(set) : NULL;
	struct ibv_device **by_default = list_under(NULL);
	struct ibv_device **all = list_under("*");

	for (int i = 0; by_default && all && all[i]; i++) {
		if (is_in(seen, all[i]))
			continue;
		printf("%s\n    not listed: ", ibv_get_device_name(all[i]));
		if (!is_in(by_default, all[i]))
			printf("loopback, and another device has a running link; " PATTERNS
			       "=* lists it\n");
		else
			printf(PATTERNS "=%s leaves it out\n", patterns ? patterns : "");
	}
	ibv_free_device_list(all);
	ibv_free_device_list(by_default);
	free(patterns);
}

static void print_reach(void)
{
	char why[REACH_TEXT];

	if (!reach_probe(why, sizeof(why)))
		printf("Processes of this user reach each other's memory directly.\n");
	else
		printf("Processes of this user do not reach each other's memory directly: %s.\n"
		       "Everything works nevertheless, with one more copy through shared rings.\n",
		       why);
}

/* Whether this user has the port between hosts, or shares it. */
static void print_sharing(void)
{
	char text[256];
	uid_t holder;

	if (!vb_domain_is_named()) {
		if (vb_udp_holder_user(true, PORT, &holder) && holder != geteuid())
			printf("Processes of this user do not reach other hosts: UDP port %d is held by %s.\n"
			       "Users share it who name one directory or group in VERBATIM_DOMAIN: verbatim(7).\n",
			       PORT, vb_udp_holder(true, PORT, text, sizeof(text)));
		return;
	}
	if (vb_domain_defect(text, sizeof(text)))
		printf("No other user shares UDP port %d with this one: %s.\n", PORT, text);
	else
		printf("Users of VERBATIM_DOMAIN=%s share UDP port %d.\n",
		       getenv("VERBATIM_DOMAIN"), PORT);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	argp_usage(state);
	return EINVAL;
}

static const char doc[] =
	"List the devices, their addresses and states, those that programs do not see and "
	"why, and what processes can reach.";

int command_devices(int argc, char **argv)
{
	static const struct argp argp = {.parser = parse, .doc = doc};
	static char name[] = "verbatim devices";
	struct ibv_device **list;
	int count = 0;
	int failed = 0;
	char file_lacking[DEVICE_FILE_PATH] = "";

	if (arguments_parse(&argp, name, 0, argc, argv, NULL))
		return EXIT_FAILURE;
	list = ibv_get_device_list(&count);
	if (!list) {
		fprintf(stderr, "verbatim devices: no device list: %s\n", strerror(errno));
		return EXIT_FAILURE;
	}
	if (!count)
		printf("No device: no network interface that is to be listed is up and has an address.\n");
	for (int i = 0; i < count; i++)
		failed |= print_device(list[i], file_lacking);
	print_hidden(list);
	ibv_free_device_list(list);
	print_reach();
	print_sharing();
	if (*file_lacking)
		device_file_advise(file_lacking);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
