/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Usage: tree VERBATIM
 *
 * Every file of a view says what the queries of the library answer: the tree that `verbatim view`
 * writes is compared with ibv_query_device(3), ibv_query_port(3), ibv_query_gid_ex(3),
 * ibv_query_pkey(3), and with what programs that read such trees rely on: links where they resolve
 * links, directories where they list them, a character device that may be opened.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/folder.h"

static char top[] = "/tmp/verbatim-tree-XXXXXX";

static void run(const char *program, char *const argv[])
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		execv(program, argv);
		_exit(127);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_SAY(status == 0, "%s %s ended with status 0x%x", program, argv[1], status);
}

static void write_view(const char *verbatim)
{
	char *const argv[] = {"verbatim", "view", top, NULL};

	run(verbatim, argv);
}

static const char *at(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *at(const char *format, ...)
{
	static char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/", top);
	va_list args;

	va_start(args, format);
	vsnprintf(path + n, sizeof(path) - (size_t)n, format, args);
	va_end(args);
	return path;
}

static void expect_text(const char *path, const char *want)
{
	char found[4096];
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, found, sizeof(found) - 1);

	if (fd >= 0)
		close(fd);
	found[n > 0 ? n : 0] = '\0';
	EXPECT_SAY(!strcmp(found, want), "%s has '%s', want '%s'", path + strlen(top), found, want);
}

#define EXPECT_FILE(path, ...)                                       \
	do {                                                         \
		char want_text[1024];                                \
		char path_text[PATH_MAX];                            \
                                                                     \
		snprintf(path_text, sizeof(path_text), "%s", path);  \
		snprintf(want_text, sizeof(want_text), __VA_ARGS__); \
		expect_text(path_text, want_text);                   \
	} while (0)

static void expect_mode(const char *path, mode_t kind, mode_t mode)
{
	struct stat st = {0};

	EXPECT_SAY(!lstat(path, &st) && (st.st_mode & S_IFMT) == kind &&
			   (S_ISLNK(st.st_mode) || (st.st_mode & 07777) == mode),
		   "%s is of kind and mode 0%o", path + strlen(top), st.st_mode);
}

/* The last components of where a path leads to. */
static void expect_leads(const char *path, const char *end)
{
	char place[PATH_MAX] = "";
	bool found = realpath(path, place) != NULL;
	size_t a = strlen(place), b = strlen(end);

	EXPECT_SAY(found && a > b && !strcmp(place + a - b, end), "%s leads to %s, want ...%s",
		   path + strlen(top), place, end);
}

static void expect_guid(const char *path, __be64 guid)
{
	uint64_t v = be64toh(guid);

	EXPECT_FILE(path, "%04x:%04x:%04x:%04x\n", (unsigned int)(v >> 48) & 0xffff,
		    (unsigned int)(v >> 32) & 0xffff, (unsigned int)(v >> 16) & 0xffff,
		    (unsigned int)v & 0xffff);
}

static void device_files(const char *name, struct ibv_context *ctx)
{
	struct ibv_device_attr attr;

	CHECK_ZERO(ibv_query_device(ctx, &attr));
	EXPECT_FILE(at("sys/class/infiniband/%s/node_type", name), "1: CA\n");
	expect_guid(at("sys/class/infiniband/%s/node_guid", name), attr.node_guid);
	expect_guid(at("sys/class/infiniband/%s/sys_image_guid", name), attr.sys_image_guid);
	EXPECT_FILE(at("sys/class/infiniband/%s/fw_ver", name), "%s\n", attr.fw_ver);
	EXPECT_FILE(at("sys/class/infiniband/%s/hw_rev", name), "%x\n", attr.hw_ver);
	EXPECT_FILE(at("sys/class/infiniband/%s/device/vendor", name), "0x%04x\n", attr.vendor_id);
	EXPECT_FILE(at("sys/class/infiniband/%s/device/device", name), "0x%04x\n",
		    attr.vendor_part_id);
	EXPECT_FILE(at("sys/class/infiniband/%s/device/class", name), "0x020000\n");
	for (int port = 0; port <= attr.phys_port_cnt + 1; port++)
		EXPECT_EQ(!access(at("sys/class/infiniband/%s/ports/%d", name, port), F_OK),
			  port >= 1 && port <= attr.phys_port_cnt);
}

/* IBA 14.2.5.6, in 100 Mb/s and lanes. */
static double port_rate(const struct ibv_port_attr *port)
{
	static const unsigned int lanes[] = {[1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2};
	static const double speeds[] = {[1] = 2.5, [2] = 5,   [4] = 10,  [8] = 10,
					[16] = 14, [32] = 25, [64] = 50, [128] = 100};

	return lanes[port->active_width] * speeds[port->active_speed];
}

static void rate_file(const char *name, const struct ibv_port_attr *port)
{
	char text[64] = "", unit[16] = "";
	double rate = 0;
	FILE *f = fopen(at("sys/class/infiniband/%s/ports/1/rate", name), "r");

	CHECK(f && fgets(text, sizeof(text), f));
	fclose(f);
	/* As Prometheus' node exporter and hwloc read it. */
	EXPECT_SAY(sscanf(text, "%lf %15s (", &rate, unit) == 2 && !strcmp(unit, "Gb/sec") &&
			   rate == port_rate(port),
		   "the rate is '%s', want %g Gb/sec", text, port_rate(port));
}

static void port_files(const char *name, struct ibv_context *ctx, struct ibv_port_attr *port)
{
	static const char *const states[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE"};

	CHECK_ZERO(ibv_query_port(ctx, 1, port));
	EXPECT_FILE(at("sys/class/infiniband/%s/ports/1/state", name), "%d: %s\n", port->state,
		    states[port->state]);
	EXPECT_FILE(at("sys/class/infiniband/%s/ports/1/phys_state", name), "%d: %s\n",
		    port->phys_state, port->phys_state == 5 ? "LinkUp" : "Disabled");
	EXPECT_FILE(at("sys/class/infiniband/%s/ports/1/lid", name), "0x%x\n", port->lid);
	EXPECT_FILE(at("sys/class/infiniband/%s/ports/1/sm_lid", name), "0x%x\n", port->sm_lid);
	EXPECT_FILE(at("sys/class/infiniband/%s/ports/1/sm_sl", name), "%u\n", port->sm_sl);
	EXPECT_FILE(at("sys/class/infiniband/%s/ports/1/lid_mask_count", name), "%u\n", port->lmc);
	EXPECT_FILE(at("sys/class/infiniband/%s/ports/1/cap_mask", name), "0x%08x\n",
		    port->port_cap_flags);
	EXPECT_FILE(at("sys/class/infiniband/%s/ports/1/link_layer", name), "Ethernet\n");
	rate_file(name, port);
	for (int i = 0; i <= port->pkey_tbl_len; i++) {
		__be16 pkey;
		const char *path = at("sys/class/infiniband/%s/ports/1/pkeys/%d", name, i);

		if (i == port->pkey_tbl_len) {
			EXPECT(access(path, F_OK));
			break;
		}
		CHECK_ZERO(ibv_query_pkey(ctx, 1, i, &pkey));
		EXPECT_FILE(path, "0x%04x\n", ntohs(pkey));
	}
}

/* Of an entry that is empty the GID is zero, and the attributes are not there. */
static void gid_file(const char *name, struct ibv_context *ctx, uint32_t i)
{
	struct ibv_gid_entry entry = {0};
	char owner[IF_NAMESIZE];
	char text[64] = "";
	bool used = !ibv_query_gid_ex(ctx, 1, i, &entry, 0);
	const char *path = at("sys/class/infiniband/%s/ports/1/gid_attrs/types/%u", name, i);

	EXPECT_EQ(!access(path, F_OK), used);
	if (used) {
		EXPECT_EQ(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
		EXPECT_FILE(path, "RoCE v2\n");
		CHECK(if_indextoname(entry.ndev_ifindex, owner));
		EXPECT_FILE(at("sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/%u", name, i),
			    "%s\n", owner);
	}
	for (int n = 0; n < 16; n += 2)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%02x%02x",
			 n ? ":" : "", entry.gid.raw[n], entry.gid.raw[n + 1]);
	EXPECT_FILE(at("sys/class/infiniband/%s/ports/1/gids/%u", name, i), "%s\n", text);
}

static void gid_files(const char *name, struct ibv_context *ctx, const struct ibv_port_attr *port)
{
	for (uint32_t i = 0; i < (uint32_t)port->gid_tbl_len; i++)
		gid_file(name, ctx, i);
	EXPECT(access(at("sys/class/infiniband/%s/ports/1/gids/%d", name, port->gid_tbl_len),
		      F_OK));
}

/* What NCCL, hwloc, UCX, Mooncake and Kubernetes' plugins do with the places of the files. */
static void places(const struct ibv_device *device)
{
	const char *name = device->name;
	unsigned int index = if_nametoindex(name + strlen("vb_"));
	char address[16], end[128];
	struct stat st;

	snprintf(address, sizeof(address), "%04x:%02x:00.0", 0x7662 + (index >> 8), index & 0xff);
	snprintf(end, sizeof(end), "/sys/devices/pci%.4s:00/%s", address, address);
	expect_mode(at("sys/class/infiniband/%s", name), S_IFLNK, 0);
	expect_mode(at("sys/class/infiniband_verbs/%s", device->dev_name), S_IFLNK, 0);
	expect_mode(at("sys/bus/pci/devices/%s", address), S_IFLNK, 0);
	expect_leads(at("sys/class/infiniband/%s/device", name), end);
	expect_leads(at("sys/class/infiniband/%s/../..", name), end);
	expect_leads(at("sys/class/infiniband_verbs/%s/device", device->dev_name), end);
	expect_leads(at("sys/bus/pci/devices/%s", address), end);
	expect_leads(at("sys/class/infiniband/%s/device/driver", name),
		     "/sys/bus/pci/drivers/verbatim");
	expect_mode(at("sys/bus/pci/devices/%s/infiniband/%s", address, name), S_IFDIR, 0755);
	expect_mode(at("sys/bus/pci/devices/%s/net/%s", address, name + 3), S_IFDIR, 0755);
	EXPECT(access(at("sys/bus/pci/devices/%s/subsystem", address), F_OK));
	EXPECT_FILE(at("sys/class/infiniband_verbs/%s/ibdev", device->dev_name), "%s\n", name);
	EXPECT_SAY(!strstr(at("sys/class/infiniband/%s", name) + strlen(top), "virtual"),
		   "virtual");
	EXPECT(!stat(at("dev/infiniband/%s", device->dev_name), &st) && S_ISCHR(st.st_mode));
	EXPECT(!access(at("dev/infiniband/%s", device->dev_name), R_OK | W_OK));
}

static bool is_number(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY);
	unsigned long long value;
	char text[64], line_end = 0;
	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	text[n > 0 ? n : 0] = '\0';
	bool is = sscanf(text, "%llu%c", &value, &line_end) == 2 && line_end == '\n';

	EXPECT_SAY(is, "%s has '%s'", name, text);
	return is;
}

static void compare(struct ibv_device *device)
{
	struct ibv_context *ctx = ibv_open_device(device);
	struct ibv_port_attr port;

	CHECK(ctx);
	expect_case("%s: device", device->name);
	device_files(device->name, ctx);
	expect_case("%s: port", device->name);
	port_files(device->name, ctx, &port);
	expect_case("%s: GID table", device->name);
	gid_files(device->name, ctx, &port);
	expect_case("%s: links and folders", device->name);
	places(device);
	expect_case("%s: counters are numbers", device->name);
	EXPECT(folder_count(at("sys/class/infiniband/%s/ports/1/counters", device->name),
			    is_number) >= 20);
	EXPECT(folder_count(at("sys/class/infiniband/%s/ports/1/hw_counters", device->name),
			    is_number) >= 20);
	ibv_close_device(ctx);
}

/* The class of verbs has a file beside its devices. */
static bool is_device(int dir, const char *name)
{
	(void)dir;
	return strncmp(name, "abi_version", 11) != 0;
}

/* Written again, nothing is replaced: who has a file open goes on reading the right one. */
static void again(const char *verbatim, const char *name)
{
	struct stat before, after;

	expect_case("written again");
	CHECK(!stat(at("sys/class/infiniband/%s/node_guid", name), &before));
	CHECK(!unlink(at("sys/class/infiniband/%s/fw_ver", name)));
	CHECK(!mkdir(at("sys/class/infiniband/stale"), 0755));
	write_view(verbatim);
	CHECK(!stat(at("sys/class/infiniband/%s/node_guid", name), &after));
	EXPECT_EQ(after.st_ino, before.st_ino);
	EXPECT(!access(at("sys/class/infiniband/%s/fw_ver", name), F_OK));
	EXPECT(access(at("sys/class/infiniband/stale"), F_OK));
	EXPECT(access(at(".new"), F_OK));
}

int main(int argc, char **argv)
{
	struct ibv_device **list;
	char *const remove[] = {"rm", "-rf", top, NULL};
	int count = 0;

	CHECK(argc == 2 && mkdtemp(top));
	unsetenv("VERBATIM_VIEW");
	umask(077); /* a container's other users see the tree nevertheless */
	write_view(argv[1]);
	list = ibv_get_device_list(&count);
	CHECK(list && count > 0);
	expect_case("as many devices as the list has");
	/* Beside those that the machine itself has, of adapters. */
	EXPECT_EQ(folder_count(at("sys/class/infiniband"), is_device),
		  count + folder_count("/sys/class/infiniband", is_device));
	EXPECT_FILE(at("sys/class/infiniband_verbs/abi_version"), "6\n");
	for (int i = 0; i < count; i++)
		compare(list[i]);
	again(argv[1], list[0]->name);
	ibv_free_device_list(list);
	run("/bin/rm", remove);
	return expect_done();
}
