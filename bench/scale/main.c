/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cost over number. bench/scale/run.py runs this program with growing numbers and draws the curves.
 *
 * usage: scale qps one|each within|apart NUMBER     queue pairs, on one CQ or a CQ each
 *        scale mrs NUMBER [ENGINES]                 regions, beside so many queue pairs with CQs
 *        scale cqs NUMBER                           CQs, completion channels
 *        scale peers NUMBER                         processes, all to all, 2 queue pairs a pair
 *        scale strays NUMBER                        processes behind one UDP port, in a circle
 */
#include <stdio.h>
#include <string.h>

#include "scale.h"
#include "support/clock.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	int arguments;
} measurement[] = {
	{"qps", measure_qps, 3},     {"mrs", measure_mrs, 1},       {"cqs", measure_cqs, 1},
	{"peers", measure_peers, 1}, {"strays", measure_strays, 1},
};

int main(int argc, char **argv)
{
	watchdog(600);
	for (size_t i = 0; i < sizeof(measurement) / sizeof(measurement[0]); i++) {
		if (argc > 1 && !strcmp(argv[1], measurement[i].name) &&
		    argc - 2 >= measurement[i].arguments)
			return measurement[i].run(argc - 2, argv + 2);
	}
	fprintf(stderr, "usage: scale qps one|each within|apart NUMBER | mrs NUMBER [ENGINES] | "
			"cqs NUMBER | peers NUMBER | strays NUMBER\n");
	return 2;
}
