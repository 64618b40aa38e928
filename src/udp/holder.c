/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The holder of a port: its socket in /proc/net/udp*, and the process that has the socket's inode
 * in /proc/PID/fd.
 */
#include "udp/holder.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"

#define TEXT 64 /* room for a pid, a program's name or a link's target */
#define PATH 512

struct owner {
	unsigned int uid;
	unsigned long inode;
};

/* A row is "sl local remote st queues tr:tm retrnsmt uid timeout inode ...". */
static bool row_matches(const char *row, uint16_t port, struct owner *owner)
{
	unsigned int number;
	unsigned int uid;
	unsigned long inode;

	if (sscanf(row, " %*d: %*[0-9A-Fa-f]:%x %*s %*x %*s %*s %*x %u %*d %lu", &number, &uid,
		   &inode) != 3)
		return false;
	if (number != port)
		return false;
	owner->uid = uid;
	owner->inode = inode;
	return true;
}

static bool find_in(const char *path, uint16_t port, struct owner *owner)
{
	FILE *f = vb_sys_fopen(path);
	char row[512];
	bool found = false;

	if (!f)
		return false;
	while (!found && fgets(row, sizeof(row), f))
		found = row_matches(row, port, owner);
	fclose(f);
	return found;
}

static bool has_socket(const char *pid, unsigned long inode)
{
	char path[PATH];
	char wanted[TEXT];
	char link[TEXT];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
	dir = opendir(path);
	if (!dir)
		return false;
	while (!found && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%.32s/fd/%.32s", pid, entry->d_name);
		ssize_t n = readlink(path, link, sizeof(link) - 1);

		if (n < 0)
			continue;
		link[n] = '\0';
		found = !strcmp(link, wanted);
	}
	closedir(dir);
	return found;
}

static void name_of(const char *pid, char name[TEXT])
{
	char path[PATH];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	name[0] = '\0';
	f = vb_sys_fopen(path);
	if (!f)
		return;
	if (fgets(name, TEXT, f))
		name[strcspn(name, "\n")] = '\0';
	fclose(f);
}

/* False: the socket is in no process that this one may look into. */
static bool find_process(unsigned long inode, char pid[TEXT], char name[TEXT])
{
	struct dirent *entry;
	bool found = false;
	DIR *dir = opendir("/proc");

	if (!dir)
		return false;
	while (!found && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]) || !has_socket(entry->d_name, inode))
			continue;
		snprintf(pid, TEXT, "%.*s", TEXT - 1, entry->d_name);
		name_of(pid, name);
		found = true;
	}
	closedir(dir);
	return found;
}

/* An IPv6 socket may hold the IPv4 port as well. */
static bool find(bool ipv4, uint16_t port, struct owner *owner)
{
	return find_in(ipv4 ? "/proc/self/net/udp" : "/proc/self/net/udp6", port, owner) ||
	       find_in(ipv4 ? "/proc/self/net/udp6" : "/proc/self/net/udp", port, owner);
}

bool vb_udp_holder_user(bool ipv4, uint16_t port, uid_t *uid)
{
	struct owner owner = {0};

	if (!find(ipv4, port, &owner) || !owner.inode)
		return false;
	*uid = owner.uid;
	return true;
}

uint32_t vb_udp_port_sockets(bool ipv4, uint16_t port)
{
	FILE *f = vb_sys_fopen(ipv4 ? "/proc/self/net/udp" : "/proc/self/net/udp6");
	struct owner owner;
	uint32_t count = 0;
	char row[512];

	while (f && fgets(row, sizeof(row), f))
		count += row_matches(row, port, &owner);
	if (f)
		fclose(f);
	return count;
}

const char *vb_udp_holder(bool ipv4, uint16_t port, char *text, size_t size)
{
	struct owner owner = {0};
	char pid[TEXT];
	char name[TEXT];

	if (!find(ipv4, port, &owner))
		/*
		 * The kernel itself creates the sockets of drivers, and some of these are in no
		 * table.
		 */
		snprintf(text, size, "the kernel, for a driver such as rdma_rxe");
	else if (!owner.inode)
		snprintf(text, size, "the kernel, for a driver such as rdma_rxe");
	else if (find_process(owner.inode, pid, name))
		snprintf(text, size, "process %s (%s) of user %u", pid, name, owner.uid);
	else if (!owner.uid)
		/*
		 * A driver's socket has an owner and an inode like any other, but is in no process.
		 */
		snprintf(
			text, size,
			"user 0: a driver of the kernel such as rdma_rxe or vxlan, or a process that "
			"cannot be seen from here");
	else
		snprintf(text, size, "user %u, in no process that can be seen from here",
			 owner.uid);
	return text;
}
