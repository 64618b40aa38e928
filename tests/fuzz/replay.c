/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A target without a fuzzer: replay CAPTURES decode|responder|cm [ROUNDS [FOLDER]]. Runs the seeds,
 * ROUNDS changed copies of each (the same ones every time), and the files in FOLDER, if given:
 * inputs that once failed. So every build, with any compiler, runs the targets.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "seeds.h"

static unsigned long rounds;
static unsigned long inputs;
static uint64_t seed = 0x9e3779b97f4a7c15u;

static uint32_t roll(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 32) % n;
}

/* A few bytes changed, a piece repeated, or the end cut off. */
static size_t change(uint8_t *data, size_t size)
{
	for (uint32_t n = 1 + roll(6); n; n--)
		data[roll((uint32_t)size)] = roll(2) ? (uint8_t)roll(256) : (uint8_t)(roll(2) - 1);
	if (!roll(4))
		size = 1 + roll((uint32_t)size);
	if (!roll(4) && size > 1) {
		size_t from = roll((uint32_t)size);
		size_t length = 1 + roll((uint32_t)(size - from));
		size_t to = roll((uint32_t)size);

		if (length > INPUT_MOST - to)
			length = INPUT_MOST - to;
		memmove(data + to, data + from, length);
		if (to + length > size)
			size = to + length;
	}
	return size;
}

static void run(const uint8_t *data, size_t size)
{
	LLVMFuzzerTestOneInput(data, size);
	inputs++;
}

static void seeded(const char *name, const uint8_t *data, size_t size)
{
	static uint8_t copy[INPUT_MOST];

	(void)name;
	run(data, size);
	for (unsigned long i = 0; i < rounds && size && size <= sizeof(copy); i++) {
		memcpy(copy, data, size);
		run(copy, change(copy, size));
	}
}

static bool from_file(const char *path)
{
	static uint8_t data[INPUT_MOST];
	FILE *f = fopen(path, "rb");
	size_t size;

	if (!f) {
		perror(path);
		return false;
	}
	size = fread(data, 1, sizeof(data), f);
	fclose(f);
	run(data, size);
	return true;
}

static bool from_folder(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	bool good = true;

	while (d && good && (e = readdir(d)) != NULL) {
		char path[4096];

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		good = from_file(path);
	}
	if (d)
		closedir(d);
	return good;
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: replay CAPTURES decode|responder|cm [ROUNDS [FOLDER]]\n");
		return 2;
	}
	rounds = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
	if (seeds_each(argv[1], seed_kind_of(argv[2]), seeded))
		return 1;
	if (argc > 4 && !from_folder(argv[4]))
		return 1;
	printf("%lu inputs\n", inputs);
	return 0;
}
