/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* GUIDs of devices. */
#include "device/guid.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"

/* The "local" bit of an EUI-64. The modified form inverts it: 0 means local. */
#define GUID_LOCAL (1ull << 57)
#define GUID_GROUP (1ull << 56)

static uint64_t hash(uint64_t h, const char *text) /* FNV-1a, 64 bits */
{
	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 0x100000001b3ull;
	return h;
}

uint64_t vb_guid_of(const struct vb_netdev *dev, const char *machine)
{
	static const uint8_t none[6];
	const uint8_t *m = dev->mac;

	if (dev->mac_length == sizeof(none) && memcmp(m, none, sizeof(none)))
		return (uint64_t)(m[0] ^ 2) << 56 | (uint64_t)m[1] << 48 | (uint64_t)m[2] << 40 |
		       0xfffeull << 24 | (uint64_t)m[3] << 16 | (uint64_t)m[4] << 8 | m[5];
	return (hash(hash(0xcbf29ce484222325ull, machine), dev->name) &
		~(GUID_LOCAL | GUID_GROUP)) |
	       1;
}

void vb_guid_machine(char *text, size_t size)
{
	ssize_t len = -1;
	int fd = vb_sys_open("/etc/machine-id", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		len = vb_sys_read(fd, text, size - 1);
		vb_sys_close(fd);
	}
	if (len > 0) {
		text[len] = '\0';
		text[strcspn(text, "\n")] = '\0';
		return;
	}
	if (gethostname(text, size))
		text[0] = '\0';
	text[size - 1] = '\0';
}
