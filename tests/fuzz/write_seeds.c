/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* write-seeds CAPTURES decode|responder|cm FOLDER: the seed corpus, one file for each input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "seeds.h"

static const char *target;

static void write_one(const char *name, const uint8_t *data, size_t size)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", target, name);
	f = fopen(path, "wb");
	if (!f || fwrite(data, 1, size, f) != size || fclose(f)) {
		perror(path);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: write-seeds CAPTURES decode|responder|cm FOLDER\n");
		return 2;
	}
	target = argv[3];
	return seeds_each(argv[1], seed_kind_of(argv[2]), write_one) ? 1 : 0;
}
