/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What else is on this machine: who holds the UDP port of RoCEv2, and adapters of other makers. */
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "doctor/checks.h"
#include "doctor/finding.h"
#include "host/domain.h"
#include "udp/holder.h"

#define PORT         4791
#define SMALL_BUFFER (1 << 20)

/* As the library binds it: a socket that shares the port with others of the same user. */
static int try_port(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int one = 1;
	int err = 0;

	if (fd < 0)
		return errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)))
		err = errno;
	close(fd);
	return err;
}

static void check_port(void)
{
	char holder[256], why[256];
	int err = try_port();

	if (!err) {
		finding_ok("UDP port %d: free for this user", PORT);
		return;
	}
	if (err != EADDRINUSE) {
		finding_problem("allow UDP sockets", "UDP port %d: %s", PORT, strerror(err));
		return;
	}
	if (vb_domain_is_named() && !vb_domain_defect(why, sizeof(why))) {
		finding_note(
			"start the programs of that user with the same VERBATIM_DOMAIN",
			"UDP port %d: held by %s, who shares it with this user if it has the same "
			"VERBATIM_DOMAIN",
			PORT, vb_udp_holder(true, PORT, holder, sizeof(holder)));
		return;
	}
	if (vb_domain_is_named()) {
		finding_problem("verbatim(7) says what a domain must be",
				"UDP port %d: held by %s, and not shared with this user: %s", PORT,
				vb_udp_holder(true, PORT, holder, sizeof(holder)), why);
		return;
	}
	finding_problem(
		"end that process, unload the driver (rdma link delete rxe0; modprobe -r rdma_rxe), use a network namespace of your "
		"own, or let the users share it (VERBATIM_DOMAIN, verbatim(7))",
		"UDP port %d: held by %s; other hosts cannot be reached, processes of this host can",
		PORT, vb_udp_holder(true, PORT, holder, sizeof(holder)));
}

static long number_in(const char *path)
{
	FILE *f = fopen(path, "re");
	long value = -1;

	if (f && fscanf(f, "%ld", &value) != 1)
		value = -1;
	if (f)
		fclose(f);
	return value;
}

static void check_buffers(void)
{
	long limit = number_in("/proc/sys/net/core/rmem_max");

	if (limit >= 0 && limit < SMALL_BUFFER)
		finding_note(
			"sysctl net.core.rmem_max=33554432 (as root), for more speed between hosts",
			"UDP buffers: the kernel grants at most %ld bytes", limit);
}

static bool is_foreign(const char *name)
{
	return name[0] != '.' && strncmp(name, "vb_", 3) != 0;
}

static void check_adapters(void)
{
	DIR *dir = opendir("/sys/class/infiniband");
	const struct dirent *entry;
	char names[256] = "";
	size_t used = 0;

	while (dir && (entry = readdir(dir))) {
		if (is_foreign(entry->d_name) && used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
						 used ? ", " : "", entry->d_name);
	}
	if (dir)
		closedir(dir);
	if (used)
		finding_note(
			"start programs by `verbatim run`, and name the device (vb_...) where a program has an option for it",
			"other adapters: %s; a program that is not started by `verbatim run`, or loads a libibverbs of its own, "
			"uses these",
			names);
	else
		finding_ok("other adapters: none");
}

void check_others(void)
{
	check_port();
	check_buffers();
	check_adapters();
}
