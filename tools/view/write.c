/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writes the whole tree of a view. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "view/counters_show.h"
#include "view/device.h"
#include "view/file_size.h"
#include "view/files.h"
#include "view/files_put.h"
#include "view/lock.h"
#include "view/patterns.h"
#include "view/real.h"
#include "view/view.h"
#include "view/why.h"
#include "view/write.h"

enum { WAIT_MS = 5000 };

#define CLASS_ABI "6" /* of infiniband_verbs, as the kernel has it since 2.6.16 */

/* sys/devices/pciDDDD:00/DDDD:BB:00.0; the domain is the first part of the address. */
static const char *pci_dir(const struct view_device *d, char *path, size_t size)
{
	return tree_path(path, size, "sys/devices/pci%.4s:00/%s", d->address, d->address);
}

/* An entry of a folder of links, unless the machine has one of that name. */
static void entry(struct tree *t, const char *folder, const char *name, const char *target)
{
	char path[PATH_MAX];

	if (!real_has(folder, name))
		tree_link(t, tree_path(path, sizeof(path), "sys/%s/%s", folder, name), target);
}

/* Behind its files: who finds the entry finds the device complete. */
static void entries(struct tree *t, const struct view_device *d)
{
	char base[PATH_MAX], target[PATH_MAX + 64], path[PATH_MAX];

	pci_dir(d, base, sizeof(base));
	tree_path(target, sizeof(target), "../../../%s", base + strlen("sys/"));
	entry(t, "bus/pci/devices", d->address, target);
	tree_path(target, sizeof(target), "../../%s/infiniband_verbs/%s", base + strlen("sys/"),
		  d->file);
	entry(t, "class/infiniband_verbs", d->file, target);
	tree_path(target, sizeof(target), "../../%s/infiniband/%s", base + strlen("sys/"), d->name);
	entry(t, "class/infiniband", d->name, target);
	/* Any character device that everybody may open serves programs that only look (stat(2)). */
	tree_link(t, tree_path(path, sizeof(path), "dev/infiniband/%s", d->file), "/dev/null");
}

static void device(struct tree *t, const struct view_device *d)
{
	char base[PATH_MAX];

	pci_dir(d, base, sizeof(base));
	pci_files(t, base, d);
	device_files(t, base, d);
	entries(t, d);
}

/* What is there without any device, so that a listing is empty and not an error. */
static void frame(struct tree *t)
{
	static const char *const dirs[] = {
		"sys/class/infiniband", "sys/class/infiniband_verbs",
		"sys/bus/pci/devices",  "sys/bus/pci/drivers/verbatim",
		"sys/devices",          "dev/infiniband",
	};

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		tree_dir(t, dirs[i]);
	tree_file(t, "sys/class/infiniband_verbs/abi_version", CLASS_ABI "\n");
}

/* Entries go before the files that they lead to. */
static void sweep(struct tree *t)
{
	static const char *const folders[] = {"dev", "sys/class", "sys/bus", "sys/devices"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		tree_sweep(t, folders[i]);
}

static int write_devices(struct tree *t, const struct view_devices *all)
{
	frame(t);
	for (uint32_t i = 0; i < all->count && !t->error; i++)
		device(t, &all->device[i]);
	if (!t->error)
		real_merge(t);
	if (!t->error)
		sweep(t);
	return t->error;
}

int view_write_locked(const char *dir)
{
	struct view_patterns patterns;
	struct view_devices all;
	struct tree tree;
	int err = counters_prepare(dir);

	if (err)
		return err;
	view_patterns_read(dir, &patterns);
	err = view_devices_read(&all, &patterns);
	if (err)
		return err;
	err = tree_open(&tree, dir);
	if (!err)
		err = write_devices(&tree, &all);
	tree_close(&tree);
	view_devices_free(&all);
	if (!err)
		counters_show(dir);
	return err;
}

int view_write(const char *dir)
{
	struct sigaction former;
	int lock, err;

	if (mkdir(dir, 0755) && errno != EEXIST)
		return view_fail(-errno, "cannot make %s", dir);
	lock = view_lock(dir, VIEW_WRITER, WAIT_MS);
	if (lock < 0)
		return view_fail(lock, "cannot lock %s", dir);
	file_size_begin(&former);
	err = view_write_locked(dir);
	file_size_end(&former);
	close(lock);
	return err;
}
