/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which PCI address a device is shown at. */
#include "view/pci_address.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view/device.h"
#include "view/real.h"

#define FIRST_DOMAIN 0x7662u
#define DOMAINS      0x8000u /* so many follow it */

static bool taken(const struct view_devices *all, uint32_t count, const char *address)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!strcmp(all->device[i].address, address))
			return true;
	}
	return false;
}

/* Whether the machine has a domain, by a bit for each that follows the first one. */
static void read_domains(uint64_t *has)
{
	DIR *dir = opendir(REAL_SYS "/bus/pci/devices");
	char path[sizeof(REAL_SYS "/bus/pci/devices/") + 256];

	for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
		unsigned long domain = strtoul(e->d_name, NULL, 16);

		snprintf(path, sizeof(path), REAL_SYS "/bus/pci/devices/%s", e->d_name);
		if (domain >= FIRST_DOMAIN && domain < FIRST_DOMAIN + DOMAINS &&
		    !real_is_ours(path))
			has[(domain - FIRST_DOMAIN) / 64] |= 1ull << (domain - FIRST_DOMAIN) % 64;
	}
	if (dir)
		closedir(dir);
}

static bool is_free(const struct view_devices *all, uint32_t count, const uint64_t *has,
		    uint32_t domain, char address[VIEW_ADDRESS])
{
	uint32_t bus = all->device[count].ifindex & 0xff;

	if (has[domain / 64] >> domain % 64 & 1)
		return false;
	snprintf(address, VIEW_ADDRESS, "%04x:%02x:00.0", (FIRST_DOMAIN + domain) & 0xffffu, bus);
	return !taken(all, count, address);
}

void view_pci_addresses(struct view_devices *all)
{
	static uint64_t has[DOMAINS / 64];

	memset(has, 0, sizeof(has));
	read_domains(has);
	for (uint32_t i = 0; i < all->count; i++) {
		uint32_t domain = (all->device[i].ifindex >> 8) % DOMAINS;

		for (uint32_t n = 0; n < DOMAINS; n++, domain = (domain + 1) % DOMAINS) {
			if (is_free(all, i, has, domain, all->device[i].address))
				break;
		}
	}
}
