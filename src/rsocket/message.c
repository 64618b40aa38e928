/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connection data and what stands in a target area. */
#include "rsocket/message.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

enum {
	HELLO_VERSION = 1,
	FLAG_BIG_ENDIAN = 1 << 0,
	FLAG_IOMAP = 1 << 1,
	SCALED_MAX = 128, /* the largest number that stands for itself */
	SCALE_STEP = 256,
	SCALED_LIMIT = 127 * SCALE_STEP,
};

struct wire_sge {
	uint64_t addr;
	uint32_t key;
	uint32_t length;
} __attribute__((packed));

struct wire_hello {
	uint8_t version;
	uint8_t flags;
	uint16_t credits;
	uint8_t reserved[3];
	uint8_t iomaps; /* scaled */
	struct wire_sge target;
	struct wire_sge data;
} __attribute__((packed));

_Static_assert(sizeof(struct wire_hello) == VB_RS_HELLO_SIZE, "connection data");

bool vb_rs_is_big_endian(void)
{
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
}

uint8_t vb_rs_scale(uint32_t value)
{
	if (value <= SCALED_MAX)
		return (uint8_t)value;
	if (value > SCALED_LIMIT)
		value = SCALED_LIMIT;
	return (uint8_t)(SCALED_MAX + (value + SCALE_STEP - 1) / SCALE_STEP);
}

uint32_t vb_rs_unscale(uint8_t scaled)
{
	return scaled <= SCALED_MAX ? scaled : (uint32_t)(scaled - SCALED_MAX) * SCALE_STEP;
}

static struct wire_sge sge_encode(const struct vb_rs_sge *sge)
{
	return (struct wire_sge){htobe64(sge->addr), htobe32(sge->key), htobe32(sge->length)};
}

static struct vb_rs_sge sge_decode(const struct wire_sge *wire)
{
	return (struct vb_rs_sge){be64toh(wire->addr), be32toh(wire->key), be32toh(wire->length)};
}

void vb_rs_hello_encode(const struct vb_rs_hello *hello, uint8_t bytes[VB_RS_HELLO_SIZE])
{
	struct wire_hello wire = {
		.version = HELLO_VERSION,
		.flags = (uint8_t)((hello->big_endian ? FLAG_BIG_ENDIAN : 0) |
				   (hello->iomap ? FLAG_IOMAP : 0)),
		.credits = htobe16(hello->credits),
		.iomaps = vb_rs_scale(hello->iomaps),
		.target = sge_encode(&hello->target),
		.data = sge_encode(&hello->data),
	};

	memcpy(bytes, &wire, sizeof(wire));
}

int vb_rs_hello_decode(struct vb_rs_hello *hello, const uint8_t *bytes, size_t length)
{
	struct wire_hello wire;

	if (length < sizeof(wire))
		return -EPROTO;
	memcpy(&wire, bytes, sizeof(wire));
	if (wire.version != HELLO_VERSION)
		return -ENOTSUP;
	*hello = (struct vb_rs_hello){
		.big_endian = wire.flags & FLAG_BIG_ENDIAN,
		.iomap = wire.flags & FLAG_IOMAP,
		.credits = be16toh(wire.credits),
		.iomaps = vb_rs_unscale(wire.iomaps),
		.target = sge_decode(&wire.target),
		.data = sge_decode(&wire.data),
	};
	/* The second entry is always written; more than two are never used. */
	return hello->target.length < VB_RS_SGES ? -EPROTO : 0;
}

void vb_rs_sge_swap(struct vb_rs_sge *sge)
{
	sge->addr = __builtin_bswap64(sge->addr);
	sge->key = __builtin_bswap32(sge->key);
	sge->length = __builtin_bswap32(sge->length);
}

void vb_rs_iomap_swap(struct vb_rs_iomap *iomap)
{
	iomap->offset = __builtin_bswap64(iomap->offset);
	vb_rs_sge_swap(&iomap->sge);
}
