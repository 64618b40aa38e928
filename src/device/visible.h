/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which devices a list shows. A device that is not listed still exists: packets reach its
 * addresses, and imports find it.
 *
 *   VERBATIM_DEVICES=vb_eth*,!vb_eth3
 *
 * The value is a list of patterns of fnmatch(3) for device names, read from left to right. The last
 * pattern that matches a name decides; `!` in front of a pattern leaves the device out. A name that
 * no pattern matches is left out if there is a pattern without `!`. Otherwise the default decides:
 * loopback devices are listed only where no other listed device has a running link. The reason:
 * every host has the address 127.0.0.1, and programs that compare addresses to find out which peers
 * are near (UCX) take two hosts for one. Two processes of one host reach each other through shared
 * memory on any device.
 */
#ifndef VB_DEVICE_VISIBLE_H
#define VB_DEVICE_VISIBLE_H

enum vb_wish { VB_WISH_DEFAULT, VB_WISH_SHOW, VB_WISH_HIDE };

/* What the patterns (NULL or "": none) say about a device's name. */
enum vb_wish vb_wish_of(const char *patterns, const char *name);

/* The patterns that the environment has at this moment; NULL: none. */
const char *vb_wish_patterns(void);

#endif
