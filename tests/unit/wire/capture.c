/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A reader of pcap files: Ethernet, IPv4 and IPv6 without extension headers, little-endian files.
 */
#include "capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/packet.h"

#define FILE_HEADER    24u
#define RECORD_HEADER  16u
#define MAGIC_MICRO    0xa1b2c3d4u
#define MAGIC_NANO     0xa1b23c4du
#define LINK_ETHERNET  1u
#define ETHERNET_BYTES 14u

static const uint8_t *ipv4(const uint8_t *p, size_t length, struct capture_packet *out)
{
	if (length < 20 || p[0] != 0x45 || p[9] != 17 || vb_get16(p + 2) > length)
		return NULL;
	out->flow.ipv4 = true;
	out->flow.source[10] = out->flow.source[11] = 0xff;
	memcpy(out->flow.source + 12, p + 12, 4);
	out->flow.destination[10] = out->flow.destination[11] = 0xff;
	memcpy(out->flow.destination + 12, p + 16, 4);
	out->id = vb_get16(p + 4);
	out->traffic_class = p[1];
	out->hop_limit = p[8];
	out->length = vb_get16(p + 2) - 20u;
	return p + 20;
}

static const uint8_t *ipv6(const uint8_t *p, size_t length, struct capture_packet *out)
{
	if (length < 40 || p[6] != 17 || vb_get16(p + 4) + 40u > length)
		return NULL;
	memcpy(out->flow.source, p + 8, 16);
	memcpy(out->flow.destination, p + 24, 16);
	out->traffic_class = (uint8_t)(vb_get16(p) >> 4);
	out->hop_limit = p[7];
	out->length = vb_get16(p + 4);
	return p + 40;
}

static bool parse(const uint8_t *frame, size_t length, struct capture_packet *out)
{
	const uint8_t *udp = NULL;

	memset(out, 0, sizeof(*out));
	if (length < ETHERNET_BYTES)
		return false;
	if (vb_get16(frame + 12) == 0x0800)
		udp = ipv4(frame + ETHERNET_BYTES, length - ETHERNET_BYTES, out);
	else if (vb_get16(frame + 12) == 0x86dd)
		udp = ipv6(frame + ETHERNET_BYTES, length - ETHERNET_BYTES, out);
	if (!udp || out->length < 8 || vb_get16(udp + 2) != VB_UDP_PORT)
		return false;
	out->flow.source_port = vb_get16(udp);
	out->flow.destination_port = VB_UDP_PORT;
	out->data = udp + 8;
	out->length -= 8;
	return true;
}

static size_t read_file(struct capture *c, const char *path)
{
	FILE *f = fopen(path, "rb");
	long size = -1;

	if (f && !fseek(f, 0, SEEK_END))
		size = ftell(f);
	if (size > 0 && !fseek(f, 0, SEEK_SET)) {
		c->file = malloc((size_t)size);
		if (c->file && fread(c->file, 1, (size_t)size, f) != (size_t)size)
			size = -1;
	}
	if (f)
		fclose(f);
	return c->file && size > 0 ? (size_t)size : 0;
}

int capture_load(struct capture *c, const char *path)
{
	size_t size;
	size_t at = FILE_HEADER;
	unsigned int frame = 0;

	memset(c, 0, sizeof(*c));
	size = read_file(c, path);
	if (size < FILE_HEADER ||
	    (vb_get32_little(c->file) != MAGIC_MICRO && vb_get32_little(c->file) != MAGIC_NANO) ||
	    vb_get32_little(c->file + 20) != LINK_ETHERNET) {
		fprintf(stderr, "%s: no Ethernet capture\n", path);
		capture_free(c);
		return -1;
	}
	c->packet = calloc(size / RECORD_HEADER + 1, sizeof(*c->packet));
	while (c->packet && at + RECORD_HEADER <= size) {
		size_t length = vb_get32_little(c->file + at + 8);

		at += RECORD_HEADER;
		if (length > size - at)
			break;
		frame++;
		if (parse(c->file + at, length, &c->packet[c->packets]))
			c->packet[c->packets++].frame = frame;
		at += length;
	}
	return 0;
}

void capture_free(struct capture *c)
{
	free(c->file);
	free(c->packet);
	memset(c, 0, sizeof(*c));
}
