/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A device as a PCI device. There is no link `subsystem`: without it NCCL says "not a PCI device",
 * attaches the device to the first processor and asks for nothing more.
 */
#include <endian.h>
#include <inttypes.h>
#include <linux/pci_regs.h>
#include <string.h>

#include "view/cpus.h"
#include "view/device.h"
#include "view/files.h"
#include "view/files_put.h"

/* Six base addresses, the ROM, and what bridges and virtual functions would have. */
enum { RESOURCES = 13 };

#define CLASS    0x020000u /* Ethernet controller */
#define SPEED    "16.0 GT/s PCIe\n"
#define WIDTH    "16\n"
#define MODALIAS "pci:v%08Xd%08Xsv%08Xsd%08Xbc02sc00i00"

static void identity(struct tree *t, const char *base, const struct view_device *d)
{
	unsigned int vendor = d->attr.vendor_id, part = d->attr.vendor_part_id;

	put_text(t, base, "vendor", "0x%04x\n", vendor);
	put_text(t, base, "device", "0x%04x\n", part);
	put_text(t, base, "subsystem_vendor", "0x%04x\n", vendor);
	put_text(t, base, "subsystem_device", "0x%04x\n", part);
	put_text(t, base, "class", "0x%06x\n", CLASS);
	put_text(t, base, "revision", "0x00\n");
	put_text(t, base, "modalias", MODALIAS "\n", vendor, part, vendor, part);
	put_text(t, base, "uevent",
		 "DRIVER=verbatim\nPCI_CLASS=%X\nPCI_ID=%04X:%04X\nPCI_SUBSYS_ID=%04X:%04X\n"
		 "PCI_SLOT_NAME=%s\nMODALIAS=" MODALIAS "\n",
		 CLASS, vendor, part, vendor, part, d->address, vendor, part, vendor, part);
}

/*
 * For libpci, which perftest asks about relaxed ordering, and which ends the program if it cannot
 * read these of any device: a header without base addresses and capabilities.
 */
static void configuration(struct tree *t, const char *base, const struct view_device *d)
{
	static const char none[] = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
	uint16_t vendor = htole16((uint16_t)d->attr.vendor_id);
	uint16_t part = htole16((uint16_t)d->attr.vendor_part_id);
	char path[PATH_MAX], resource[RESOURCES * sizeof(none)] = "";
	uint8_t config[PCI_STD_HEADER_SIZEOF] = {0};

	for (int i = 0; i < RESOURCES; i++)
		strcat(resource, none);
	put_text(t, base, "resource", "%s", resource);
	put_text(t, base, "irq", "0\n");
	memcpy(config + PCI_VENDOR_ID, &vendor, sizeof(vendor));
	memcpy(config + PCI_DEVICE_ID, &part, sizeof(part));
	config[PCI_CLASS_DEVICE + 1] = CLASS >> 16;
	config[PCI_CLASS_DEVICE] = CLASS >> 8 & 0xff;
	memcpy(config + PCI_SUBSYSTEM_VENDOR_ID, &vendor, sizeof(vendor));
	memcpy(config + PCI_SUBSYSTEM_ID, &part, sizeof(part));
	tree_bytes(t, tree_path(path, sizeof(path), "%s/config", base), config, sizeof(config));
}

static void place(struct tree *t, const char *base, const struct view_device *d)
{
	struct cpus cpus;

	cpus_near(d->interface, &cpus);
	put_text(t, base, "numa_node", "%s", cpus.node);
	put_text(t, base, "local_cpus", "%s", cpus.mask);
	put_text(t, base, "local_cpulist", "%s", cpus.list);
	put_text(t, base, "current_link_speed", SPEED);
	put_text(t, base, "max_link_speed", SPEED);
	put_text(t, base, "current_link_width", WIDTH);
	put_text(t, base, "max_link_width", WIDTH);
}

void pci_files(struct tree *t, const char *base, const struct view_device *d)
{
	char path[PATH_MAX];

	identity(t, base, d);
	configuration(t, base, d);
	place(t, base, d);
	/* An honest name: Open MPI ranks devices by it. */
	tree_link(t, tree_path(path, sizeof(path), "%s/driver", base),
		  "../../../bus/pci/drivers/verbatim");
	tree_path(path, sizeof(path), "%s/net/%s", base, d->interface);
	put_text(t, path, "dev_port", "0\n");
	put_text(t, path, "type", "1\n");
	put_text(t, path, "ifindex", "%" PRIu32 "\n", d->ifindex);
}
