/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* NUMA nodes and processors of interfaces. */
#include "view/cpus.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "view/real.h"

enum { PROCESSORS = 8192, WORD = 32 };

void cpus_file(const char *path, char *text, size_t size, const char *other)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	if (n > 0)
		text[n] = '\0';
	else
		snprintf(text, size, "%s", other);
}

static void set_range(uint32_t *bits, unsigned long from, unsigned long to)
{
	for (unsigned long i = from; i <= to && i < PROCESSORS; i++)
		bits[i / WORD] |= 1u << i % WORD;
}

static int highest(const uint32_t *bits)
{
	int i = PROCESSORS / WORD - 1;

	while (i > 0 && !bits[i])
		i--;
	return i;
}

void cpus_mask(const char *list, char *mask, size_t size)
{
	uint32_t bits[PROCESSORS / WORD] = {0};
	size_t length = 0;
	char *end;

	for (const char *at = list; *at >= '0' && *at <= '9'; at = *end == ',' ? end + 1 : end) {
		unsigned long from = strtoul(at, &end, 10);

		set_range(bits, from, *end == '-' ? strtoul(end + 1, &end, 10) : from);
	}
	int i = highest(bits);

	length = (size_t)snprintf(mask, size, "%x", bits[i]);
	while (--i >= 0 && length + 10 < size)
		length += (size_t)snprintf(mask + length, size - length, ",%08x", bits[i]);
	snprintf(mask + length, size - length, "\n");
}

static void online(char *list, size_t size)
{
	char all[32];

	snprintf(all, sizeof(all), "0-%ld\n", sysconf(_SC_NPROCESSORS_ONLN) - 1);
	cpus_file(REAL_SYS "/devices/system/cpu/online", list, size, all);
}

static void of_device(const char *interface, const char *file, char *text, size_t size)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), REAL_SYS "/class/net/%s/device/%s", interface, file);
	cpus_file(path, text, size, "");
}

void cpus_near(const char *interface, struct cpus *cpus)
{
	of_device(interface, "numa_node", cpus->node, sizeof(cpus->node));
	of_device(interface, "local_cpulist", cpus->list, sizeof(cpus->list));
	of_device(interface, "local_cpus", cpus->mask, sizeof(cpus->mask));
	if (!cpus->node[0])
		snprintf(cpus->node, sizeof(cpus->node), "-1\n");
	if (!cpus->list[0] || cpus->list[0] == '\n')
		online(cpus->list, sizeof(cpus->list));
	if (!cpus->mask[0] || cpus->mask[0] == '\n')
		cpus_mask(cpus->list, cpus->mask, sizeof(cpus->mask));
}
