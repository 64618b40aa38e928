/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: the library is a quiet guest in a process.
 *   - No thread and no socket name before the first queue pair.
 *   - Then one thread or two, named, with every signal blocked.
 *   - No descriptor per queue pair, and every descriptor closes on exec.
 *   - A program that ends without destroying anything ends cleanly and at once.
 */
#include "procs/leftovers.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAIRS = 100, MOST_THREADS = 3, DESCRIPTOR_SLACK = 2 };

/* The value of one line of /proc/self/task/TID/status, "" when there is none. */
static void status_line(const char *tid, const char *key, char *value, size_t size)
{
	char path[300], line[256];
	FILE *file;

	value[0] = '\0';
	snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
	file = fopen(path, "r");
	CHECK_SAY(file, "%s: errno %d", path, errno);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':') {
			char *start = line + strlen(key) + 1;

			start += strspn(start, " \t");
			start[strcspn(start, "\n")] = '\0';
			snprintf(value, size, "%s", start);
		}
	fclose(file);
}

/* Calls look (may be NULL) for every thread but the first one; returns how many there are. */
static int other_threads(void (*look)(const char *tid))
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;
	int count = 0;

	CHECK(folder);
	while ((entry = readdir(folder)))
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != getpid()) {
			count++;
			if (look)
				look(entry->d_name);
		}
	closedir(folder);
	return count;
}

static void look_at_thread(const char *tid)
{
	char own[64], name[64], blocked[64], self[16];
	/* What can't be blocked: SIGKILL, SIGSTOP; and glibc keeps 32 and 33 for itself. */
	unsigned long long may_be_open = 1ull << 8 | 1ull << 18 | 1ull << 31 | 1ull << 32;
	unsigned long long mask;

	snprintf(self, sizeof(self), "%d", (int)getpid());
	status_line(self, "Name", own, sizeof(own));
	status_line(tid, "Name", name, sizeof(name));
	CHECK_SAY(strcmp(own, name) != 0, "thread %s bears the program's name %s", tid, name);
	status_line(tid, "SigBlk", blocked, sizeof(blocked));
	mask = strtoull(blocked, NULL, 16);
	CHECK_SAY((mask | may_be_open) == ~0ull, "thread %s (%s) blocks only %s", tid, name,
		  blocked);
}

enum { DESCRIPTORS = 4096 };
static bool ours[DESCRIPTORS];

/* What is open before the library is called is none of its business. */
static void note_descriptors(void)
{
	int fd;

	for (fd = 0; fd < DESCRIPTORS; fd++)
		ours[fd] = fcntl(fd, F_GETFD) >= 0;
}

static void descriptors_close_on_exec(void)
{
	int fd, flags;

	for (fd = 0; fd < DESCRIPTORS; fd++) {
		flags = fcntl(fd, F_GETFD);
		CHECK_SAY(ours[fd] || flags < 0 || flags & FD_CLOEXEC,
			  "descriptor %d stays open over exec", fd);
	}
}

static void no_guests(void)
{
	struct names names;

	CHECK_EQ(other_threads(NULL), 0);
	names_of_process(getpid(), &names);
	CHECK_EQ(names.count, 0);
}

static int guest(int sock, void *unused)
{
	struct resources resources;
	static struct endpoint eps[PAIRS];
	int before;
	int i;

	(void)unused;
	(void)sock;
	note_descriptors();
	promise("no thread and no name before the first queue pair");
	resources_open(&resources, 256, true);
	CHECK(ibv_reg_mr(resources.pd, eps, sizeof(eps), IBV_ACCESS_LOCAL_WRITE));
	no_guests();
	promise("the library's threads are few, named and deaf to signals");
	ep_open_on(&eps[0], &resources, NULL, NULL, 4096);
	ep_open_on(&eps[1], &resources, NULL, NULL, 4096);
	ep_link(&eps[0], &eps[1]);
	CHECK_ZERO(ep_recv(&eps[1], 1, 0, 64));
	CHECK_ZERO(ep_send(&eps[0], 2, 0, 64, 0));
	completion_expect(resources.cq, 1, IBV_WC_SUCCESS, NULL);
	i = other_threads(look_at_thread);
	CHECK_SAY(i >= 1 && i <= MOST_THREADS, "%d threads", i);
	promise("no descriptor per queue pair, none that survives exec");
	before = descriptors_open();
	for (i = 2; i < PAIRS; i += 2) {
		ep_open_on(&eps[i], &resources, NULL, NULL, 4096);
		ep_open_on(&eps[i + 1], &resources, NULL, NULL, 4096);
		ep_link(&eps[i], &eps[i + 1]);
	}
	CHECK_SAY(descriptors_open() <= before + DESCRIPTOR_SLACK,
		  "%d descriptors with 2 queue pairs, %d with %d", before, descriptors_open(),
		  PAIRS);
	descriptors_close_on_exec();
	promise("a program that destroys nothing ends cleanly and at once");
	return 0;
}

int main(void)
{
	struct process process;

	watchdog(30);
	process_start(&process, guest, NULL);
	process_expect_success(&process, 20000);
	CHECK(!shared_file_left());
	return 0;
}
